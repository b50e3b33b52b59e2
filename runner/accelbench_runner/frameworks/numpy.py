"""Run NumPy programs on the processor: every call returns when it is done, and nothing is compiled."""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from accelbench.catalogue.workload_checks import check_step
from accelbench.launch.facts import Arithmetic, Device, GradMode, Precision
from accelbench.workload import Array, Operations, Program
from accelbench_runner.frameworks.adapter import (
    Accounting,
    Adapter,
    AdapterSettings,
    CountedOperations,
    UnsupportedError,
    cast_complex,
    last_out,
    step_loop,
)
from accelbench_runner.frameworks.work import Work

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16}
PRODUCTS = frozenset({"matmul", "vecdot", "matvec", "vecmat", "dot", "vdot", "inner", "tensordot", "einsum"})
CONVOLUTIONS = frozenset({"convolve", "correlate"})
SOURCE = "the operations that NumPy ran"
UNCOUNTED = "uncounted"
"""Key in `CountingArray.arithmetic` for functions whose number of operations is unknown."""
MOVING = frozenset(
    {
        *("array_equal", "atleast_1d", "atleast_2d", "broadcast_to", "concatenate", "copy", "copyto", "empty_like"),
        *("expand_dims", "full_like", "moveaxis", "ones_like", "ravel", "repeat", "reshape", "roll", "shape", "split"),
        *("squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile", "transpose", "where", "zeros_like"),
    }
)
"""Functions that compute nothing."""


class CountingArray(np.ndarray[Any, Any]):
    """Count the operations on an array and on every array computed from it."""

    counts: Counter[str]
    arithmetic: Counter[str]
    """Floating-point operations by type."""

    def __array_finalize__(self, source: Any) -> None:
        """Share the counters of the array that this one is made from."""
        self.counts = source.counts if isinstance(source, CountingArray) else Counter()
        self.arithmetic = source.arithmetic if isinstance(source, CountingArray) else Counter()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """Count a ufunc: 2 k operations per result of a product over k numbers, else one per result.

        A reduction counts one operation per number that it reduces.
        """
        plain = tuple(map(_without_counting, inputs))
        into = {"out": tuple(map(_without_counting, out))} if out else {}
        result = getattr(ufunc, method)(*plain, **into, **options)
        self.counts[ufunc.__name__] += 1
        inner = plain[0].shape[-1] if ufunc.__name__ in PRODUCTS else 0.5
        size = np.size(plain[0]) if method == "reduce" else np.size(result)
        self._add(np.result_type(*plain), 2 * inner * size)
        return out[0] if out else self.adopt(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Count a function by its name; its number of operations is known only if it just moves numbers."""
        result = func(*_without_counting(args), **_without_counting(kwargs))
        if func.__name__ not in MOVING:
            self.counts[func.__name__] += 1
            self.arithmetic[UNCOUNTED] += 1
        return _map_leaves(self.adopt, result) if isinstance(result, tuple | list) else self.adopt(result)

    def _add(self, dtype: Any, operations: float) -> None:
        """Add operations to those of a type, if it is a floating-point type."""
        if np.issubdtype(dtype, np.floating):
            self.arithmetic[np.dtype(dtype).name] += int(operations)

    def adopt(self, result: Any) -> Any:
        """Return a view of an array that shares these counters; return anything else unchanged."""
        if not isinstance(result, np.ndarray):
            return result
        view = result.view(CountingArray)
        view.counts, view.arithmetic = self.counts, self.arithmetic
        return view


def _without_counting(value: Any) -> Any:
    """Return plain views of counting arrays, also of those in tuples, lists and dictionaries."""
    if isinstance(value, CountingArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_without_counting, value))
    return {key: _without_counting(item) for key, item in value.items()} if isinstance(value, dict) else value


class NumPyAccounting(Accounting):
    """Count operations by calls with arrays that count."""

    def __init__(self) -> None:
        self.counting = False
        """True while calls are made with counting arrays."""
        self._counter = np.zeros(0).view(CountingArray)

    def counting_views(self, arrays: Any) -> Any:
        """Return views of the arrays that count operations."""
        return _map_leaves(self._counter.adopt, arrays)

    def operations(self, work: Work) -> CountedOperations:
        """Count in one more call."""
        counts = self.count_dispatched(lambda: work.call(work.fresh(), work.batches))
        products = sum(counts.get(name, 0) for name in PRODUCTS)
        convolutions = sum(counts.get(name, 0) for name in CONVOLUTIONS)
        return CountedOperations(Operations(products=products, convolutions=convolutions), SOURCE)

    def arithmetic(self, work: Work) -> Arithmetic:
        """Count in one more call; NumPy runs a program as it was written."""
        self.count_dispatched(lambda: work.call(work.fresh(), work.batches))
        by_type = self._counter.arithmetic
        total = None if UNCOUNTED in by_type else float(sum(by_type.values()))
        return Arithmetic(written=total, run=total, source=SOURCE, types=sorted(by_type.keys() - {UNCOUNTED}))

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Count ufuncs and functions that involve the state, a batch, or an array computed from them."""
        self._counter.counts.clear()
        self._counter.arithmetic.clear()
        self.counting = True
        try:
            call()
        finally:
            self.counting = False
        return dict(self._counter.counts)


class NumPy(Adapter):
    """Adapt NumPy; a process creates one instance."""

    accounting: NumPyAccounting

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        if settings.precision not in DTYPES:
            raise UnsupportedError(f"NumPy has no {settings.precision}; it has {', '.join(DTYPES)}")
        self._dtype = np.dtype(DTYPES[settings.precision])
        self.accounting = NumPyAccounting()
        # Batches by id: a call gets the same views every time, so a program that remembers arrays recognises them.
        self._views: dict[int, tuple[Any, Any]] = {}
        self.float_bytes = self._dtype.itemsize

    def versions(self) -> dict[str, str]:
        """Return the versions of NumPy and of its BLAS library."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas.get('name', '')} {blas.get('version', '')}".strip()}

    def initialise(self) -> None:
        """Do nothing: a processor needs no initialisation."""

    def put(self, arrays: Any) -> Any:
        """Copy arrays, always: a program may write into its inputs."""
        return _map_leaves(self._array, arrays)

    def _array(self, array: Any) -> Array:
        """Copy the array, with floats in the policy's type."""
        array = cast_complex(np.asarray(array), self._settings.precision)
        return np.array(array, dtype=self._dtype if np.issubdtype(array.dtype, np.floating) else None)

    def prepare(self, program: Program) -> Work:
        """Loop over the steps in Python."""
        call, batches = step_loop(program)
        if self._settings.mode != "eager" and not program.placed:
            raise UnsupportedError(f"NumPy has no mode {self._settings.mode}")
        self._views[id(batches)] = batches, self.accounting.counting_views(batches)
        return Work(
            fresh=lambda: self._fresh(program.state),
            call=lambda state, call_batches: call(
                state, self._views[id(call_batches)][1] if self.accounting.counting else call_batches
            ),
            batches=batches,
            synchronise=lambda _: None,
            units=program.inner * program.units,
            last_out=last_out(program),
            check=partial(check_step, program.step),
        )

    def _fresh(self, state: Any) -> Any:
        """Return a deep copy of the state, which counts if calls are being counted."""
        fresh = copy.deepcopy(state)
        return self.accounting.counting_views(fresh) if self.accounting.counting else fresh

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert floats to float64, which represents every other type exactly."""
        plain = {name: np.asarray(array) for name, array in arrays.items()}
        floating = {name: array for name, array in plain.items() if np.issubdtype(array.dtype, np.floating)}
        return plain | {name: array.astype(np.float64) for name, array in floating.items()}

    def device(self, value: Any) -> Device:  # noqa: ARG002 - NumPy has one device
        """Return the processor."""
        return self._settings.describe_device({"cpu"}, {""}, count=1)

    def precision(self) -> Precision:
        """Return the type; NumPy has no other precision of products, and keeps denormals."""
        return Precision(policy=self._settings.precision, dtype=self._dtype.name, flush_denormal=False)

    def gradients(self) -> GradMode:
        """Return `functional`: NumPy records nothing."""
        return "functional"

    def ready(self, value: Any) -> bool:  # noqa: ARG002 - a returned array is computed
        """Return True: a call returns when its arrays are computed."""
        return True

    def product(self, size: int) -> Callable[[], None]:
        """Return a call that multiplies two matrices into an output allocated beforehand."""
        x = np.full((size, size), 0.75, self._dtype)
        into = np.empty_like(x)

        def run() -> None:
            np.matmul(x, x, out=into)

        return run

    def triad(self, elements: int) -> Callable[[], None]:
        """Return a call of two passes: NumPy has no operation that scales as it adds."""
        a, b = (np.full(elements, 0.75, self._dtype) for _ in range(2))
        half = self._dtype.type(0.5)

        def run() -> None:
            np.multiply(a, half, out=a)
            np.add(b, a, out=a)

        return run


def _map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `change` to every leaf of dictionaries, lists and tuples."""
    if isinstance(tree, Mapping):
        return {key: _map_leaves(change, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_map_leaves(change, value) for value in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(_map_leaves(change, value) for value in tree)
    return change(tree)

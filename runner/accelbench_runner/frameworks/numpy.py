"""NumPy: eager, on the processor. Every call returns when it is done, and nothing is compiled."""

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
    Adapter,
    AdapterSettings,
    Counted,
    UnsupportedError,
    parts_in,
    step_loop,
)
from accelbench_runner.frameworks.work import Work

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16}
PRODUCTS = frozenset({"matmul", "vecdot", "matvec", "vecmat", "dot", "vdot", "inner", "tensordot", "einsum"})
CONVOLUTIONS = frozenset({"convolve", "correlate"})
SOURCE = "the operations that NumPy ran"
UNCOUNTED = "uncounted"
"""Among the types of arithmetic: something was called whose operations nobody counts."""
MOVING = frozenset(
    {
        *("array_equal", "atleast_1d", "atleast_2d", "broadcast_to", "concatenate", "copy", "copyto", "empty_like"),
        *("expand_dims", "full_like", "moveaxis", "ones_like", "ravel", "repeat", "reshape", "roll", "shape", "split"),
        *("squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile", "transpose", "where", "zeros_like"),
    }
)
"""Functions that compute nothing."""


class Watched(np.ndarray[Any, Any]):
    """An array that counts what is computed with it, and hands that on to what comes out."""

    counts: Counter[str]
    arithmetic: Counter[str]
    """Floating-point operations, by the type that they were made in."""

    def __array_finalize__(self, source: Any) -> None:
        self.counts = source.counts if isinstance(source, Watched) else Counter()
        self.arithmetic = source.arithmetic if isinstance(source, Watched) else Counter()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        plain = tuple(map(_plain, inputs))
        into = {"out": tuple(map(_plain, out))} if out else {}
        result = getattr(ufunc, method)(*plain, **into, **options)
        self.counts[ufunc.__name__] += 1
        inner = plain[0].shape[-1] if ufunc.__name__ in PRODUCTS else 0.5
        size = np.size(plain[0]) if method == "reduce" else np.size(result)
        self._compute(np.result_type(*plain), 2 * inner * size)
        return out[0] if out else self.adopt(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """A function is counted by its name; how many operations it makes is known of none but those that only move."""
        result = func(*_plain(args), **_plain(kwargs))
        if func.__name__ not in MOVING:
            self.counts[func.__name__] += 1
            self.arithmetic[UNCOUNTED] += 1
        return _mapped(self.adopt, result) if isinstance(result, tuple | list) else self.adopt(result)

    def _compute(self, dtype: Any, operations: float) -> None:
        if np.issubdtype(dtype, np.floating):
            self.arithmetic[np.dtype(dtype).name] += int(operations)

    def adopt(self, result: Any) -> Any:
        """A view of an array, counted with this one; anything else as it is."""
        if not isinstance(result, np.ndarray):
            return result
        watched = result.view(Watched)
        watched.counts, watched.arithmetic = self.counts, self.arithmetic
        return watched


def _plain(value: Any) -> Any:
    if isinstance(value, Watched):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


class NumPy(Adapter):
    """The adapter; one in a process."""

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        if settings.precision not in DTYPES:
            raise UnsupportedError(f"NumPy has no {settings.precision}; it has {', '.join(DTYPES)}")
        self._dtype = np.dtype(DTYPES[settings.precision])
        self._listed = False
        self._watch = np.zeros(0).view(Watched)
        self._watching = False
        # Of batches, by id, the same in every call: a program that remembers arrays is to know them again.
        self._views: dict[int, tuple[Any, Any]] = {}
        self.float_bytes = self._dtype.itemsize

    def versions(self) -> dict[str, str]:
        """Of NumPy, and of the library that computes its products."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas.get('name', '')} {blas.get('version', '')}".strip()}

    def initialise(self) -> None:
        """A processor needs no waking."""

    def put(self, arrays: Any) -> Any:
        """Copies, always: a program may write into what it is given."""
        return _mapped(self._array, arrays)

    def _array(self, array: Any) -> Array:
        array = parts_in(np.asarray(array), self._settings.precision)
        return np.array(array, dtype=self._dtype if np.issubdtype(array.dtype, np.floating) else None)

    def prepare(self, program: Program) -> Work:
        """A loop in Python."""
        call, batches = step_loop(program)
        self._listed = program.inner > 1
        if self._settings.mode != "eager" and not program.placed:
            raise UnsupportedError(f"NumPy has no mode {self._settings.mode}")
        self._views[id(batches)] = batches, self._watched(batches)
        return Work(
            fresh=lambda: self._fresh(program.state),
            call=lambda state, given: call(state, self._views[id(given)][1] if self._watching else given),
            batches=batches,
            synchronise=lambda _: None,
            units=program.inner * program.units,
            check=partial(check_step, program.step),
        )

    def _fresh(self, state: Any) -> Any:
        fresh = copy.deepcopy(state)
        return self._watched(fresh) if self._watching else fresh

    def _watched(self, arrays: Any) -> Any:
        """Views of them, whose operations are counted."""
        return _mapped(self._watch.adopt, arrays)

    def operations(self, work: Work) -> Counted:
        """Of one more call."""
        counts = self.dispatched(lambda: work.call(work.fresh(), work.batches))
        products = sum(counts.get(name, 0) for name in PRODUCTS)
        convolutions = sum(counts.get(name, 0) for name in CONVOLUTIONS)
        return Counted(Operations(products=products, convolutions=convolutions), SOURCE)

    def arithmetic(self, work: Work) -> Arithmetic:
        """Of one more call; nobody optimises it."""
        self.dispatched(lambda: work.call(work.fresh(), work.batches))
        found = self._watch.arithmetic
        counted = None if UNCOUNTED in found else float(sum(found.values()))
        return Arithmetic(written=counted, run=counted, source=SOURCE, types=sorted(found.keys() - {UNCOUNTED}))

    def dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Of ufuncs and of functions, where the state, a batch or what was made of them takes part."""
        self._watch.counts.clear()
        self._watch.arithmetic.clear()
        self._watching = True
        try:
            call()
        finally:
            self._watching = False
        return dict(self._watch.counts)

    def gradients(self) -> GradMode:
        """NumPy has none."""
        return "functional"

    def last(self, out: Any) -> Any:
        """A loop lists the outs, a single step has one."""
        return out[-1] if self._listed else out

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Floats as float64, which holds every other exactly."""
        found = {name: np.asarray(array) for name, array in arrays.items()}
        floating = {name: array for name, array in found.items() if np.issubdtype(array.dtype, np.floating)}
        return found | {name: array.astype(np.float64) for name, array in floating.items()}

    def device(self, value: Any) -> Device:  # noqa: ARG002 - arrays are where NumPy is
        """The processor."""
        return self._settings.placed({"cpu"}, {""}, count=1)

    def precision(self) -> Precision:
        """NumPy has no other way to compute products, and leaves denormals alone."""
        return Precision(policy=self._settings.precision, dtype=self._dtype.name, flush_denormal=False)

    def ready(self, value: Any) -> bool:  # noqa: ARG002 - what was returned has been computed
        """Always."""
        return True

    def product(self, size: int) -> Callable[[], None]:
        """Into memory that is there already."""
        x = np.full((size, size), 0.75, self._dtype)
        into = np.empty_like(x)
        return lambda: _nothing(np.matmul(x, x, out=into))

    def triad(self, elements: int) -> Callable[[], None]:
        """Two passes: NumPy has no operation that scales as it adds."""
        a, b = (np.full(elements, 0.75, self._dtype) for _ in range(2))
        half = self._dtype.type(0.5)

        def run() -> None:
            np.multiply(a, half, out=a)
            np.add(b, a, out=a)

        return run


def _nothing(_: object) -> None:
    """The call is made for what it takes."""


def _mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """Every leaf of dictionaries, lists and tuples."""
    if isinstance(tree, Mapping):
        return {key: _mapped(change, each) for key, each in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_mapped(change, each) for each in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(_mapped(change, each) for each in tree)
    return change(tree)

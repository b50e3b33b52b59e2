"""Run NumPy programs on the CPU: every call returns when it is done, and nothing is compiled."""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from accelbench.catalogue.numbers import to_numbers
from accelbench.catalogue.workload_checks import check_step
from accelbench.launch.facts import Arithmetic, Device, GradMode, Precision
from accelbench.workload import Array, Operations, Program
from accelbench_runner.frameworks import library_operations
from accelbench_runner.frameworks.adapter import (
    Accounting,
    Adapter,
    AdapterSettings,
    CountedOperations,
    UnsupportedError,
    cast_complex,
    last_out,
    require_numbers,
    shares_by_type,
    step_loop,
)
from accelbench_runner.frameworks.work import Work

DTYPES = {"float64": np.float64, "float32": np.float32, "default": np.float32, "float16": np.float16}
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
"""Functions that only move numbers or make arrays, and so compute nothing."""
CHOOSING = frozenset(
    {
        *("absolute", "ceil", "conjugate", "copysign", "equal", "fabs", "floor", "fmax", "fmin", "greater"),
        *("greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and", "logical_not"),
        *("logical_or", "logical_xor", "maximum", "minimum", "negative", "not_equal", "positive", "rint", "sign"),
        *("signbit", "trunc"),
    }
)
"""Ufuncs that compare or choose numbers, or change their signs; they count as no floating-point operation."""


class CountingArray(np.ndarray[Any, Any]):
    """Count the operations on an array and on every array computed from it."""

    counts: Counter[str]
    arithmetic: Counter[str]
    """Number of floating-point operations, by type."""

    def __array_finalize__(self, source: Any) -> None:
        """Share the counters of `source`, the array from which NumPy makes this one, or create new counters."""
        if isinstance(source, CountingArray):
            self.counts, self.arithmetic = source.counts, source.arithmetic
        else:
            self.counts, self.arithmetic = Counter(), Counter()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """Run a NumPy ufunc on plain arrays, and count its floating-point operations."""
        # With arrays that count, the ufunc would call this method again.
        plain_inputs = tuple(map(_without_counting, inputs))
        out_argument = {"out": tuple(map(_without_counting, out))} if out else {}
        result = getattr(ufunc, method)(*plain_inputs, **out_argument, **options)
        self.counts[ufunc.__name__] += 1
        # A reduction, such as a sum, takes about one operation for each element of its operand.
        elements = np.size(plain_inputs[0]) if method == "reduce" else np.size(result)
        self._add_operations(ufunc.__name__, plain_inputs, elements)
        return out[0] if out else self.counting_view(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run a NumPy function on plain arrays; return its result in counting arrays.

        The call is counted, unless the function only moves numbers.
        """
        result = func(*_without_counting(args), **_without_counting(kwargs))
        if func.__name__ not in MOVING:
            self.counts[func.__name__] += 1
            self.arithmetic[UNCOUNTED] += 1  # the number of its operations is unknown
        if isinstance(result, tuple | list):
            return _map_leaves(self.counting_view, result)
        return self.counting_view(result)

    def _add_operations(self, name: str, inputs: tuple[Any, ...], elements: int) -> None:
        """Count the floating-point operations of the ufunc `name` on `inputs`.

        `elements` is the number of elements of its result or, for a reduction, of its operand.
        """
        dtype = np.result_type(*inputs)
        is_complex = np.issubdtype(dtype, np.complexfloating)
        if not (is_complex or np.issubdtype(dtype, np.floating)):
            return  # operations on integers do not count
        if name in CHOOSING:  # compares or chooses numbers, which is no arithmetic: 0 operations of its type
            factor = 0
        elif name in PRODUCTS:  # a product of vectors of length k multiplies and adds k times
            factor = 2 * inputs[0].shape[-1] * (library_operations.COMPLEX_PRODUCT if is_complex else 1)
        else:
            factor = library_operations.complex_factor(name) if is_complex else 1
        self.arithmetic[np.dtype(dtype).name] += factor * elements

    def counting_view(self, value: Any) -> Any:
        """Return a view of an array, with this array's counters; return other values unchanged."""
        if not isinstance(value, np.ndarray):
            return value
        view = value.view(CountingArray)
        view.counts, view.arithmetic = self.counts, self.arithmetic
        return view


def _without_counting(value: Any) -> Any:
    """Replace each `CountingArray`, also inside tuples, lists and dictionaries, by a plain view of it."""
    if isinstance(value, CountingArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_without_counting, value))
    if isinstance(value, dict):
        return {key: _without_counting(item) for key, item in value.items()}
    return value


class _Batches(NamedTuple):
    """Hold batches, and views of them that count operations."""

    batches: Any
    """Kept, so that no other object gets their `id`."""
    counting_views: Any


class NumPyAccounting(Accounting):
    """Count operations by making calls with counting arrays."""

    def __init__(self) -> None:
        self.counting = False
        """True while calls are made with counting arrays."""
        self._counter = np.zeros(0).view(CountingArray)
        """An empty array, whose counters all counting views share."""

    def counting_views(self, arrays: Any) -> Any:
        """Return the tree of arrays with a view in place of each array that counts the operations on it."""
        return _map_leaves(self._counter.counting_view, arrays)

    def operations(self, work: Work) -> CountedOperations:
        """Make another call, and count its matrix products and convolutions."""
        counts = self.count_dispatched(lambda: work.call(work.fresh(), work.batches))
        products = sum(counts.get(name, 0) for name in PRODUCTS)
        convolutions = sum(counts.get(name, 0) for name in CONVOLUTIONS)
        return CountedOperations(Operations(products=products, convolutions=convolutions), SOURCE)

    def arithmetic(self, work: Work) -> Arithmetic:
        """Make another call, and count its floating-point operations; their number is None if it is unknown."""
        # This call also fills `self._counter.arithmetic`.
        self.count_dispatched(lambda: work.call(work.fresh(), work.batches))
        by_type = self._counter.arithmetic
        types = shares_by_type({name: count for name, count in by_type.items() if name.startswith("float")})
        total = None if UNCOUNTED in by_type else float(sum(by_type.values()))
        return Arithmetic(written=total, run=total, source=SOURCE, types=types)

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Make the call, and count by name the ufuncs and functions that it runs.

        Only operations on the state, on a batch, or on what is computed from them are counted.
        """
        self._counter.counts.clear()
        self._counter.arithmetic.clear()
        self.counting = True  # then `call` gets arrays that count, see `NumPy.prepare`
        try:
            call()
        finally:
            self.counting = False
        return dict(self._counter.counts)


class NumPy(Adapter):
    """Adapt NumPy. Unlike with other frameworks, settings belong to the instance, not to the process."""

    accounting: NumPyAccounting

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        if settings.precision not in DTYPES:
            raise UnsupportedError(f"NumPy has no {settings.precision}; it has {', '.join(DTYPES)}")
        self._dtype = np.dtype(DTYPES[settings.precision])
        self.accounting = NumPyAccounting()
        self._counting_batches: dict[int, _Batches] = {}
        """The batches that counted calls get, by `id` of the program's batches.

        A program may keep arrays of an earlier call, so all counted calls get the same views.
        """
        self.float_bytes = self._dtype.itemsize

    def versions(self) -> dict[str, str]:
        """Return the versions of NumPy and of its BLAS library."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas.get('name', '')} {blas.get('version', '')}".strip()}

    def initialise(self) -> None:
        """Do nothing: NumPy needs no initialisation."""

    def in_float64(self) -> "NumPy":
        """Return an initialised adapter that computes in float64."""
        adapter = NumPy(replace(self._settings, precision="float64"))
        adapter.initialise()
        return adapter

    def put(self, arrays: Any) -> Any:
        """Copy each array of a tree, because a program may write into its inputs."""
        return _map_leaves(self._copy_array, arrays)

    def _copy_array(self, array: Any) -> Array:
        """Copy an array of numbers; floats and complex numbers get the precision policy's type."""
        array = cast_complex(require_numbers(array), self._settings.precision)
        return np.array(array, dtype=self._dtype if np.issubdtype(array.dtype, np.floating) else None)

    def prepare(self, program: Program) -> Work:
        """Return the call to time, which runs the program's steps in a Python loop.

        Raises UnsupportedError if the mode is one of another framework, such as `jit`.
        """
        call, batches = step_loop(program)
        if self._settings.mode != "eager" and not program.placed:
            raise UnsupportedError(f"NumPy has no mode {self._settings.mode}")
        self._counting_batches[id(batches)] = _Batches(batches, self.accounting.counting_views(batches))

        def call_or_count(state: Any, batches: Any) -> Any:
            """Make the call; while operations are counted, pass views of the batches, which count operations."""
            if self.accounting.counting:
                batches = self._counting_batches[id(batches)].counting_views
            return call(state, batches)

        return Work(
            fresh=lambda: self._copy_state(program.state),
            call=call_or_count,
            batches=batches,
            synchronise=lambda _: None,
            units=program.inner * program.units,
            last_out=last_out(program),
            check=partial(check_step, program.step),
        )

    def _copy_state(self, state: Any) -> Any:
        """Return a copy of the state for one block; while operations are counted, its arrays count them."""
        state_copy = copy.deepcopy(state)
        return self.accounting.counting_views(state_copy) if self.accounting.counting else state_copy

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert values, by name, to NumPy arrays; floats become float64.

        Raises NotNumbersError for a value that is not an array of numbers.
        """
        converted = {}
        for name, value in arrays.items():
            array = np.asarray(to_numbers(value))
            converted[name] = array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array
        return converted

    def device(self, value: Any) -> Device:  # noqa: ARG002 - NumPy has one device
        """Return the CPU, on which NumPy keeps every array."""
        return self._settings.describe_device({"cpu"}, {""}, count=1)

    def precision(self) -> Precision:
        """Return the precision policy and its dtype; NumPy has no settings of precision."""
        return Precision(policy=self._settings.precision, dtype=self._dtype.name, flush_denormal=False)

    def gradients(self) -> GradMode:
        """Return `functional`: NumPy records nothing."""
        return "functional"

    def ready(self, value: Any) -> bool:  # noqa: ARG002 - a returned array is computed
        """Return True: a call returns when its arrays are computed."""
        return True

    def product(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two (size, size) matrices."""
        x = np.full((size, size), 0.75, self._dtype)
        output = np.empty_like(x)

        def run() -> None:
            np.matmul(x, x, out=output)

        return run

    def triad(self, elements: int) -> Callable[[], None]:
        """Return a function that computes `a <- b + 0.5 a` in two passes over `a`."""
        a = np.full(elements, 0.75, self._dtype)
        b = np.full(elements, 0.75, self._dtype)
        half = self._dtype.type(0.5)

        def run() -> None:
            np.multiply(a, half, out=a)  # NumPy has no operation that scales and adds
            np.add(b, a, out=a)

        return run


def _map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree of dictionaries, lists and tuples with `change(leaf)` in place of each leaf."""
    if isinstance(tree, Mapping):
        return {key: _map_leaves(change, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a NamedTuple
        return type(tree)(*(_map_leaves(change, value) for value in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(_map_leaves(change, value) for value in tree)
    return change(tree)

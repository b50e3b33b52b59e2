"""Find out whether a reference branches on the numbers that it computes, like a loop that stops at a tolerance.

Such a reference is only as exact as its tolerance, so a small difference in float64 does not show a wrong formula.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from accelbench.workload import Array, Arrays, NamedArrays
from accelbench_runner.judge.arithmetic import map_arrays

DECIDES = "the reference's numbers decide on a loop or a branch, so that it may stop at a tolerance"


def reference_limit(run: Callable[[Arrays], NamedArrays], start: Arrays) -> str | None:
    """Return why a reference in NumPy may be less exact than float64: it branches on its numbers.

    The text is empty if it does not. None if this is unknown: the reference fails on watched arrays, or calls a
    function such as `np.asarray`, which returns ordinary arrays.
    """
    decisions: list[str] = []

    def watch_floats(array: Array) -> Array:
        """Return an array of floats or complex numbers as a watched one; integers, such as sizes, are exact."""
        return _watch(array, decisions) if array.dtype.kind in "fc" else array

    try:
        outputs = run(map_arrays(start, watch_floats))
    except Exception:  # noqa: BLE001 - the reference is a workload author's code, for ordinary arrays
        return None
    if decisions:
        return DECIDES
    is_watched = all(isinstance(value, WatchedArray) for value in outputs.values())
    return "" if is_watched else None


class WatchedArray(np.ndarray[Any, Any]):
    """Hold numbers, and record when Python reads one, as `if` and `while` do. Arrays computed from them do the same."""

    decisions: list[str]
    """Names of the methods by which numbers were read."""

    def __array_finalize__(self, source: Any) -> None:
        """Share the list of `source`, the array from which NumPy makes this one."""
        self.decisions = source.decisions if isinstance(source, WatchedArray) else []

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """Run a ufunc on ordinary arrays, and watch its results."""
        if out:
            options["out"] = tuple(map(_as_ordinary, out))
        result = getattr(ufunc, method)(*map(_as_ordinary, inputs), **options)
        if out:  # the result was written to these arrays
            return out[0] if len(out) == 1 else out
        return self._watched(result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Run a function of NumPy on ordinary arrays, and watch its results."""
        del types
        return self._watched(function(*_as_ordinary(arguments), **_as_ordinary(keywords)))

    def __getitem__(self, index: Any) -> Any:
        """Return elements as watched arrays, single ones too."""
        return self._watched(self.view(np.ndarray)[_as_ordinary(index)])

    def __iter__(self) -> Any:
        """Yield watched arrays."""
        return (self[position] for position in range(len(self)))

    def _watched(self, value: Any) -> Any:
        """Return arrays and single numbers of NumPy as watched arrays, also inside a tuple or a list.

        Record a Python number as a decision, because it cannot be watched: Python may branch on it.
        """
        if isinstance(value, np.ndarray | np.generic):
            return _watch(np.asarray(value), self.decisions)
        if isinstance(value, tuple) and hasattr(value, "_fields"):  # a NamedTuple, as of np.linalg.eigh
            return type(value)(*map(self._watched, value))
        if isinstance(value, tuple | list):
            return type(value)(map(self._watched, value))
        if isinstance(value, bool | int | float | complex):  # as np.allclose returns it
            self.decisions.append(type(value).__name__)
        return value

    def _read(self, name: str, *arguments: Any) -> Any:
        """Record that Python reads a number, and return it."""
        self.decisions.append(name)
        return getattr(self.view(np.ndarray), name)(*arguments)

    def __bool__(self) -> bool:
        """Return the truth of a single number."""
        return bool(self._read("__bool__"))

    def __float__(self) -> float:
        """Return a single number as a float."""
        return float(self._read("__float__"))

    def __int__(self) -> int:
        """Return a single number as an integer."""
        return int(self._read("__int__"))

    def __index__(self) -> int:
        """Return a single integer."""
        return int(self._read("__index__"))

    def item(self, *arguments: Any) -> Any:
        """Return an element as a number of Python."""
        return self._read("item", *arguments)

    def tolist(self) -> Any:
        """Return all elements as numbers of Python."""
        return self._read("tolist")


def _watch(array: Array, decisions: list[str]) -> WatchedArray:
    """Return a view of the array that adds an entry to `decisions` each time that Python reads a number."""
    view = array.view(WatchedArray)
    view.decisions = decisions
    return view


def _as_ordinary(value: Any) -> Any:
    """Return watched arrays as ordinary arrays, also inside lists, tuples and dictionaries; other values unchanged."""
    if isinstance(value, WatchedArray):
        return value.view(np.ndarray)
    is_named_tuple = hasattr(value, "_fields")  # takes its items as separate arguments, so it is returned unchanged
    if isinstance(value, tuple | list) and not is_named_tuple:
        return type(value)(map(_as_ordinary, value))
    if isinstance(value, dict):
        return {key: _as_ordinary(item) for key, item in value.items()}
    return value

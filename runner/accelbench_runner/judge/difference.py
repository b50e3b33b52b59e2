"""Hold the difference between an output and the right one, and decide whether a change of the output explains it."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from accelbench.workload import Array

SLACK_TOLERANCES = 2.0
SLACK_ULPS = 8.0
"""How exactly an explanation has to hold: in tolerances, and in units in the last place of the numbers."""
SAMPLE = 256
"""Number of elements that are compared before all others are."""


@dataclass(frozen=True)
class Difference:
    """Hold one exported array, the right one, and what is needed to explain their difference."""

    name: str
    output: Array
    expected: Array
    tolerance: Array
    """Maximum absolute error of each element of `expected`."""
    epsilon: float = 0.0
    """Distance from 1 to the next number of the type in which the program computes; 0 for integers."""
    inputs: Mapping[str, Array] = field(default_factory=dict)
    """Arrays that the program was given, and other right outputs, by name."""

    @cached_property
    def allowed(self) -> Array:
        """Return by how much each element may differ for an explanation to hold."""
        largest = _magnitude(self.expected)
        if self.output.shape == self.expected.shape:
            largest = np.maximum(largest, _magnitude(self.output))
        return np.asarray(SLACK_TOLERANCES * self.tolerance + SLACK_ULPS * self.epsilon * largest)

    @cached_property
    def wrong(self) -> Array:
        """Return where the output differs by more than is allowed, as an array of booleans."""
        with np.errstate(invalid="ignore"):
            apart = np.abs(_as_float(self.output) - self.floats)
            is_same = (self.output == self.expected) | (np.isnan(_as_float(self.output)) & np.isnan(self.floats))
        return np.asarray(~is_same & ~(apart <= self.allowed))

    @cached_property
    def sizes(self) -> AbstractSet[int]:
        """Return the numbers of terms that a sum may have: lengths of axes, and products of up to four of an array."""
        shapes = [array.shape for array in (*self.inputs.values(), self.expected)]
        return {
            prod(axes)
            for shape in shapes
            for count in range(1, min(len(shape), 4) + 1)
            for axes in combinations(shape, count)
        } - {0, 1}

    @property
    def is_whole(self) -> bool:
        """Return True if both sides hold integers or booleans."""
        return self.output.dtype.kind in "biu" and self.expected.dtype.kind in "biu"

    @property
    def varies(self) -> bool:
        """Return True if the right numbers are not all the same."""
        return self.expected.size > 1 and bool(np.any(np.abs(self.floats - self.floats.flat[0]) > self.allowed))

    @cached_property
    def floats(self) -> Array:
        """Return the right numbers as float64."""
        return _as_float(self.expected)

    def explained_by(self, changed: Array) -> bool:
        """Return True if `changed`, a change of the output, agrees with the right numbers everywhere."""
        if changed.shape != self.expected.shape:
            return False
        # Most changes are refuted by a few elements, without a look at all of them.
        sample: Any = ...
        if changed.size > SAMPLE:
            sample = np.unravel_index(np.linspace(0, changed.size - 1, SAMPLE, dtype=np.intp), changed.shape)
        return self._agrees(changed, sample) and self._agrees(changed, ...)

    def _agrees(self, changed: Array, places: Any) -> bool:
        """Return True if `changed` agrees with the right numbers at `places`, an index of NumPy."""
        with np.errstate(all="ignore"):
            apart = np.abs(_as_float(changed[places]) - self.floats[places])
            return bool(np.all(apart <= self.allowed[places]))


def _magnitude(array: Array) -> Array:
    """Return the absolute values; 0 for NaN and infinity."""
    magnitude = np.abs(_as_float(array))
    return np.where(np.isfinite(magnitude), magnitude, 0.0)


def _as_float(array: Array) -> Array:
    return np.asarray(array, dtype=np.float64)

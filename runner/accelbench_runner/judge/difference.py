"""Hold the difference between an output and the right one, and decide whether a corrected output would be right."""

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
"""Maximum error with which an explanation holds: so many tolerances plus so many units in the last place."""
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
        """Return by how much each element of a corrected output may differ from the right one.

        Both may be rounded. If they have the same shape, the larger of their two magnitudes decides for each element.
        """
        magnitude = _magnitude(self.expected)
        if self.output.shape == self.expected.shape:
            magnitude = np.maximum(magnitude, _magnitude(self.output))
        return np.asarray(SLACK_TOLERANCES * self.tolerance + SLACK_ULPS * self.epsilon * magnitude)

    @cached_property
    def wrong(self) -> Array:
        """Return an array of booleans: True where the output differs by more than `allowed`; two NaN do not differ."""
        with np.errstate(invalid="ignore"):
            output = _as_float(self.output)
            distance = np.abs(output - self.expected_floats)
            is_same = (self.output == self.expected) | (np.isnan(output) & np.isnan(self.expected_floats))
        # Written with `not <=`, because a distance of NaN is wrong, and no comparison with NaN is true.
        return np.asarray(~is_same & ~(distance <= self.allowed))

    @cached_property
    def possible_sum_lengths(self) -> AbstractSet[int]:
        """Return how many terms a sum in the program may have: products of the lengths of one to four axes.

        The axes are those of an array in `inputs`, or of `expected`. An output that is wrong by such a factor may be a
        sum in place of a mean.
        """
        lengths: set[int] = set()
        for array in (*self.inputs.values(), self.expected):
            for axis_count in range(1, min(array.ndim, 4) + 1):
                lengths |= {prod(axis_lengths) for axis_lengths in combinations(array.shape, axis_count)}
        return lengths - {0, 1}  # fewer than two terms are no sum

    @property
    def holds_integers(self) -> bool:
        """Return True if both the output and the expected output hold integers or booleans."""
        return self.output.dtype.kind in "biu" and self.expected.dtype.kind in "biu"

    @property
    def varies(self) -> bool:
        """Return True if the right numbers are not all the same."""
        if self.expected.size <= 1:
            return False
        distance_from_first = np.abs(self.expected_floats - self.expected_floats.flat[0])
        return bool(np.any(distance_from_first > self.allowed))

    @cached_property
    def expected_floats(self) -> Array:
        """Return the right numbers as float64."""
        return _as_float(self.expected)

    def is_corrected_by(self, candidate: Array) -> bool:
        """Return True if `candidate`, such as the transposed output, agrees with the right numbers everywhere."""
        if candidate.shape != self.expected.shape:
            return False
        # Most candidates are refuted by a few elements, without a look at all of them.
        sample: Any = ...
        if candidate.size > SAMPLE:
            sample = np.unravel_index(np.linspace(0, candidate.size - 1, SAMPLE, dtype=np.intp), candidate.shape)
        return self._agrees(candidate, sample) and self._agrees(candidate, ...)

    def _agrees(self, candidate: Array, index: Any) -> bool:
        """Return True if `candidate[index]` agrees with the right numbers there, up to `allowed`."""
        with np.errstate(all="ignore"):
            distance = np.abs(_as_float(candidate[index]) - self.expected_floats[index])
            return bool(np.all(distance <= self.allowed[index]))


def _magnitude(array: Array) -> Array:
    """Return the absolute values; 0 for NaN and infinity."""
    magnitude = np.abs(_as_float(array))
    return np.where(np.isfinite(magnitude), magnitude, 0.0)


def _as_float(array: Array) -> Array:
    """Return the array as float64."""
    return np.asarray(array, dtype=np.float64)

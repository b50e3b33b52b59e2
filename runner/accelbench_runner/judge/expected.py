"""Find out how far each element of a correct program's outputs may lie from the float64 reference.

Tolerances are computed from the reference alone, so a wrong variant cannot widen its own tolerance. The reference runs
in float64 on the case's inputs, then again in three series of perturbed runs. Each run is an example of what a correct
program may return:

- on inputs that are moved up or down by one ulp (unit in the last place) of the policy's type, which shows how much one
  ulp of the inputs changes each element;
- in the policy's own type, which shows the effect of roundings inside the program;
- in float64 with every operation's result moved by up to one ulp, which shows this effect even if a function is so flat
  that moved inputs do not change its roundings.

The terms of this module:

- The policy's type is the floating-point type that the requested precision prescribes for arrays.
- The deviation of an element is its distance in a perturbed run from the unperturbed float64 run.
- The rounding error of an element is the largest root mean square of its deviations in the three series, and at least
  the median of the rounding errors of elements of like size, because the few deviations of one element may all be small
  by chance. Documents and results call this error a scale.
- A choice is a decision of a program that rounding can reverse, such as relu at zero, or the larger of two equal
  numbers. In integers, every change is a choice. In floats, a choice shows as an outlier: a deviation far larger than
  those of all other runs.

The number of choices in elements where no run made one is estimated from the elements that exactly one run changed, as
in Good, "The Population Frequencies of Species and the Estimation of Population Parameters" (1953).

docs/method/parity-by-element.md has the reasons and the measured errors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from accelbench.api.case import Precision
from accelbench.workload import Array
from accelbench_runner.judge.arithmetic import EPSILON, SMALLEST, is_float

ELEMENT_LIMIT: Mapping[Precision, float] = {"float64": 64, "float32": 32, "tf32": 12, "bfloat16": 5, "float16": 12}
"""Maximum error of an element, as a multiple of its rounding error."""
MEDIAN_LIMIT: Mapping[Precision, float] = {"float64": 20, "float32": 20, "tf32": 3, "bfloat16": 2, "float16": 3}
"""Maximum median error of elements of like size, as a multiple of their rounding errors. It is less than the limit of
one element, because a median varies less, and a wrong formula changes every element."""
OWN_ULPS: Mapping[Precision, float] = {"float64": 0.5, "float32": 0.5, "tf32": 0.25, "bfloat16": 0.25, "float16": 0.25}
"""Part of an element's rounding error that comes from rounding the element itself, in its units in the last place."""
SUM_ULPS: Mapping[Precision, float] = {
    "float64": 0.15,
    "float32": 0.15,
    "tf32": 0.02,
    "bfloat16": 0.02,
    "float16": 0.02,
}
"""Rounding error of a sum over the square root of its number of terms, in units in the last place of the sum."""
MINIMUM_OTHER_RUNS = 3
"""Minimum number of other runs with which a run's deviation is compared to find outliers."""
CLASS_ELEMENTS = 64
"""Minimum number of elements of like size whose median is compared."""
PART_ELEMENTS = 2**18
"""Number of elements that are handled at once, so that intermediate arrays take little memory."""
CLASSES_PER_DECADE = 2
NEGLIGIBLE_SIZE = 1e-6
"""Size below which elements are in the smallest class, as a share of the median size."""
MAXIMUM_OUTLIER_SHARE = 1e-4
"""Maximum share of floats that are outliers in a run. More of them are not choices, but show that rounding errors were
estimated too small."""
MAXIMUM_CHANCE = 0.1
"""Maximum share of integers that one ulp changes. If it changes more, they depend on chance and cannot be compared."""
MAXIMUM_CHOOSING_SHARE = 0.01
"""Maximum share of an output's elements that may differ from the reference by a choice."""
UNSEEN_CHOICES_FACTOR = 4.0
"""Maximum number of choices in elements where no run of the reference made one, as a multiple of their expected
number."""
MANY_ELEMENTS = 1000
"""Minimum number of integers in an output for which one choice more than expected is allowed."""


def _parts(size: int) -> Iterator[slice]:
    """Yield slices of at most `PART_ELEMENTS` elements that cover an array."""
    for start in range(0, size, PART_ELEMENTS):
        yield slice(start, start + PART_ELEMENTS)


@dataclass(frozen=True)
class Choices:
    """Hold the elements of an output in which perturbed runs of the reference made another choice.

    Attributes:
        runs: Number of perturbed runs.
        changed_once: Number of elements that exactly one run changed.
        typical_share: Share of the elements that a run typically changed.
        most_changed: Largest number of integers that a run changed.
        farthest: Largest distance of a changed element from the reference.
        only_by_whole_numbers: True if no run changed integers unless it moved whole numbers among the inputs.
        positions: Flat indexes of changed integers, one for each run that changed it.
        values: The integer that the run returned at each of these positions.
    """

    runs: int = 0
    changed_once: int = 0
    typical_share: float = 0.0
    most_changed: int = 0
    farthest: float = 0.0
    only_by_whole_numbers: bool = False
    positions: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def maximum_new(self) -> int:
        """Return how many elements a correct program may change that no run of the reference changed.

        This is the larger of two estimates. A program that adds in another order changes other integers than a run of
        the reference, but about as many. By the Good-Turing estimate, a further run is expected to change
        `changed_once / runs` new elements; `UNSEEN_CHOICES_FACTOR` times as many are allowed.
        """
        if not self.runs:
            return 0
        return max(self.most_changed, int(UNSEEN_CHOICES_FACTOR * self.changed_once / self.runs))


@dataclass(frozen=True)
class Expected:
    """Hold one output of the reference, with the rounding errors and choices of correct programs.

    `rounding_error` has the shape of `value`. It is the root mean square of the error that rounding makes in each
    element; 0 for integers.
    """

    value: Array
    rounding_error: Array
    precision: Precision
    choices: Choices = Choices()

    def tolerance(self) -> Array:
        """Return the maximum absolute error of each element, in float64; 0 for integers and booleans."""
        if not is_float(self.value):
            return np.zeros(self.value.shape)
        return ELEMENT_LIMIT[self.precision] * self.rounding_error + SMALLEST[self.precision]

    def resolution(self) -> Array:
        """Return for each float the relative error above which a comparison detects it, such as 0.01 for 1 %.

        Floats whose relative error is infinite or unknown are left out. A float that is smaller than the median of its
        size class counts as if it had that median: it may be close to 0 by chance.
        """
        if not is_float(self.value):
            return np.zeros(0)
        size = np.abs(self.value).ravel()
        typical_size = class_medians(size, size_classes(self.value))
        with np.errstate(all="ignore"):
            relative = self.tolerance().ravel() / np.maximum(size, typical_size)
        return np.asarray(relative[np.isfinite(relative)])


def size_classes(value: Array) -> Array:
    """Return the size class of each element of the flattened array: the half-decade of its absolute value.

    The elements of a class are of like size. The smallest elements share a class, and so do all that are not finite.
    """
    size = np.abs(value.astype(np.float64)).ravel()
    finite = np.isfinite(size)
    nonzero = size[finite & (size > 0)]
    if not nonzero.size:
        return np.zeros(size.shape, np.int16)
    # The class of the smallest elements has at least `CLASS_ELEMENTS` of them, or all that are negligible.
    smallest_quantile = np.quantile(nonzero, min(1.0, CLASS_ELEMENTS / nonzero.size))
    smallest_size = max(float(smallest_quantile), NEGLIGIBLE_SIZE * float(np.median(nonzero)))
    size = np.maximum(np.where(finite, size, 1.0), smallest_size)
    half_decades = np.floor(CLASSES_PER_DECADE * np.log10(size))
    return np.where(finite, half_decades, np.iinfo(np.int16).max).astype(np.int16)


def class_positions(classes: Array) -> Iterator[Array]:
    """Yield for each class the positions of its elements. `classes` has the class of each element."""
    order = np.argsort(classes, kind="stable")
    starts_of_classes = np.flatnonzero(np.diff(classes[order])) + 1
    yield from np.split(order, starts_of_classes)


def class_medians(numbers: Array, classes: Array) -> Array:
    """Return for each element the median of the finite numbers of its class; 0 if the class has none."""
    medians = np.zeros(numbers.size, numbers.dtype)
    for positions in class_positions(classes):
        finite = numbers[positions][np.isfinite(numbers[positions])]
        medians[positions] = np.median(finite) if finite.size else 0.0
    return medians


class DeviationStatistics:
    """Collect the deviations of one output over perturbed runs of the reference, without keeping the runs.

    Runs come in series; those of a series are perturbed in the same way. Numbers are kept in float32 if the policy's
    type is not larger, because a network has gigabytes of weights. Of each run, `add` takes the output; after each
    series, call `end_series`; after the last one, `expected`. Call `widen_for_sums` in the series of moved inputs, just
    before it ends.
    """

    def __init__(self, value: Array, precision: Precision) -> None:
        """Start with the reference's output."""
        self.value = value
        self._precision = precision
        self._runs = 0
        self._runs_in_series = 0
        # For floats:
        self._dtype = np.float64 if precision == "float64" else np.float32
        self._rounding_error = self._zeros()
        """Largest of the rounding errors that the series have shown so far."""
        self._root_of_squares = self._zeros()
        """Square root of the sum of the squared deviations of the current series."""
        self._largest = self._zeros()
        """Largest deviation of the current series."""
        self._outlier_count = 0
        """Number of outliers so far, over all elements and series; see `_limit_outliers`."""
        self._farthest_outlier = 0.0
        """Largest deviation of an outlier."""
        # For integers, an array for each run, with the flat indexes of the changed ones and their new values:
        self._positions: list[Array] = []
        self._values: list[Array] = []
        self.only_by_whole_numbers = False
        """As in `Choices`."""

    @property
    def has_changed_integers(self) -> bool:
        """Return True if a run so far changed integers."""
        return any(changed.size for changed in self._positions)

    def _zeros(self) -> Array:
        """Return a zero for each element of the flattened output, or an empty array if the output holds integers."""
        return np.zeros(self.value.size if is_float(self.value) else 0, self._dtype)

    def add(self, output: Array, ulps: float) -> None:
        """Add the output of a run that was perturbed by `ulps` units in the last place.

        For integers, the changed ones are kept; for floats, the squares of the deviations are added up.
        """
        self._runs += 1
        if not is_float(self.value):  # integers and booleans
            changed = np.flatnonzero(output.ravel() != self.value.ravel())
            self._positions.append(changed)
            self._values.append(output.ravel()[changed].astype(np.float64))
            return
        self._runs_in_series += 1
        for part in _parts(self.value.size):
            deviations = self._deviations(output, part, ulps)
            self._root_of_squares[part] = np.hypot(self._root_of_squares[part], deviations)
            self._largest[part] = np.maximum(self._largest[part], deviations)

    def _deviations(self, output: Array, part: slice, ulps: float) -> Array:
        """Return how far the elements `part` of a run's output are from the reference, divided by `ulps`.

        The deviation of an element is 0 where the output or the reference is not finite.
        """
        difference = output.ravel()[part].astype(np.float64) - self.value.ravel()[part].astype(np.float64)
        deviations = np.abs(np.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0)) / ulps
        return deviations.astype(self._dtype)

    def end_series(self) -> None:
        """End the current series of runs, and increase rounding errors where the series shows larger ones.

        The rounding error that a series shows is the root mean square of an element's deviations, but at least the
        median of the root mean squares of elements of like size. Outliers are limited.
        """
        if not self._runs_in_series:  # no run of the series returned this output, or it holds integers
            return
        root_of_runs = np.sqrt(self._runs_in_series)
        medians = class_medians(self._root_of_squares / root_of_runs, size_classes(self.value))
        for part in _parts(self.value.size):
            root_mean_squares = self._root_of_squares[part].astype(np.float64) / root_of_runs
            rounding_error = np.maximum(root_mean_squares, medians[part])
            other_runs = self._runs_in_series - 1  # a run is called an outlier by comparison with these
            if other_runs >= MINIMUM_OTHER_RUNS:
                rounding_error = self._limit_outliers(rounding_error, medians[part], part)
            self._rounding_error[part] = np.maximum(self._rounding_error[part], rounding_error)
        self._root_of_squares[...] = 0
        self._largest[...] = 0
        self._runs_in_series = 0

    def _limit_outliers(self, rounding_error: Array, medians: Array, part: slice) -> Array:
        """Return the rounding errors of the elements `part`, reduced where a run has an outlier; count the outliers.

        An outlier is a deviation so large that the other runs of the series do not explain it. It occurs if one run
        takes another branch, for example the other of two equal maxima. A correct program may take either branch, so
        the tolerance has to include the outlier, but it need not be larger. `medians` has, for each element, the median
        root mean square of the deviations of elements that are about as large.
        """
        root_of_squares = self._root_of_squares[part].astype(np.float64)
        largest = self._largest[part].astype(np.float64)
        other_runs = self._runs_in_series - 1
        # Only the run with the largest deviation may be an outlier. Subtracting its square leaves those of other runs.
        squares_of_others = np.maximum(np.square(root_of_squares) - np.square(largest), 0.0)
        rms_of_others = np.sqrt(squares_of_others / other_runs)
        own_rounding = OWN_ULPS[self._precision] * self._ulp(part)
        usual_error = np.hypot(np.maximum(rms_of_others, medians), own_rounding)
        limit = ELEMENT_LIMIT[self._precision]
        is_outlier = largest > limit * usual_error
        self._outlier_count += int(is_outlier.sum())
        self._farthest_outlier = max(self._farthest_outlier, float(largest[is_outlier].max(initial=0.0)))
        # The tolerance is `limit` times the rounding error, so `largest / limit` makes room for the outlier itself.
        error_with_outlier = np.minimum(rounding_error, usual_error + largest / limit)
        return np.asarray(np.where(is_outlier, error_with_outlier, rounding_error))

    def widen_for_sums(self, output_of_grown_inputs: Array, ulps: float, maximum_terms: int) -> None:
        """Increase the deviations of the current series, that of moved inputs, for sums that round at every addition.

        Call it for floats only, before `end_series`.
        A reference may add pairwise, and a correct program one term after the other. The error of adding one after the
        other grows with the square root of the number n of terms. To find n: if all inputs grow together, a sum of n
        terms of one sign changes sqrt(n) times as much as in the current series, where inputs move at random.

        Args:
            output_of_grown_inputs: The output of a run in which all inputs grew together.
            ulps: By how many units in the last place they grew.
            maximum_terms: Largest possible n, the number of all inputs.
        """
        root_of_runs = float(np.sqrt(self._runs_in_series))
        for part in _parts(self.value.size):
            common_deviations = self._deviations(output_of_grown_inputs, part, ulps)
            root_mean_squares = self._root_of_squares[part] / root_of_runs
            random_deviations = np.maximum(root_mean_squares, SMALLEST[self._precision])  # not 0: it divides below
            root_of_terms = np.clip(common_deviations / random_deviations, 1.0, np.sqrt(maximum_terms))
            # `end_series` divides by `root_of_runs`.
            growth = root_of_runs * SUM_ULPS[self._precision] * root_of_terms * self._ulp(part)
            self._root_of_squares[part] = np.hypot(self._root_of_squares[part], growth)

    def _ulp(self, part: slice) -> Array:
        """Return about one unit in the last place of each of the elements `part`; 0 where they are not finite."""
        size = np.abs(self.value.ravel()[part].astype(np.float64))
        return np.asarray(EPSILON[self._precision] * np.where(np.isfinite(size), size, 0.0))

    def expected(self, widening: float) -> Expected:
        """Return the output with its rounding errors and choices; `widening` multiplies the rounding errors of floats.

        Call this once, after the last series: it overwrites the collected rounding errors instead of copying them.
        """
        value, precision = self.value, self._precision
        if not is_float(value):
            return Expected(value, np.zeros(value.shape, np.float32), precision, self._integer_choices())
        for part in _parts(value.size):
            # The element itself is rounded too. Errors that are independent add as squares.
            own_rounding = OWN_ULPS[precision] * self._ulp(part)
            self._rounding_error[part] = np.hypot(widening * self._rounding_error[part], own_rounding)
        choices = Choices(
            runs=self._runs,
            changed_once=self._outlier_count,
            typical_share=self._outlier_count / max(1, self._runs * value.size),
            farthest=self._farthest_outlier,
        )
        return Expected(value, self._rounding_error.reshape(value.shape), precision, choices)

    def _integer_choices(self) -> Choices:
        """Return the integers or booleans that runs changed, and the values that the runs returned there."""
        size = self.value.size
        if not self._positions or not size:
            return Choices(runs=self._runs)
        counts = np.array([len(changed) for changed in self._positions])  # changed integers of each run
        positions, values = np.concatenate(self._positions), np.concatenate(self._values)
        share = float(np.median(counts)) / size
        _, runs_by_position = np.unique(positions, return_counts=True)
        distances = np.abs(values - self.value.ravel()[positions].astype(np.float64))
        if share > MAXIMUM_CHANCE:  # nothing will be compared, so these would take memory for nothing
            positions, values = positions[:0], values[:0]
        return Choices(
            runs=self._runs,
            changed_once=int((runs_by_position == 1).sum()),
            typical_share=share,
            most_changed=int(counts.max()),
            farthest=float(distances.max(initial=0.0)),
            only_by_whole_numbers=self.only_by_whole_numbers,
            positions=positions,
            values=values,
        )

"""Find out which errors the canonical form of outputs hides, by disturbing right outputs.

A `canonical` that returns a constant makes all programs agree, and one that rounds to two digits hides every error
below them. The canonical form itself does not show this. So the reference's outputs are disturbed, one output at a
time, and their canonical form is compared with the reference, like that of a launch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accelbench import figures
from accelbench.api.case import Precision
from accelbench.workload import Array, NamedArrays
from accelbench_runner.judge.arithmetic import EPSILON, root_mean_square
from accelbench_runner.judge.canonical import CanonicalError, CanonicalForm
from accelbench_runner.judge.comparison import compare_array
from accelbench_runner.judge.expected import Expected
from accelbench_runner.judge.layout import describe_layout

LARGEST_ERROR = 0.5
"""Largest error that is tried, as a share of an output's root mean square. A form that hides it hides the output."""
SMALLEST_ERROR_ULPS = 4.0
"""Errors below this many units in the last place of the policy's type are not tried."""
STEP = 4.0
"""Ratio of each error to the next smaller one that is tried."""
SINGLE_ELEMENTS = 8
"""Number of elements of an output that are disturbed alone."""


@dataclass(frozen=True)
class HiddenErrors:
    """Hold which errors a canonical form hides.

    Attributes:
        outputs: Names of the outputs in which no error is noticed.
        smallest_noticed: Smallest error that is noticed in every output of floats if all its numbers are wrong, as a
            share of the output's root mean square. An error is noticed if it shows in at least half as many numbers of
            the canonical form as `LARGEST_ERROR`. 0 without floats.
        single: Text that counts, by output, the errors of single numbers that are not noticed; empty if all are
            noticed.
    """

    outputs: tuple[str, ...] = ()
    smallest_noticed: float = 0.0
    single: str = ""


def find_hidden_errors(
    outputs: NamedArrays, form: CanonicalForm, expected: Mapping[str, Expected], precision: Precision
) -> HiddenErrors:
    """Disturb the reference's `outputs`, and return which of these errors their canonical form hides.

    `expected` is the reference in canonical form; `precision` is the policy's type.
    """
    rng = np.random.default_rng(0)
    hidden_outputs, smallest_noticed, unnoticed_single = [], 0.0, []
    for name, output in outputs.items():
        trial = _Trial(name, np.asarray(output), outputs, form, expected, rng)
        if not trial.output.size:
            continue
        places = rng.choice(trial.output.size, min(SINGLE_ELEMENTS, trial.output.size), replace=False)
        unnoticed_count = sum(not trial.count_noticed(LARGEST_ERROR, place) for place in places)
        noticed_count = trial.count_noticed(LARGEST_ERROR)  # with every number of the output disturbed
        if unnoticed_count == len(places) and not noticed_count:
            hidden_outputs.append(name)
            continue
        if trial.output.dtype.kind in "fc":
            minimum_count = noticed_count / 2  # a smaller error must show in half as many numbers
            smallest_error = _smallest_noticed_error(trial, EPSILON[precision], minimum_count)
            smallest_noticed = max(smallest_noticed, smallest_error)  # this error is noticed in every output
        if unnoticed_count:
            unnoticed_single.append(f"{unnoticed_count} of {len(places)} single errors in {name}")
    return HiddenErrors(tuple(hidden_outputs), smallest_noticed, figures.join_names(unnoticed_single))


@dataclass(frozen=True)
class _Trial:
    """Disturb one output of the reference, and count the errors that the canonical form of all outputs shows."""

    name: str
    output: Array
    """The right output `name`, which is disturbed."""
    outputs: NamedArrays
    """All right outputs."""
    form: CanonicalForm
    expected: Mapping[str, Expected]
    """The canonical form of `outputs`, with tolerances."""
    rng: np.random.Generator

    def count_noticed(self, error: float, place: int | None = None) -> float:
        """Disturb the output, and return how many numbers of the canonical form are beyond their tolerance.

        The output is disturbed by the share `error` of its root mean square, in the element of flat index `place`, or
        everywhere if that is None. The result is infinity if the form cannot be computed, changes its shape, or has NaN
        or infinity where the reference has none.
        """
        disturbed = _disturb(self.output, error, self.rng, place)
        try:
            compared = self.form.apply({**self.outputs, self.name: disturbed})
        except CanonicalError:
            return math.inf
        if describe_layout(compared, {name: right.value.shape for name, right in self.expected.items()}):
            return math.inf
        comparisons = [
            compare_array(name, np.asarray(compared[name]), right, "", non_finite=True)
            for name, right in self.expected.items()
        ]
        if not all(comparison.finite for comparison in comparisons):
            return math.inf
        # A comparison can fail by a median although no single number is beyond its tolerance: count one number then.
        has_failed = any(comparison.ratio > 1 for comparison in comparisons)
        count = sum(comparison.off for comparison in comparisons)
        return max(count, 1.0 if has_failed else 0.0)


def _smallest_noticed_error(trial: _Trial, epsilon: float, minimum_count: float) -> float:
    """Return the smallest error that shows in at least `minimum_count` numbers of the canonical form, by bisection.

    Errors are shares of the output's root mean square. They go from `LARGEST_ERROR`, which is known to show in enough
    numbers, down to a few times `epsilon`, one unit in the last place of the policy's type.
    """
    errors = [LARGEST_ERROR]
    # Another error is added as long as it is larger than `SMALLEST_ERROR_ULPS` times `epsilon`.
    while errors[-1] > SMALLEST_ERROR_ULPS * epsilon * STEP:
        errors.append(errors[-1] / STEP)
    noticed, unnoticed = 0, len(errors)  # indexes of an error that is noticed, and of a smaller error that is not
    while unnoticed - noticed > 1:
        middle = (noticed + unnoticed) // 2
        if trial.count_noticed(errors[middle]) >= minimum_count:
            noticed = middle
        else:
            unnoticed = middle
    return errors[noticed]


def _disturb(array: Array, error: float, rng: np.random.Generator, place: int | None = None) -> Array:
    """Return a copy of the array with wrong numbers: in the element of flat index `place`, or everywhere if None.

    Floats and complex numbers are off by about the share `error` of their root mean square. Integers and booleans are
    replaced by others of the array.
    """
    disturbed = array.copy()
    flat = disturbed.reshape(-1)
    where = slice(None) if place is None else slice(place, place + 1)
    if array.dtype.kind in "fc":
        scale = root_mean_square(np.abs(array)) or 1.0  # 1 if all numbers are 0, or none is finite
        flat[where] = _disturb_floats(flat[where], error * scale, rng)
    else:
        flat[where] = _disturb_integers(flat[where], np.unique(flat), rng)
    return disturbed


def _disturb_floats(numbers: Array, error: float, rng: np.random.Generator) -> Array:
    """Return floats or complex numbers, each moved up or down by 0.5 to 1.5 times `error`."""
    noise = rng.uniform(0.5, 1.5, numbers.shape) * rng.choice([-1.0, 1.0], numbers.shape)
    return np.asarray(numbers + error * noise)


def _disturb_integers(numbers: Array, values: Array, rng: np.random.Generator) -> Array:
    """Replace integers or booleans at random by other ones of `values`, so that a label stays a label.

    `values` are the distinct values of the whole array, sorted.
    """
    if values.size == 1:  # there is no other value
        return np.asarray(~numbers if numbers.dtype.kind == "b" else numbers + 1)
    # Of several numbers, some stay as they are. If each were replaced, two labels would only exchange their names, and
    # a form may hide that.
    minimum_shift = 1 if numbers.size == 1 else 0
    shifts = rng.integers(minimum_shift, values.size, numbers.shape)
    return np.asarray(values[(np.searchsorted(values, numbers) + shifts) % values.size])

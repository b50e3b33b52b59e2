"""Compare random outputs with the reference by the moments of their distribution.

Two correct programs draw different numbers, so elements cannot be compared, but they draw from the same distribution.
The reference draws several times. Each number is replaced by its rank among all these draws, between 0 and 1, because
ranks have moments even if the numbers have none, as in a Cauchy distribution. The first four moments of the ranks are
compared, as the orthonormal polynomials of Neyman, "Smooth Test for Goodness of Fit" (1937): location, spread, skew and
tails. A fifth moment shows whether each element follows its mean in the reference, because a dropout of the wrong rows
has the same distribution. For each axis, one more shows whether the elements along it vary together, because noise that
all rows share has the same distribution too.

A moment may differ by a multiple of its standard error, which is the larger of two: that of independent elements, and
the standard deviation between the reference's draws. So the tolerance follows from the number of elements.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.launch.record import MISMATCH
from accelbench.workload import Array

RUNS = 16
"""Number of draws of the reference: fewer would say little about the standard deviation between draws."""
MAXIMUM_ELEMENTS = 2**17
"""Maximum number of elements of an output that are compared; of larger outputs, at least half as many are, chosen at
random."""
MINIMUM_ELEMENTS = 64
"""Minimum number of elements whose moments are compared; the moments of fewer elements are not normally distributed."""
MOMENTS = ("location", "spread", "skew", "weight of the tails", "link to the element")
"""Moments of every output. One for each of `_dependence_axes` follows them."""
MAXIMUM_BETWEEN_DRAWS = 2.0
"""Maximum standard error of a dependence between draws, as a multiple of that of independent lines. Of independent
lines it is about 1, and of 100 equal lines 10."""
MAXIMUM_ERRORS = 6.0
"""Maximum difference in standard errors. With 16 draws, a correct moment is further off in 1 of 40,000 cases."""
USELESS_SHIFT = 1.0
"""Smallest detected shift, in standard deviations, from which on a comparison detects nothing of interest."""
ROUNDING = 2.0**-12
"""Maximum relative difference of two numbers that count as equal, so that rounding in float32 does not change ranks."""


@dataclass(frozen=True)
class Distribution:
    """Hold the distribution of one output of the reference, as its draws show it.

    Attributes:
        shape: Shape of the output.
        draws: Numbers of the compared elements; the first axis counts the draws.
        ordered: The numbers of all draws in ascending order.
        mean_locations: Mean over the draws of each compared element's `_location`.
        moments: Mean over the draws of each moment.
        errors: Standard error of each moment of a single draw.
    """

    shape: tuple[int, ...]
    draws: Array
    ordered: Array
    mean_locations: Array
    moments: Array
    errors: Array

    @property
    def detected_shift(self) -> float:
        """Return the smallest common shift of all elements that is detected, in standard deviations of an element."""
        return MAXIMUM_ERRORS * float(self.errors[0])


@dataclass(frozen=True)
class MomentComparison:
    """Hold the comparison of an output's moments with those of the reference.

    Attributes:
        ratio: Largest difference over its tolerance; above 1 the comparison failed.
        detail: What differs and by how much, for people.
        compared: False if nothing can be compared, because right and wrong outputs look the same.
    """

    ratio: float
    detail: str
    compared: bool = True


def choose_elements(output: Array) -> Array:
    """Return the elements of an output that are compared: all of them, or the same random choice in every draw.

    The choice keeps the axes: it is a choice of indexes of each axis.
    """
    values = np.asarray(output, dtype=np.float64)
    rng = np.random.default_rng(0)
    while values.size > MAXIMUM_ELEMENTS:
        axis = int(np.argmax(values.shape))
        length = values.shape[axis]
        values = values.take(np.sort(rng.choice(length, length // 2, replace=False)), axis)
    return values


def estimate_distribution(draws: Sequence[Array], shape: tuple[int, ...]) -> Distribution:
    """Return the distribution of an output of this shape.

    `draws` has, for each draw of the output, the elements that `choose_elements` returned.
    """
    rows = np.array(draws)
    ordered = np.sort(rows, axis=None)
    ranks_by_draw = [_ranks(row, ordered) for row in rows]
    sum_of_locations = np.sum([_location(ranks) for ranks in ranks_by_draw], axis=0)
    moments, squared_errors = [], []
    for ranks in ranks_by_draw:
        # The mean location of each element in the other draws, so that no draw is compared with itself.
        means_of_others = (sum_of_locations - _location(ranks)) / (len(rows) - 1)
        terms = _terms(ranks, means_of_others)
        moments.append([term.mean() for term in terms])
        squared_errors.append([term.var() / max(1, term.size) for term in terms])  # if elements are independent
    errors_between_draws = np.std(moments, axis=0, ddof=1)
    errors_within_draws = np.sqrt(np.mean(squared_errors, axis=0))
    # Each estimate may be too small: errors within draws if elements depend on each other, errors between draws by
    # chance, as there are few draws. So take the larger one. The square root adds the error of the mean of all draws.
    errors = np.maximum(errors_between_draws, errors_within_draws) * np.sqrt(1 + 1 / len(rows))
    # Lines that vary together count as few lines, whose mean square is too skewed for a number of standard errors.
    lines_vary_together = errors_between_draws > MAXIMUM_BETWEEN_DRAWS * errors_within_draws
    lines_vary_together[: len(MOMENTS)] = False
    errors[lines_vary_together] = np.inf
    return Distribution(shape, rows, ordered, sum_of_locations / len(rows), np.mean(moments, axis=0), errors)


def compare_moments(name: str, output: Array, expected: Distribution) -> MomentComparison:
    """Compare the moments of an output with those of the reference; both have the same shape and finite numbers.

    They are not compared if the output has too few numbers, or if a comparison would detect only a large shift.
    """
    if not np.size(output):
        return MomentComparison(0.0, f"{name} is empty")
    values = choose_elements(output)
    if values.size < MINIMUM_ELEMENTS or expected.detected_shift >= USELESS_SHIFT:
        numbers = "1 random number" if np.size(output) == 1 else f"{np.size(output):,} random numbers"
        detail = f"{name} has {numbers}, whose distribution one draw does not show: return what they are computed from"
        return MomentComparison(0.0, detail, compared=False)
    terms = _terms(_ranks(values, expected.ordered), expected.mean_locations)
    moments = np.array([term.mean() for term in terms])
    with np.errstate(all="ignore"):
        ratios = np.abs(moments - expected.moments) / (MAXIMUM_ERRORS * expected.errors)
    # Equal moments agree even if their standard error is 0, where the division gives NaN.
    ratios = np.nan_to_num(np.where(moments == expected.moments, 0.0, ratios), nan=MISMATCH, posinf=MISMATCH)
    names = (*MOMENTS, *(f"dependence along axis {axis}" for axis in _dependence_axes(values.shape)))
    worst = int(ratios.argmax())
    standard_errors = min(float(ratios[worst]) * MAXIMUM_ERRORS, MISMATCH)
    detail = (
        f"the {names[worst]} of {name} differs by {standard_errors:.2g} standard errors (mean "
        f"{values.mean():.4g} and standard deviation {values.std():.4g}; reference {expected.draws.mean():.4g} and "
        f"{expected.draws.std():.4g})"
    )
    return MomentComparison(min(float(ratios[worst]), MISMATCH), detail)


def _ranks(values: Array, ordered: Array) -> Array:
    """Return the rank of each of `values` among the sorted `ordered`, from 0 to 1.

    Numbers that are equal but for rounding share their middle rank.
    """
    margin = ROUNDING * np.abs(values)
    below = np.searchsorted(ordered, values - margin, side="left")
    up_to = np.searchsorted(ordered, values + margin, side="right")
    return np.asarray((below + up_to) / (2 * ordered.size))


def _location(ranks: Array) -> Array:
    """Scale ranks from 0 to 1 by the first Legendre polynomial, so that uniform ranks get mean 0 and variance 1."""
    return np.asarray(np.sqrt(3) * (2 * ranks - 1))


def _terms(ranks: Array, mean_locations: Array) -> list[Array]:
    """Return the terms of each moment; a moment is the mean of its terms.

    The first four moments are orthonormal Legendre polynomials of the ranks, and the fifth is the product of an
    element's location and its mean location in other draws. These have a term for each element. The dependence along an
    axis has a term for each line of elements: the square of the sum of what is left of their locations without the
    means. If they vary alike, that grows with the square of the line's length; if independently, with the length.
    """
    x = 2 * ranks - 1
    location = _location(ranks)
    rest = location - mean_locations
    return [
        location,
        np.sqrt(5) * (3 * x**2 - 1) / 2,
        np.sqrt(7) * (5 * x**3 - 3 * x) / 2,
        3 * (35 * x**4 - 30 * x**2 + 3) / 8,
        location * mean_locations,
        *(np.square(rest.sum(axis)) / rest.shape[axis] for axis in _dependence_axes(rest.shape)),
    ]


def _dependence_axes(shape: tuple[int, ...]) -> list[int]:
    """Return the axes of an output of this shape along which dependence is compared: enough lines have this direction.

    Along the only axis of a vector, for instance, there is a single line.
    """
    size = math.prod(shape)
    return [axis for axis, length in enumerate(shape) if length > 1 and size // length >= MINIMUM_ELEMENTS]

"""Compare one output of a launch with the reference, element by element.

An output is right if each element is within its tolerance, if the median error of elements of like size is within the
tolerance of medians, and if no more elements differ by a choice than in runs of the reference. The terms are those of
`accelbench_runner.judge.expected`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accelbench.api.case import Precision
from accelbench.launch.record import MISMATCH
from accelbench.workload import Array
from accelbench_runner.judge.arithmetic import EPSILON, SMALLEST, is_float
from accelbench_runner.judge.expected import (
    CLASS_ELEMENTS,
    ELEMENT_LIMIT,
    MANY_ELEMENTS,
    MAXIMUM_CHANCE,
    MAXIMUM_CHOOSING_SHARE,
    MAXIMUM_OUTLIER_SHARE,
    MEDIAN_LIMIT,
    UNSEEN_CHOICES_FACTOR,
    Expected,
    class_positions,
    size_classes,
)

FLOAT16_HINT = "; float16 ends at 65,504: use bfloat16, or smaller numbers"
ERROR_DIGITS = 2
LESS_EXACT_ULPS: Mapping[Precision, float] = {"float64": 2, "float32": 2, "tf32": 1, "bfloat16": 1, "float16": 1}
"""Maximum error of a less exact algorithm, in units in the last place of the output's largest element."""
COMMON_SHARE = 0.9
"""Share of the elements whose largest ratio of error and tolerance counts as common."""
MAXIMUM_OVER_COMMON = 8.0
"""Maximum ratio of an error and its tolerance where a program rounds more often than the reference, as a multiple of
the common ratio. Of a difference of cumulative sums it was 3.0 to 4.7."""


@dataclass(frozen=True)
class ArrayComparison:
    """Hold the comparison of one output with the reference.

    Attributes:
        ratio: Largest error over its tolerance; above 1 the comparison failed. `MISMATCH` if no tolerance allows it.
        detail: Sentence for people about what differs, where and by how much.
        finite: False if NaN or infinity stands where it does not belong.
        compared: False if nothing can be compared, because right and wrong outputs look the same.
        unclear: True if elements differ, and whether they may is unknown: then no other output makes up for this one.
        off: Number of elements outside of their tolerance.
        less_exact: True if the comparison failed, and no error is larger than a rounding of the largest element.
        off_or_in_class: Number of elements that are off, or in a class whose median error is beyond its tolerance.
        rounds_more: True if errors are large in many elements, as more roundings make them, not only in a few.
        scales: Largest error of a float, as a multiple of its rounding error.
        relative_error: Largest error of a float, as a multiple of the output's largest element.
    """

    ratio: float
    detail: str
    finite: bool = True
    compared: bool = True
    unclear: bool = False
    off: int = 0
    less_exact: bool = False
    off_or_in_class: int = 0
    rounds_more: bool = False
    scales: float = 0.0
    relative_error: float = 0.0

    @property
    def severity(self) -> tuple[bool, float, bool]:
        """Return a sort key; the comparison with the largest key is the worst.

        NaN or infinity is worse than any ratio. At equal ratios, an output that was compared is worse than one that
        could not be compared. So the worst is one that could not be compared only if no output could.
        """
        return (not self.finite, self.ratio, self.compared)


def compare_array(name: str, output: Array, expected: Expected, after: str, *, non_finite: bool) -> ArrayComparison:
    """Compare an output with the reference.

    Args:
        name: The output's name.
        output: The launch's numbers, with the shape of `expected.value`.
        expected: The reference's numbers, and their tolerances.
        after: End of a sentence that says after how much work, such as ` after 3 steps`; it may be empty.
        non_finite: True if NaN and infinity may stand where the reference has them.
    """
    value = expected.value
    if not value.size:
        return ArrayComparison(0.0, f"{name} is empty")
    is_finite = np.isfinite(output)
    unexpected = (is_finite != np.isfinite(value)) if non_finite else _find_unexpected(output, value)
    if unexpected.any():
        where = f"{name}{format_index(unexpected.argmax(), value)}"
        problem = _describe_non_finite(output, expected, unexpected, declared=non_finite)
        return ArrayComparison(MISMATCH, f"{where}: {problem}", finite=False)
    if not is_finite.any():
        detail = f"{name}: nothing finite to compare; NaN and infinity stand where the reference has them"
        return ArrayComparison(0.0, detail, compared=False)
    with np.errstate(all="ignore"):
        error = np.where(is_finite, np.abs(output.astype(np.float64) - value.astype(np.float64)), 0.0).ravel()
    if is_float(value):
        # `_compare_floats` ends its sentence with `after`, so a remark on infinity is added there.
        infinite = int(np.isinf(output).sum())
        special = f"; infinity in {infinite:,} of {output.size:,}, as in the reference" if infinite else ""
        return _compare_floats(name, error, expected, f"{after}{special}")
    return _compare_integers(name, output, error, expected, after)


def _find_unexpected(output: Array, value: Array) -> Array:
    """Return an array of booleans: True where the output has NaN or infinity that its workload has to declare.

    Infinity where the reference has the same needs no declaration, as in masked log-probabilities. NaN does, and so
    does an output without any finite number: even a program that computes nothing may agree with the reference there.
    """
    is_finite = np.isfinite(output)
    if not is_finite.any():
        return ~is_finite
    is_same_infinity = np.isinf(output) & (output == value)
    return np.asarray(~is_finite & ~is_same_infinity)


def _describe_non_finite(output: Array, expected: Expected, unexpected: Array, *, declared: bool) -> str:
    """Describe the NaN and infinity where `unexpected` is True.

    `declared` is True if the workload declares that its outputs may have them.
    """
    count = f"in {int(unexpected.sum())} of {output.size}"
    value = expected.value
    is_as_in_reference = (np.isnan(output) & np.isnan(value)) | (np.isinf(output) & (output == value))
    if not declared and is_as_in_reference[unexpected].all():
        numbers = "NaN" if np.isnan(output[unexpected]).all() else "NaN or infinity"
        return f"{numbers} {count}, as in the reference; if it belongs there, declare it"
    where = "elsewhere than the reference " if declared else ""
    hint = FLOAT16_HINT if expected.precision == "float16" else ""
    return f"NaN or infinity {where}{count}{hint}"


def _compare_floats(name: str, error: Array, expected: Expected, after: str) -> ArrayComparison:
    """Compare each error with its tolerance, and the median error of each size class with the tolerance of medians.

    The larger of the two ratios of error to tolerance decides. `error` is the absolute error of each element of the
    flattened output; `after` says after how much work.
    """
    tolerance = np.nan_to_num(expected.tolerance().ravel(), nan=0.0)  # where it is NaN, no error is tolerated
    with np.errstate(all="ignore"):
        ratios = np.nan_to_num(np.where(error > 0, error / tolerance, 0.0), nan=MISMATCH, posinf=MISMATCH)
    ratios = np.minimum(ratios, MISMATCH)
    medians = _compare_medians(name, error, expected, after)
    off = ratios > 1
    count = int(off.sum())
    are_choices = count > 0 and _may_be_choices(error, off, expected)
    # A program may choose differently where rounding decides, for example which bin a number falls into.
    ratios_without_choices = np.where(off, 0.0, ratios) if are_choices else ratios
    worst = int(ratios_without_choices.argmax())
    ratio = max(float(ratios[worst]), medians.ratio)
    is_beyond = off | medians.off
    largest = _largest_size(expected)
    # Such errors may come from a right but less exact algorithm, such as a convolution by FFT.
    rounding = LESS_EXACT_ULPS[expected.precision] * EPSILON[expected.precision] * largest
    less_exact = ratio > 1 and bool(np.all(error[is_beyond] <= rounding))
    with np.errstate(all="ignore"):
        relative_error = float(np.nan_to_num(error.max(initial=0.0) / largest, nan=0.0, posinf=MISMATCH))
    # If many elements err nearly as much as the worst, the program may only round more often than the reference.
    rounds_more = 1 < ratio <= MAXIMUM_OVER_COMMON * float(np.quantile(ratios, COMMON_SHARE))
    # Results call a rounding error a scale; this is the largest error in scales.
    scales = min(float(ratios.max()) * ELEMENT_LIMIT[expected.precision], MISMATCH)
    only_medians_are_off = ratios[worst] <= 1 < medians.ratio
    make_comparison = partial(
        ArrayComparison,
        ratio=ratio,
        less_exact=less_exact,
        off_or_in_class=int(is_beyond.sum()),
        rounds_more=rounds_more,
        scales=scales,
        relative_error=relative_error,
    )
    if only_medians_are_off:  # otherwise describe the worst element, which is easier to find
        return make_comparison(detail=medians.detail, off=count)
    where = f"{name}{format_index(worst, expected.value)}"
    detail = f"{where} differs from the reference by {error[worst]:.{ERROR_DIGITS}g}{after}"
    if are_choices:
        detail += f"; in {_elements(count)} of {error.size:,}, rounding reverses a choice, as in runs of the reference"
    return make_comparison(detail=detail, off=0 if are_choices else count)


def _may_be_choices(error: Array, off: Array, expected: Expected) -> bool:
    """Return True if the elements that are `off` may be right choices, as perturbed runs of the reference make them.

    A correct program that rounds otherwise may choose the other of two almost equal numbers. It does so in few
    elements, and none is farther off than the farthest choice of the reference.
    """
    choices = expected.choices
    return (
        int(off.sum()) <= min(choices.maximum_new, MAXIMUM_CHOOSING_SHARE * error.size)
        and choices.typical_share <= MAXIMUM_OUTLIER_SHARE  # else outliers show that rounding errors are too small
        and bool(np.all(error[off] <= choices.farthest))
    )


def _largest_size(expected: Expected) -> float:
    """Return the absolute value of the largest finite element; 0 if there is none."""
    sizes = np.abs(expected.value.astype(np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


@dataclass(frozen=True)
class _Medians:
    """Hold the comparison of the median errors of elements of like size with their tolerance."""

    ratio: float
    """Largest median error over its tolerance."""
    detail: str
    """Sentence about the largest class that is beyond its tolerance; empty if there is none."""
    off: Array
    """True for each element of a class whose median is beyond its tolerance."""


def _compare_medians(name: str, error: Array, expected: Expected, after: str) -> _Medians:
    """Compare the median error of each class, which has elements of like size, with the tolerance of medians.

    `error` is the absolute error of each element of the flattened output. Classes of few elements are left out.
    """
    rounding_error = np.maximum(expected.rounding_error.ravel(), SMALLEST[expected.precision])
    size = np.abs(expected.value.astype(np.float64)).ravel()
    worst_ratio, off = 0.0, np.zeros(error.shape, bool)
    largest_class_off: Array = np.zeros(0, int)  # positions of the elements of the largest class that is off
    for positions in class_positions(size_classes(expected.value)):
        if len(positions) < CLASS_ELEMENTS:
            continue
        with np.errstate(all="ignore"):
            median = float(np.nanmedian(error[positions] / rounding_error[positions]))
            ratio = median / MEDIAN_LIMIT[expected.precision]
        worst_ratio = max(worst_ratio, min(ratio, MISMATCH))
        if ratio <= 1:
            continue
        off[positions] = True
        largest_class_off = max(largest_class_off, positions, key=len)
    if not off.any():
        return _Medians(worst_ratio, "", off)
    detail = (
        f"half of the {len(largest_class_off):,} numbers of {name} with a size of about "
        f"{np.median(size[largest_class_off]):.2g} differ from the reference by "
        f"{np.median(error[largest_class_off]):.{ERROR_DIGITS}g} or more{after}"
    )
    return _Medians(worst_ratio, detail, off)


def _compare_integers(name: str, output: Array, error: Array, expected: Expected, after: str) -> ArrayComparison:
    """Compare integers or booleans: all but a few must equal the reference.

    The exceptions are choices, such as an argmax, that rounding can reverse. There may be about as many of them as runs
    of the reference on slightly changed inputs make. If such runs change many integers, nothing is compared.

    `error` has the absolute error of each element of the flattened output; `after` says after how much work.
    """
    choices, size = expected.choices, error.size
    off = error > 0
    count = int(off.sum())
    if not count:
        return ArrayComparison(0.0, f"{name} is equal to the reference{after}")
    if choices.typical_share > MAXIMUM_CHANCE:
        detail = (
            f"{name}: one ulp of the inputs changes {choices.typical_share:.0%} of these choices, so they depend on "
            "chance; export the numbers from which they are chosen"
        )
        return ArrayComparison(0.0, detail, compared=False)
    flat = output.ravel().astype(np.float64)
    is_known_choice = np.zeros(size, bool)  # a run of the reference returned the same integer there
    is_known_choice[choices.positions[flat[choices.positions] == choices.values]] = True
    new_count = int((off & ~is_known_choice).sum())
    # Among many integers, of which a run changed any, one more than the expected choices is allowed.
    maximum_new = choices.maximum_new + int(choices.most_changed > 0 and size >= MANY_ELEMENTS)
    maximum_count = max(MAXIMUM_CHOOSING_SHARE * size, UNSEEN_CHOICES_FACTOR * choices.most_changed)
    are_few = new_count <= maximum_new and count <= maximum_count
    are_choices = maximum_new > 0 and float(error.max()) <= choices.farthest
    if are_few and are_choices:
        where = f"in {_elements(count)} of {size:,} of {name}"
        if choices.only_by_whole_numbers:
            detail = (
                f"{where}, it differs from the reference{after} as if whole numbers among the inputs had been rounded, "
                "but they are exact: compare < with <=, and which of equal numbers comes first"
            )
            return ArrayComparison(0.0, detail, compared=False, unclear=True)
        return ArrayComparison(0.0, f"{where}, rounding reverses a choice, as in runs of the reference{after}")
    worst = int(error.argmax())
    detail = f"{name}{format_index(worst, expected.value)} differs from the reference by {error[worst]:.3g}{after}"
    if count > 1:
        detail += f", and {count - 1:,} more of {size:,}"
    # If the only problem is that choices are too many, the ratio is finite: the comparison on unseen inputs may allow
    # that many. In float64 almost no choice depends on rounding, so any difference is a mismatch.
    are_only_too_many = are_choices and expected.precision != "float64"
    ratio = max(new_count / maximum_new, count / maximum_count) if are_only_too_many else MISMATCH
    return ArrayComparison(ratio, detail, off=count)


def _elements(count: int) -> str:
    """Format a count of elements, such as `1 element` or `1,200 elements`."""
    return "1 element" if count == 1 else f"{count:,} elements"


def format_index(flat_index: Any, value: Array) -> str:
    """Format an index of the flattened `value` as one of the array itself, such as `[2, 0]`; empty for a scalar."""
    if not value.ndim:
        return ""
    return str([int(position) for position in np.unravel_index(int(flat_index), value.shape)])

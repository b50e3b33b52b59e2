"""Explain wrong numbers that stand at the right places: another sign, a factor, an overflow and so on."""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from accelbench.workload import Array
from accelbench_runner.judge.difference import Difference

WRAPPING_BITS = (32, 16, 8)
"""Widths of the integers in which sums and products overflow."""
MINIMUM_ALONG_AXIS = 4
"""Minimum length of an axis along which an offset or a factor is called constant."""
MINIMUM_PER_LABEL = 4
"""Minimum number of elements for each value of integers that are called labels."""
MAXIMUM_SMALL_CHANGE = 0.1
"""Maximum distance from 1 of factors that are explained by another epsilon."""
MINIMUM_EQUAL = 4
"""Minimum number of wrong elements whose equal values are no accident."""
FACTORS = {
    2.0: "",
    math.log(10): "log10 on one side, the natural logarithm on the other",
    math.log(2): "log2 on one side, the natural logarithm on the other",
    math.pi / 180: "degrees on one side, radians on the other",
    2 * math.pi: "angular frequency on one side, frequency on the other",
    math.sqrt(2): "",
}
"""Factors with a usual cause, and the cause; empty for factors with several."""
RELATIONS: dict[str, Callable[[Array], Array]] = {
    "the square of": np.square,
    "the square root of": np.sqrt,
    "the absolute value of": np.abs,
    "1 divided by": np.reciprocal,
    "the exponential of": np.exp,
    "the logarithm of": np.log,
}
"""Functions of the right numbers that a wrong program may return."""


def advise_canonical(ambiguity: str) -> str:
    """Return the advice to write `canonical`, which removes an ambiguity of right outputs, such as `the sign`."""
    return (
        "write canonical(), which is given the outputs of both sides before they are compared, and fix "
        f"{ambiguity} in it"
    )


def overflowed_bits(difference: Difference) -> int:
    """Return the width in bits at which the output's integers overflowed; 0 if they did not, or for another shape."""
    if not difference.holds_integers or difference.output.shape != difference.expected.shape:
        return 0
    # An integer that overflows n bits is off by a multiple of 2**n. This holds even if the subtraction overflows too.
    errors = difference.output.astype(np.int64) - difference.expected.astype(np.int64)
    smallest, largest = int(difference.output.min()), int(difference.output.max())
    for bits in WRAPPING_BITS:
        fits_signed = -(2 ** (bits - 1)) <= smallest and largest < 2 ** (bits - 1)
        fits_unsigned = smallest >= 0 and largest < 2**bits
        if errors.any() and (fits_signed or fits_unsigned) and not np.any(errors % 2**bits):
            return bits
    return 0


def explain_overflow(difference: Difference) -> str:
    """Explain integers that are off by a multiple of a power of two; empty if they are not."""
    bits = overflowed_bits(difference)
    if not bits:
        return ""
    wider = "floats; in precision float64, JAX has 64-bit integers" if bits == 32 else "a wider type"  # noqa: PLR2004
    return f"it overflows {bits} bits: every error is a multiple of 2**{bits}. Use smaller numbers, or {wider}"


def explain_sign(difference: Difference) -> str:
    """Explain numbers that are right except for their sign; empty if they are not."""
    output, expected = difference.output, difference.expected
    if output.dtype.kind in "bu" or expected.dtype.kind in "bu":  # booleans and unsigned integers have no sign
        return ""
    if difference.is_corrected_by(-output):
        return "every number has the opposite sign"
    with_right_signs = np.abs(output.astype(np.float64)) * np.where(difference.expected_floats < 0, -1.0, 1.0)
    if not difference.is_corrected_by(with_right_signs):
        return ""
    count = int(difference.wrong.sum())
    return (
        f"the outputs differ by sign alone, in {count:,} of {expected.size:,} elements. If a vector's sign is free, as "
        f"that of an eigenvector or a singular vector is, {advise_canonical('the sign')}"
    )


def explain_phase(difference: Difference) -> str:
    """Explain complex numbers that are right except for their phase; empty if they are not.

    An output holds complex numbers as pairs of real and imaginary part, along its last axis.
    """
    output, expected = difference.output.astype(np.float64), difference.expected_floats
    # If `expected` varies, it has several numbers, and so it has a last axis.
    if difference.holds_integers or not difference.varies or expected.shape[-1] != 2:  # noqa: PLR2004 - real and imaginary
        return ""
    right_size = np.hypot(expected[..., :1], expected[..., 1:])
    right_phase = np.divide(expected, right_size, out=np.zeros_like(expected), where=right_size > 0)
    output_size = np.hypot(output[..., :1], output[..., 1:])
    if not difference.is_corrected_by(right_phase * output_size):
        return ""
    return (
        "as complex numbers, the outputs differ by phase alone. If a vector's phase is free, as that of an eigenvector "
        f"is, {advise_canonical('the phase')}"
    )


def explain_labels(difference: Difference) -> str:
    """Explain labels, such as those of clusters, that are right except for their names; empty if they are not."""
    if not difference.holds_integers or difference.expected.dtype.kind == "b":
        return ""
    elements = np.stack([difference.output.ravel(), difference.expected.ravel()]).astype(np.int64)
    # The distinct pairs of an output's label and the right label of the same element.
    output_labels, right_labels = np.unique(elements, axis=1)
    count = output_labels.size
    is_one_to_one = count == np.unique(output_labels).size == np.unique(right_labels).size
    # Integers that hardly ever repeat match one to one by chance.
    if count < 2 or not is_one_to_one or count * MINIMUM_PER_LABEL > difference.expected.size:  # noqa: PLR2004
        return ""
    return (
        f"its {count:,} different values are those of the reference under other names. If names are free, as those of "
        f"clusters are, {advise_canonical('their order')}, such as that of their first appearance"
    )


def explain_constant(difference: Difference) -> str:
    """Explain an output whose numbers are all the same, although the right ones vary; else empty."""
    output = difference.output
    if output.size > 1 and difference.varies and not np.any(output != output.flat[0]):
        return f"every number is {float(output.flat[0]):.6g}"
    return ""


def explain_whole_numbers(difference: Difference) -> str:
    """Explain fractions that were cut or rounded to whole numbers; empty if they were not."""
    output, expected = difference.output.astype(np.float64), difference.expected_floats
    if difference.holds_integers or np.any(output != np.rint(output)) or np.all(expected == np.rint(expected)):
        return ""
    if np.any(np.abs(output - expected) > 1):  # more than cutting or rounding moves a number
        return ""
    return "it holds whole numbers, where the reference has fractions: look for an integer type or an integer division"


def explain_factor(difference: Difference) -> str:
    """Explain an output whose numbers are all the right ones times one factor; empty if they are not."""
    output, expected = difference.output.astype(np.float64), difference.expected_floats
    sum_of_squares = float(np.sum(np.square(expected)))
    if not 0 < sum_of_squares < math.inf:  # no factor can be fitted if all right numbers are 0, or squares overflow
        return ""
    factor = float(np.sum(output * expected)) / sum_of_squares  # the least-squares fit
    if not factor or not math.isfinite(factor) or not difference.is_corrected_by(output / factor):
        return ""
    cause = _cause_of_factor(abs(factor), difference)
    # If there is one right number, or all are the same, a factor fits too easily: report it only with a usual cause.
    if cause is None and not difference.varies:
        return ""
    sentence = f"every number is {_format_factor(factor)} times the reference's"
    return f"{sentence}: {cause}" if cause else sentence


def _format_factor(factor: float) -> str:
    """Format a factor as a fraction if it is 1 over an integer, such as `1/64`, or else as `1.5` or `1.00402`."""
    inverse = 1 / factor
    if abs(inverse) > 1 and math.isclose(inverse, round(inverse), rel_tol=1e-4):
        return f"1/{round(inverse)}" if factor > 0 else f"-1/{round(-inverse)}"
    return f"{factor:.6g}"


def _cause_of_factor(factor: float, difference: Difference) -> str | None:
    """Return the usual cause of outputs that are `factor` times the reference, or the reverse; None if there is none.

    The cause is empty for a factor that occurs often, but for many reasons, such as 2.
    """
    relative_tolerance = max(1e-6, 8 * difference.epsilon)

    def is_close(value: float) -> bool:
        """Return True if the factor is about `value` or its inverse: either side may have made the mistake."""
        is_value = math.isclose(factor, value, rel_tol=relative_tolerance)
        return is_value or math.isclose(factor, 1 / value, rel_tol=relative_tolerance)

    # Leave out sums of two numbers: they would explain a factor of 2, which has other causes too.
    for length in sorted(length for length in difference.possible_sum_lengths if length > 2):  # noqa: PLR2004
        if is_close(length):
            return f"a sum on one side, a mean over {length:,} on the other"
        if is_close(length / (length - 1)):
            return (
                f"n = {length:,} on one side, n - 1 on the other, as in a variance without and with Bessel's "
                "correction (correction=0, ddof=0)"
            )
        if is_close(math.sqrt(length / (length - 1))):
            return (
                f"the square root of n = {length:,} or of n - 1, as in a standard deviation without and with Bessel's "
                "correction (correction=0, ddof=0)"
            )
        if is_close(math.sqrt(length)) and length > 4:  # noqa: PLR2004 - its root is 2, which has other causes too
            return f"one side divides by the square root of {length:,}, as norm='ortho' or an attention's scale does"
    for value, cause in FACTORS.items():
        if is_close(value):
            return cause
    return None


def explain_offset(difference: Difference) -> str:
    """Explain numbers that are all off by the same amount; empty if they are not."""
    errors = difference.output.astype(np.float64) - difference.expected_floats
    offset = float(np.median(errors))
    # A single number is always off by some amount, so the amount says something only if an integer is off by one.
    is_off_by_one = difference.holds_integers and abs(offset) == 1
    says_something = errors.size != 1 or is_off_by_one
    if not offset or not says_something or not difference.is_corrected_by(difference.output - offset):
        return ""
    direction = "larger" if offset > 0 else "smaller"
    return f"every number is {direction} than the reference's by {abs(offset):.6g}"


def explain_along_axis(difference: Difference) -> str:
    """Explain numbers that are off by a constant offset or factor along an axis; empty if they are not.

    The factor may also be a product of two, each constant along another axis.
    """
    output, expected = difference.output.astype(np.float64), difference.expected_floats
    if difference.holds_integers or expected.ndim < 2:  # noqa: PLR2004 - `explain_offset` has tried a single axis
        return ""
    for axis, length in enumerate(expected.shape):
        other_axes_have_length_one = expected.size == length
        if length < MINIMUM_ALONG_AXIS or other_axes_have_length_one:
            continue
        offsets = np.median(output - expected, axis=axis, keepdims=True)
        if difference.is_corrected_by(output - offsets):
            return (
                f"along axis {axis}, every number is off by the same amount: look for a bias that is missing, or a "
                "mean that is not subtracted"
            )
        with np.errstate(all="ignore"):
            sums_of_squares = np.sum(np.square(expected), axis=axis, keepdims=True)
            factors = np.sum(output * expected, axis=axis, keepdims=True) / sums_of_squares  # the least-squares fit
            if np.all(np.isfinite(factors)) and difference.is_corrected_by(output / factors):
                return f"along axis {axis}, every number is off by the same factor, {_describe_factors(factors)}"
    for axes in combinations(range(expected.ndim), 2):
        is_large = min(expected.shape[axis] for axis in axes) >= MINIMUM_ALONG_AXIS
        if is_large and _differs_by_two_factors(difference, axes):
            return f"one side normalises along axis {axes[0]}, the other along axis {axes[1]}"
    return ""


def _differs_by_two_factors(difference: Difference, axes: tuple[int, int]) -> bool:
    """Return True if each number is off by a product of two factors, each of which is constant along one of `axes`."""
    with np.errstate(all="ignore"):
        logarithms = np.log(difference.output / difference.expected_floats)
    if not np.all(np.isfinite(logarithms)):
        return False
    # The fit of an analysis of variance with two factors: the means along either axis, less the mean of all.
    first, second = (logarithms.mean(axis, keepdims=True) for axis in axes)
    fitted_factors = np.exp(first + second - logarithms.mean(axes, keepdims=True))
    return difference.is_corrected_by(difference.output / fitted_factors)


def _describe_factors(factors: Array) -> str:
    """Describe by which factors the lines along an axis are off, and the usual cause."""
    lowest, highest = float(factors.min()), float(factors.max())
    is_small = max(abs(lowest - 1), abs(highest - 1)) < MAXIMUM_SMALL_CHANGE
    cause = "another epsilon" if is_small else "a missing scale, or a division by a sum over another axis"
    return f"{lowest:.6g} to {highest:.6g}: look for {cause}"


def explain_relation(difference: Difference) -> str:
    """Explain numbers that are a known function of the right ones, such as their square; empty if they are not."""
    if difference.holds_integers or not difference.varies:
        return ""
    output, expected = difference.output.astype(np.float64), difference.expected_floats
    relative_tolerance = 1e-5 + 16 * difference.epsilon
    with np.errstate(all="ignore"):
        for description, function in RELATIONS.items():
            related = function(expected)
            if np.all(np.isfinite(related)) and np.allclose(output, related, rtol=relative_tolerance, atol=0):
                return f"every number is {description} the reference's"
    return ""


def explain_equal_errors(difference: Difference) -> str:
    """Explain an output that is off by the same amount wherever it is wrong; empty if it is not."""
    output, expected, wrong = difference.output.astype(np.float64), difference.expected_floats, difference.wrong
    wrong_numbers, right_numbers = output[wrong], expected[wrong]
    error = float(np.median(wrong_numbers - right_numbers))
    is_equal = np.all(np.abs(wrong_numbers - right_numbers - error) <= difference.allowed[wrong])
    if wrong_numbers.size < MINIMUM_EQUAL or not error or not is_equal:
        return ""
    direction = "larger" if error > 0 else "smaller"
    count = f"{wrong_numbers.size:,} of {wrong.size:,} elements"
    sentence = f"it is {direction} by {abs(error):.6g} wherever it is wrong, in {count}"
    # Below 0, rounding down gives one less than rounding to zero; above 0, both give the same integer.
    if np.all(np.maximum(wrong_numbers, right_numbers) <= 0) and abs(error) == 1:
        return f"{sentence}: one side rounds down, the other to zero (// and rounding_mode='trunc')"
    if np.all(np.sign(wrong_numbers) * np.sign(right_numbers) < 0):
        return f"{sentence}: one side has the sign of the dividend (fmod), the other that of the divisor (remainder)"
    return sentence


def explain_saturation(difference: Difference) -> str:
    """Explain an output that has the same value wherever it is wrong, as if clamped; empty if it does not."""
    output, expected, wrong = difference.output.astype(np.float64), difference.expected_floats, difference.wrong
    values = output[wrong]
    if values.size < MINIMUM_EQUAL or np.any(values != values[0]):
        return ""
    value = values[0]
    if np.all(expected[wrong] > value) and np.all(output <= value):
        return f"it never exceeds {value:.6g}, where the reference has up to {expected[wrong].max():.6g}"
    if np.all(expected[wrong] < value) and np.all(output >= value):
        return f"it is never below {value:.6g}, where the reference has down to {expected[wrong].min():.6g}"
    return f"it is {value:.6g} wherever it is wrong, in {values.size:,} of {expected.size:,} elements"

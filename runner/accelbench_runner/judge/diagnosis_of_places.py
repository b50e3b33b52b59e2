"""Explain right numbers at wrong places (transposed, shifted, sorted), and wrong numbers at special places."""

import math
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np

from accelbench.workload import Array
from accelbench_runner.judge.diagnosis_of_values import advise_canonical
from accelbench_runner.judge.difference import SLACK_ULPS, Difference

MAXIMUM_AXES = 4
"""Maximum number of axes whose permutations are tried."""
MINIMUM_OVERLAP = 4
"""Minimum number of numbers that agree after a shift."""
MAXIMUM_EDGE_SHARE = 0.125
"""Width of each of the two edges of an axis, as a share of the axis's length."""
MINIMUM_WITH_EDGES = 8
"""Minimum length of an axis that has edges."""
MAXIMUM_OFFSETS = 64
"""Maximum number of positions at which a shorter array is looked for in a longer one."""
MAXIMUM_SPECIAL_SHARE = 0.9
"""Maximum share of an output that is wrong only at special values of an input."""
MAXIMUM_SPECIAL = 3
"""Maximum number of input values that explain where an output is wrong, such as both bounds of a clamp."""
KINK = (
    ". A function may have a kink or a jump there (abs, relu and clamp have no derivative at the bound), where "
    "frameworks choose differently"
)
MAXIMUM_CHANCE = 1e-3
"""Maximum probability with which wrong numbers fit an explanation by accident."""
EVERYWHERE = ...
"""Index of a whole array."""
MAXIMUM_LINES = 256
"""Number of lines along an axis from which the probability of an accident is estimated; more make it smaller."""


def explain_shape(difference: Difference) -> str:
    """Explain an output that has the right numbers in a wrong shape; empty if the numbers are wrong."""
    output, expected = difference.output, difference.expected
    for axes in _axis_orders(output):
        if difference.is_corrected_by(np.transpose(output, axes)):
            return f"the numbers are right if its axes are put in the order {axes}: transpose it"
    if output.size == expected.size and difference.is_corrected_by(output.reshape(expected.shape)):
        return f"the numbers are right: reshape or squeeze it to {expected.shape}"
    return _explain_slice(difference)


def _explain_slice(difference: Difference) -> str:
    """Explain an output that is a slice of the right one along one axis, or the reverse; empty if neither holds."""
    output, expected = difference.output, difference.expected
    if output.ndim != expected.ndim:
        return ""
    differing = [axis for axis in range(expected.ndim) if output.shape[axis] != expected.shape[axis]]
    if len(differing) != 1:
        return ""
    [axis] = differing
    length, expected_length = output.shape[axis], expected.shape[axis]
    shorter, missing = min(length, expected_length), abs(length - expected_length)
    for start in range(min(missing, MAXIMUM_OFFSETS) + 1):
        # Take a slice of the longer array that is as long as the shorter one.
        positions = np.arange(start, start + shorter)
        part, right = output, expected
        tolerance = np.broadcast_to(difference.tolerance, expected.shape)
        if expected_length > shorter:
            right, tolerance = expected.take(positions, axis), tolerance.take(positions, axis)
        else:
            part = output.take(positions, axis)
        difference_of_slice = Difference(difference.name, part, right, tolerance, difference.epsilon)
        # An empty slice would agree with anything. Otherwise the slice is right if it needs no correction.
        if shorter and difference_of_slice.is_corrected_by(part):
            longer_has = "the reference has" if expected_length > length else "it has"
            return (
                f"the numbers at {start} to {start + shorter - 1} along axis {axis} agree, and {longer_has} "
                f"{missing} more along it"
            )
    return ""


def _axis_orders(array: Array) -> Iterator[tuple[int, ...]]:
    """Yield all orders of an array's axes but its own, for `np.transpose`; nothing if it has too many axes."""
    if array.ndim <= MAXIMUM_AXES:
        identity = tuple(range(array.ndim))
        yield from (axes for axes in permutations(identity) if axes != identity)


def explain_layout(difference: Difference) -> str:
    """Explain right numbers that are transposed, reversed or laid out by column; empty if they are not.

    Empty also if that may be an accident, because few numbers are wrong or tolerances are wide.
    """
    if _probability_of_accident(difference, EVERYWHERE, axis=None) > MAXIMUM_CHANCE:
        return ""
    return _describe_layout(difference)


def _describe_layout(difference: Difference) -> str:
    """Describe how the right numbers are laid out, if they are transposed, reversed or the like; else return empty."""
    output = difference.output
    for axes in _axis_orders(output):
        if difference.is_corrected_by(np.transpose(output, axes)):
            is_matrix = output.ndim == 2  # noqa: PLR2004 - a matrix has one other order
            return "it is transposed" if is_matrix else f"its axes are exchanged: it is right in the order {axes}"
    has_sign = output.dtype.kind in "if"  # signed integers and floats
    for axis in range(output.ndim):
        flipped = np.flip(output, axis)
        if difference.is_corrected_by(flipped):
            return f"it is in reverse order along axis {axis}: ascending on one side, descending on the other"
        flipped_with_right_signs = np.abs(flipped) * np.sign(difference.expected_floats)
        if has_sign and difference.is_corrected_by(flipped_with_right_signs):
            return (
                f"it is in reverse order along axis {axis}, and differs by sign besides. If a vector's sign is free, "
                f"as that of an eigenvector is, {advise_canonical('order and sign')}"
            )
    if output.ndim and difference.is_corrected_by(np.fft.fftshift(output)):
        return "its halves are exchanged, as by fftshift"
    if difference.is_corrected_by(output.ravel(order="F").reshape(difference.expected.shape)):
        return "the numbers are laid out column by column, not row by row: look at the reshape"
    return ""


def explain_shift(difference: Difference) -> str:
    """Explain numbers that are off by one place along an axis, rotated or shifted; empty if they are not.

    Empty also if that may be an accident.
    """
    for axis, length in enumerate(difference.expected.shape):
        leading_axes = (slice(None),) * axis
        without_first, without_last = (*leading_axes, slice(1, length)), (*leading_axes, slice(0, length - 1))
        for shift, right_places, output_places, direction in (
            (1, without_first, without_last, "earlier"),
            (-1, without_last, without_first, "later"),
        ):
            is_rotated = difference.is_corrected_by(np.roll(difference.output, shift, axis))
            if is_rotated and _probability_of_accident(difference, EVERYWHERE, axis=None) <= MAXIMUM_CHANCE:
                return f"it is rotated by one place along axis {axis}"
            # Compare the output at `output_places` with the right numbers at `right_places`, one place apart.
            wrong = difference.wrong[right_places]
            if wrong.size < MINIMUM_OVERLAP or not wrong.any():  # too few overlap, or none is wrong
                continue
            distance = np.abs(difference.output[output_places] - difference.expected_floats[right_places])
            is_shifted = np.all(distance <= difference.allowed[right_places])
            if is_shifted and _probability_of_accident(difference, right_places, axis=None) <= MAXIMUM_CHANCE:
                return f"it is shifted by one along axis {axis}: each number stands one place {direction}"
    return ""


def explain_order(difference: Difference) -> str:
    """Explain the right numbers in another order, along an axis or anywhere; empty if the numbers are wrong.

    Empty also if the order may be an accident, or if there is a single number.
    """
    if difference.expected.ndim == 0:
        return ""
    for axis in reversed(range(difference.expected.ndim)):
        if _has_same_numbers(difference, axis):
            return (
                f"along axis {axis}, it holds the same numbers in another order. If the order is free, "
                f"{advise_canonical('the order')}, as by sorting, or return what the order does not change"
            )
    if _has_same_numbers(difference, None):
        return "it holds the same numbers at other places: look at its reshapes and transpositions"
    return ""


def _has_same_numbers(difference: Difference, axis: int | None) -> bool:
    """Return True if both sides are equal after sorting along `axis`, or after sorting all numbers if `axis` is None.

    Returns False if this may be an accident, because few numbers are wrong or tolerances are wide.
    """
    sum_distances = np.abs(difference.output.sum(axis, dtype=np.float64) - difference.expected_floats.sum(axis))
    if np.any(sum_distances > difference.allowed.sum(axis)):  # the same numbers have the same sum
        return False
    order = np.argsort(difference.expected_floats, axis)
    if axis is None:
        allowed, right = difference.allowed.ravel()[order], difference.expected_floats.ravel()[order]
    else:
        allowed = np.take_along_axis(difference.allowed, order, axis)
        right = np.take_along_axis(difference.expected_floats, order, axis)
    is_equal = np.all(np.abs(np.sort(difference.output.astype(np.float64), axis) - right) <= allowed)
    return bool(is_equal) and _probability_of_accident(difference, EVERYWHERE, axis, any_order=True) <= MAXIMUM_CHANCE


def _probability_of_accident(
    difference: Difference, places: Any, axis: int | None, *, any_order: bool = False
) -> float:
    """Estimate the probability that random numbers at the wrong places would pass as the right numbers, rearranged.

    `places` is the index of the part of the array that is rearranged. A random number is one of the right numbers of
    its line along `axis`, or any number in their range; if `axis` is None, all numbers are one line. With `any_order`,
    k wrong numbers of a line may be put in any of k! orders; otherwise each has one place.
    """
    wrong, right, allowed = (
        _lines(array[places], axis) for array in (difference.wrong, difference.expected_floats, difference.allowed)
    )
    width_of_integer = 1.0 if difference.holds_integers else 0.0
    log_probability = 0.0
    for line in np.flatnonzero(wrong.any(axis=1))[:MAXIMUM_LINES]:
        numbers = np.sort(right[line])
        centres, widths = right[line][wrong[line]], allowed[line][wrong[line]]  # the numbers that would be right
        # A random number is right with the larger of two probabilities: the share of the line's other right numbers
        # that are within the tolerance, and the share of their range that the tolerance covers.
        first = np.searchsorted(numbers, centres - widths, "left")
        last = np.searchsorted(numbers, centres + widths, "right")
        share_of_others = (last - first - 1) / max(1, numbers.size - 1)
        share_of_range = (2 * widths + width_of_integer) / (np.ptp(numbers) + width_of_integer)
        shares = np.clip(np.maximum(share_of_others, share_of_range), 0.0, 1.0)
        log_orders = math.lgamma(centres.size + 1) if any_order else 0.0  # log(k!)
        log_probability += min(0.0, log_orders + float(np.sum(np.log(shares))))
    return math.exp(log_probability)


def _lines(array: Array, axis: int | None) -> Array:
    """Return a matrix whose rows are the lines of the array along `axis`, or a single row of all numbers for None."""
    return array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])


def explain_ties(difference: Difference) -> str:
    """Explain indices, as of argsort or argmax, that select values equal to those of the right indices; else empty."""
    if not difference.holds_integers or difference.expected.dtype.kind == "b":  # booleans are no indices
        return ""
    for name, values in difference.inputs.items():
        for axis in range(values.ndim):
            selected = _select(values, difference.output, axis)
            right = _select(values, difference.expected, axis)
            if selected is None or right is None:  # these are no indices along the axis
                continue
            if np.all(np.abs(selected - right) <= SLACK_ULPS * difference.epsilon * np.abs(right)):
                equal = "equal" if np.array_equal(selected, right) else "equal but for rounding"
                return (
                    f"the indices differ where values of {name} are {equal}: such ties may come in any order. "
                    "Sort with stable=True, or write a function canonical() that returns the selected values in place "
                    "of the indices: it gets the outputs of each side before they are compared, and the inputs"
                )
    return ""


def _select(values: Array, indices: Array, axis: int) -> "Array | None":  # in quotes: `Array` is text at run time
    """Return the `values` that `indices` select along `axis`, as float64; None if they are no indices along it."""
    if indices.ndim == 0 and axis == 0:  # as argmax without an axis returns it
        values = values.ravel()
    elif indices.ndim == values.ndim - 1:  # as argmax returns them
        indices = np.expand_dims(indices, axis)
    other_axes = [other for other in range(values.ndim) if other != axis]
    if indices.ndim == 0:  # `take_along_axis` needs as many axes as `values` has
        indices = indices.reshape(1)
    if indices.ndim != values.ndim or any(indices.shape[other] != values.shape[other] for other in other_axes):
        return None
    if not indices.size or indices.min() < 0 or indices.max() >= values.shape[axis]:
        return None
    return np.take_along_axis(values, indices.astype(np.intp), axis).astype(np.float64)


def explain_special_inputs(difference: Difference) -> str:
    """Explain an output that is wrong only where an input has special values; empty if it is not, or by accident.

    Special values of an input are either few, such as the bounds of a clamp, or occur more than once, such as equal
    maxima.
    """
    wrong = difference.wrong
    count = int(wrong.sum())
    if count > MAXIMUM_SPECIAL_SHARE * wrong.size:
        return ""
    for name, values in difference.inputs.items():
        if values.shape != wrong.shape:  # its elements do not correspond to those of the output
            continue
        # Try explanations from the narrowest to the widest: one value, equal extremes, a few values, any equal values.
        special = np.unique(values[wrong])  # NaN counts as one value
        has_special_value = special.size <= MAXIMUM_SPECIAL and _accounts_for(_is_among(values, special), wrong)
        if has_special_value and special.size == 1:
            return _describe_special(name, values, special, count)
        if any(_accounts_for(places, wrong) for places in _ties_of_extremes(values)):
            return f"it differs only where {name} has several equal maxima or minima: frameworks treat ties differently"
        if has_special_value:
            return _describe_special(name, values, special, count)
        _, indices_of_unique, occurrences = np.unique(values, return_inverse=True, return_counts=True)
        occurs_again = (occurrences > 1)[indices_of_unique].reshape(values.shape)
        if _accounts_for(occurs_again, wrong):
            return f"it differs only where {name} has equal values: frameworks may treat ties differently"
    return ""


def _is_among(values: Array, special: Array) -> Array:
    """Return an array of booleans: True where a value is one of `special`, which may contain NaN."""
    is_nan_among = np.isnan(values) & np.isnan(special).any()  # `isin` finds no NaN
    return np.asarray(np.isin(values, special) | is_nan_among)


def _describe_special(name: str, values: Array, special: Array, count: int) -> str:
    """Return a sentence about `count` wrong numbers, all where the input `name` has one of the values `special`.

    `values` are all numbers of the input.
    """
    named = " or ".join(f"{value:g}" if value else "exactly 0" for value in special).replace("nan", "NaN")
    may_have_kink = values.dtype.kind == "f" and not np.isnan(special).any()  # a function has no kink at NaN
    return f"it differs only where {name} is {named}, in {count:,} elements{KINK if may_have_kink else ''}"


def _ties_of_extremes(values: Array) -> Iterator[Array]:
    """Yield arrays of booleans: True at maxima, or minima, that occur several times along an axis or in the array."""
    for axis in (None, *range(values.ndim)):
        for extreme in (np.max, np.min):
            places = values == extreme(values, axis=axis, keepdims=True)
            yield places & (places.sum(axis=axis, keepdims=True) > 1)


def _accounts_for(places: Array, wrong: Array) -> bool:
    """Return True if all wrong numbers are in `places`, and are too many for an accident. Both arrays are booleans."""
    if np.any(wrong & ~places):
        return False
    probability_of_accident = float(np.mean(places)) ** int(wrong.sum())
    return probability_of_accident < MAXIMUM_CHANCE


def explain_edges(difference: Difference) -> str:
    """Explain an output that is wrong only near the ends of one or two axes; empty if it is wrong elsewhere too.

    Empty also if that may be an accident.
    """
    shape = difference.expected.shape
    long_axes = [axis for axis, length in enumerate(shape) if length >= MINIMUM_WITH_EDGES]
    for axes in (*combinations(long_axes, 1), *combinations(long_axes, 2)):
        is_edge = np.zeros(shape, dtype=bool)
        for axis in axes:
            view = np.moveaxis(is_edge, axis, 0)  # writing to the view changes `is_edge`
            width = max(1, int(MAXIMUM_EDGE_SHARE * shape[axis]))
            view[:width] = view[-width:] = True
        if _accounts_for(is_edge, difference.wrong):
            named = " and ".join(f"axis {axis}" for axis in axes)
            return f"it differs only near the ends of {named}: look at the padding, or at the first and last steps"
    return ""

"""Explain in a sentence how wrong outputs differ from the right ones, and what to do about it.

An explanation is shown by the numbers: it holds in every element, within the tolerance. An explanation is added to the
message of a failed comparison, and decides nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from accelbench_runner.judge import diagnosis_of_places as places
from accelbench_runner.judge import diagnosis_of_values as values
from accelbench_runner.judge.difference import Difference

MAXIMUM_SIZE = 2**22
"""Maximum number of elements of an array whose difference is explained: sorting more takes seconds."""
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
EXPLANATIONS: tuple[Callable[[Difference], str], ...] = (
    values.explain_overflow,
    values.explain_sign,
    values.explain_constant,
    values.explain_whole_numbers,
    values.explain_factor,
    values.explain_offset,
    values.explain_phase,
    values.explain_labels,
    places.explain_layout,
    places.explain_shift,
    places.explain_ties,
    places.explain_order,
    places.explain_special_inputs,
    places.explain_edges,
    values.explain_along_axis,
    values.explain_relation,
    values.explain_equal_errors,
    values.explain_saturation,
)
"""Explanations of an output of the right shape, the surest first. Each returns an empty text if it does not apply."""


def diagnose(difference: Difference) -> str:
    """Return the first explanation of the difference that holds for all numbers; empty if there is none.

    Empty, large and complex arrays are not explained, nor an output whose numbers are right.
    """
    output, expected = difference.output, difference.expected
    if max(output.size, expected.size) > MAXIMUM_SIZE or min(output.size, expected.size) == 0:
        return ""
    if output.dtype.kind not in "biuf" or expected.dtype.kind not in "biuf":
        return ""
    with np.errstate(all="ignore"):
        if output.shape != expected.shape:
            return places.explain_shape(difference)
        if not difference.wrong.any():
            return ""
        if not (np.isfinite(output).all() and np.isfinite(expected).all()):
            return explain_non_finite(difference)
        return next(filter(None, (explain(difference) for explain in EXPLANATIONS)), "")


def explain_non_finite(difference: Difference) -> str:
    """Explain NaN and infinity that either the output or the reference has, but not both; empty if there is none."""
    output, expected = difference.output, difference.expected_floats
    is_unlike = np.isfinite(output) != np.isfinite(expected)
    if not is_unlike.any():
        return ""
    first_index = np.unravel_index(int(is_unlike.argmax()), is_unlike.shape)
    sentence = (
        f"{int(is_unlike.sum()):,} of {expected.size:,} numbers are {_name_classes(output[is_unlike])} where the "
        f"reference has {_name_classes(expected[is_unlike])}"
    )
    if np.isinf(output[first_index]) and abs(expected[first_index]) > LARGEST_FLOAT32:
        return f"{sentence}: float32 ends at {LARGEST_FLOAT32:.1e}; use smaller numbers, or precision float64"
    # Pass a Difference that is wrong exactly where `is_unlike` is True: only these places have to be explained.
    all_false = np.zeros_like(is_unlike)
    unlike = Difference(difference.name, is_unlike, expected=all_false, tolerance=all_false, inputs=difference.inputs)
    special = places.explain_special_inputs(unlike) or _explain_skipped_nan(difference)
    return f"{sentence}; {special}" if special else sentence


def _explain_skipped_nan(difference: Difference) -> str:
    """Name an input with NaN that the reference skips, as its finite output shows; empty if there is none."""
    if not np.isfinite(difference.expected_floats).all():
        return ""
    for name, array in difference.inputs.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            return f"{name} has NaN, which the reference skips, as nanmean does"
    return ""


def _name_classes(numbers: Any) -> str:
    """Name the classes of floats that occur among numbers, such as `NaN or infinity` or `finite numbers`."""
    members = {
        "NaN": np.isnan(numbers),
        "infinity": np.isposinf(numbers),
        "-infinity": np.isneginf(numbers),
        "finite numbers": np.isfinite(numbers),
    }
    return " or ".join(name for name, is_member in members.items() if np.any(is_member))

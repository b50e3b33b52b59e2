"""Explain in a sentence how wrong outputs differ from the right ones, and what to do about it.

An explanation is shown by the numbers: it holds in every element, within the tolerance. It changes no outcome.
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
"""Explanations of numbers in the right shape, the surest first. Each returns an empty string if it does not hold."""


def diagnose(difference: Difference) -> str:
    """Return the first explanation of the difference that holds in all numbers; empty if none does."""
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
    """Describe where only one side has NaN or infinity; return an empty string if both have it in the same places."""
    output, expected = difference.output, difference.floats
    unlike = np.isfinite(output) != np.isfinite(expected)
    if not unlike.any():
        return ""
    place = np.unravel_index(int(unlike.argmax()), unlike.shape)
    sentence = (
        f"{int(unlike.sum()):,} of {expected.size:,} numbers are {_describe_kinds(output[unlike])} where the reference "
        f"has {_describe_kinds(expected[unlike])}"
    )
    if np.isinf(output[place]) and abs(expected[place]) > LARGEST_FLOAT32:
        return f"{sentence}: float32 ends at {LARGEST_FLOAT32:.1e}; use smaller numbers, or precision float64"
    # Look for special inputs as if True and False were the outputs, and False were right everywhere.
    nowhere = np.zeros_like(unlike)
    where = Difference(difference.name, unlike, expected=nowhere, tolerance=nowhere, inputs=difference.inputs)
    special = places.explain_special_inputs(where) or _find_skipped(difference)
    return f"{sentence}; {special}" if special else sentence


def _find_skipped(difference: Difference) -> str:
    """Say which input has NaN that the reference skips, as its outputs are finite; empty if there is none."""
    if not np.isfinite(difference.floats).all():
        return ""
    for name, array in difference.inputs.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            return f"{name} has NaN, which the reference skips, as nanmean does"
    return ""


def _describe_kinds(numbers: Any) -> str:
    """Describe numbers by kind, as `NaN or infinity`, `-infinity` or `finite numbers`."""
    kinds = {
        "NaN": np.isnan(numbers),
        "infinity": np.isposinf(numbers),
        "-infinity": np.isneginf(numbers),
        "finite numbers": np.isfinite(numbers),
    }
    return " or ".join(words for words, found in kinds.items() if np.any(found))

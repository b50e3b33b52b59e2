"""Inputs that a program was not built from show whether it reads them, not how exactly it computes."""

import pytest

from accelbench.api.case import Precision
from accelbench.launch.record import LaunchRecord, UnseenReading
from accelbench.validity import depends_on_inputs
from accelbench.validity.evidence import Evidence
from judge.launches import GOOD_PARITY, GOOD_UNSEEN, a_case, a_launch


def off(ratio: float) -> LaunchRecord:
    """Right on the inputs that it was built from, and so far off on others."""
    unseen = UnseenReading(reading=GOOD_UNSEEN.model_copy(update={"worst_ratio": ratio}), changes=True)
    return a_launch(parity=GOOD_PARITY.model_copy(update={"unseen": unseen}))


@pytest.mark.parametrize(
    ("precision", "ratio", "outcome"),
    [
        ("float32", 0.1, "passed"),
        ("float32", 6.6, "passed"),
        ("float32", 17.0, "failed"),
        ("float64", 17.0, "failed"),
        ("bfloat16", 1.2, "passed"),
        ("bfloat16", 2.0, "failed"),
        ("float16", 2.0, "failed"),
        ("tf32", 2.0, "failed"),
    ],
)
def test_equal_outputs_of_a_choice_do_not_prove_that_inputs_are_ignored(
    precision: Precision, ratio: float, outcome: str
) -> None:
    evidence = Evidence(case=a_case(precision=precision), launches=(off(ratio),))
    (reading,) = depends_on_inputs.CHECK.outcomes(evidence)
    assert reading.outcome == outcome
    assert f"{ratio:.2g}" in reading.reading

"""A time limit may leave fewer rounds than a time may rest on; what any launch tells is known all the same."""

import pytest

from expectations.results import a_result, outcome_of


@pytest.mark.parametrize(
    ("metric", "bound", "outcome"),
    [("kernelsPerCall", "7", "met"), ("kernelsPerCall", "6", "not-met"), ("seconds", "1", "undecided")],
)
def test_times_need_rounds_and_counts_do_not(metric: str, bound: str, outcome: str) -> None:
    early = a_result().model_copy(update={"rounds": 1})
    found, sentence = outcome_of(early, metric, at_most=bound)
    assert found == outcome
    assert ("1 of at least" in sentence) is (outcome == "undecided")

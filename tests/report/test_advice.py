"""Advice is given where it helps, and nowhere else."""

import pytest

from accelbench.api.result import Certificate, Check
from accelbench.report import html, view
from report import sample
from report.scenarios import SUMMARIES

LIMIT = "--processors"
DECIDED = sample.comparison("jax/jit", "faster", "2", "1.9", "2.1")


@pytest.mark.parametrize(
    ("used", "there", "advised"),
    [("2", "2", True), ("1", "2", False), ("4", "8", False), ("1", "1", False)],
    ids=["all", "one of two", "some", "the only one"],
)
def test_fewer_processors_are_advised_only_if_launches_use_all_of_several(used: str, there: str, advised: bool) -> None:
    disturbed = SUMMARIES["discarded rounds left no verdict"]
    fingerprint = {**sample.FINGERPRINT, "cpusUsed": used, "cpus": there}
    advice = view.remarks(disturbed.model_copy(update={"fingerprint": fingerprint}))[1]
    assert (LIMIT in advice) is advised


def test_launches_in_two_groups_cause_advice_even_if_all_is_decided() -> None:
    first, *others = sample.result().variants
    launches = tuple(
        launch.model_copy(update={"seconds": "0.0018"}) if launch.round > 4 else launch for launch in first.launches
    )
    grouped = (first.model_copy(update={"launches": launches}), *others)
    [line] = view.remarks(sample.result(comparisons=(DECIDED,), variants=grouped))
    assert first.name in line
    assert LIMIT in line
    failed = Certificate(checks=(*sample.CHECKS, Check(name="parity", outcome="failed", reading="wrong")))
    assert view.remarks(sample.result(comparisons=(), variants=grouped, certificate=failed)) == ()


def test_nothing_is_advised_if_all_is_decided_or_the_run_was_interrupted() -> None:
    assert view.remarks(sample.result(comparisons=(DECIDED,), stopped="MaximumRoundsReached")) == ()
    assert view.remarks(SUMMARIES["interrupted while undecided"]) == ()
    invalid = sample.result(comparisons=(sample.invalid("jax/jit", "parity"),), stopped="MaximumRoundsReached")
    assert view.remarks(invalid) == ()


def test_noisy_cases_and_variants_are_counted_as_noisy() -> None:
    assert "4 noisy" in html.overview_sentences([sample.noisy(), sample.noisy()])[0]
    (noisy, _) = sample.noisy().comparisons
    uses = ("pytorch/nn", "a/a", "b/b", "c/c", "d/d")
    many = sample.noisy().model_copy(
        update={
            "case": sample.case(uses),
            "variants": tuple(sample.variant(use, "0.001") for use in uses),
            "comparisons": tuple(noisy.model_copy(update={"variant": use}) for use in uses[1:]),
        }
    )
    assert "4 noisy" in view.sentences(many)[1]
    assert sample.noisy().headline.startswith("jax/jit noisy ")
    assert not sample.noisy().valid

"""A verdict that is missing comes with what would bring it."""

from typing import Any

import pytest

from accelbench.api.result import Certificate, Check, Result
from accelbench.report import view
from report import sample


def undecided(stopped: str, **changes: Any) -> Result:
    comparison = sample.comparison("jax/jit", "inconclusive", "1.01", "0.9", "1.2")
    return sample.result(comparisons=(comparison,), stopped=stopped, **changes)


@pytest.mark.parametrize(
    ("stopped", "advice"),
    [
        ("TimeLimitReached", "allow time for more rounds (measurement.timeLimitSeconds: 600 here)"),
        ("NoTimeForRound", "allow time for more rounds (measurement.timeLimitSeconds: 600 here)"),
        ("MaximumRoundsReached", "allow more rounds (measurement.rounds.max: 8 here)"),
        ("TargetMet", "ask for a narrower interval (measurement.targetRelativeError: 1.0 % here)"),
    ],
)
def test_an_interval_that_decides_nothing_comes_with_what_would_narrow_it(stopped: str, advice: str) -> None:
    assert view.remarks(undecided(stopped)) == (f"What to do: {advice}.",)


def test_launches_that_are_not_alike_come_with_how_to_calm_the_machine_once() -> None:
    wild = (sample.variant("pytorch/eager", "0.00117", spread=0.56), sample.variant("jax/jit", "0.000574"))
    [line] = view.remarks(undecided("MaximumRoundsReached", variants=wild))
    assert line == (
        "What to do: launches of pytorch/eager are not alike: end the other work, or leave it some processors "
        "(--processors 1 on a laptop); allow more rounds (measurement.rounds.max: 8 here)."
    )


def test_launches_in_two_groups_come_with_the_same_advice_where_all_is_decided() -> None:
    first, *others = sample.result().variants
    launches = tuple(
        each.model_copy(update={"seconds": "0.0018"}) if each.round > 4 else each for each in first.launches
    )
    decided = sample.comparison("jax/jit", "faster", "2", "1.9", "2.1")
    grouped = (first.model_copy(update={"launches": launches}), *others)
    [line] = view.remarks(sample.result(comparisons=(decided,), variants=grouped))
    assert line.startswith("What to do: launches of pytorch/eager are not alike: end the other work")
    failed = Certificate(checks=(*sample.CHECKS, Check(name="parity", outcome="failed", reading="wrong")))
    assert view.remarks(sample.result(comparisons=(), variants=grouped, certificate=failed)) == ()


def test_nothing_is_advised_where_all_is_decided_or_where_somebody_interrupted() -> None:
    decided = sample.comparison("jax/jit", "faster", "2", "1.9", "2.1")
    assert view.remarks(sample.result(comparisons=(decided,), stopped="MaximumRoundsReached")) == ()
    assert view.remarks(undecided("Interrupted", complete=False)) == ()
    invalid = sample.result(comparisons=(sample.invalid("jax/jit", "parity"),), stopped="MaximumRoundsReached")
    assert view.remarks(invalid) == ()

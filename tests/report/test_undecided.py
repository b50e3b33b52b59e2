"""A verdict that is missing comes with what would bring it."""

from typing import Any

from accelbench.api.result import Certificate, Check, Result
from accelbench.report import view
from report import sample


def undecided(stopped: str, **changes: Any) -> Result:
    comparison = sample.comparison("jax/jit", "inconclusive", "1.01", "0.9", "1.2")
    return sample.result(comparisons=(comparison,), stopped=stopped, **changes)


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

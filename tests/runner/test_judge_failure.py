"""Test that a failed judge is reported as accelbench's own error, and that judged rounds are kept."""

from collections.abc import Callable

import pytest

from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


def test_a_judge_that_fails_later_leaves_the_rounds_judged_before(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=3), judge="raises-in-round-2")
    assert ended.status == 3
    assert ended.headline.state == "failed"
    assert "ZeroDivisionError: the judge cannot divide" in ended.headline.message
    assert ended.log.latest("result") is None
    checkpoint = ended.log.latest("checkpoint", ended.headline.digest)
    assert checkpoint is not None
    assert not checkpoint.complete
    assert checkpoint.rounds == 1
    assert [len(variant.launches) for variant in checkpoint.variants] == [1, 1]
    assert any("ZeroDivisionError" in note for note in checkpoint.notes)
    assert {launch["round"] for launch in ended.launches} == {1, 2}


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("raises", "internal error: the judge ended with status 1: ZeroDivisionError: the judge cannot divide"),
        ("garbage", "internal error: the judge's answer cannot be read"),
        ("is-killed", "the judge was killed"),
    ],
)
def test_launches_that_were_never_judged_have_no_time_and_keep_their_series(run: Run, judge: str, message: str) -> None:
    ended = run(case_of("fine", "fine_2"), judge=judge)
    assert ended.status == 3
    assert ended.headline.message.startswith(message)
    checkpoint = ended.log.latest("checkpoint", ended.headline.digest)
    assert checkpoint is not None
    assert all(variant.seconds is None for variant in checkpoint.variants)
    assert len(ended.launches) == 2
    assert all(len(launch["blocks"]) == 20 for launch in ended.launches)

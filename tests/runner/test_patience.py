"""A launch that has said its last word, or can say none, has ten seconds to end."""

from collections.abc import Callable

import pytest

from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


@pytest.mark.parametrize("behaviour", ["stays", "closes-its-pipe"])
def test_a_launch_that_will_say_no_more_is_ended(run: Run, behaviour: str) -> None:
    ended = run(case_of("fine", behaviour, rounds=1))
    failure = ended.variant(behaviour).failure
    if behaviour == "stays":
        assert failure is None
    else:
        assert failure is not None
        assert failure.reason == "InvalidOutput"
        assert "closed its pipe" in failure.message
    wall = next(float(launch["wallSeconds"]) for launch in ended.launches if launch["variant"] == behaviour)
    assert 10 <= wall < 15

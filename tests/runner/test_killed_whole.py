"""Test that log and headline name the variant and keep its rounds if a kill takes the supervisor as well."""

from collections.abc import Callable

import psutil
import pytest

from accelbench.delivery.killed import NoRunningVariantError, result_of_killed
from accelbench.delivery.log import Headline, PhaseReached, parse_event, read_log
from runner.supervision import Supervised, case_of

NOW = "2026-01-01T00:00:00Z"
KILLED = {"reason": "OutOfMemory", "message": "the container was killed for lack of memory", "now": NOW}


def test_the_running_variant_is_named_and_complete_rounds_are_kept(start: Callable[..., Supervised]) -> None:
    case = case_of("fine", "waits-in-round-2", "fine_2")
    supervised = start(case)
    assert supervised.process.stdout is not None
    lines = []
    for line in iter(supervised.process.stdout.readline, b""):
        lines.append(line.decode().rstrip("\n"))
        event = parse_event(lines[-1])
        if isinstance(event, PhaseReached) and event.phase == "warm-up":
            break
    family = psutil.Process(supervised.process.pid).children(recursive=True)
    for process in (supervised.process, *family):
        process.kill()
    supervised.process.wait()

    headline = supervised.headline()
    assert headline.running == "waits-in-round-2"
    checkpoint = read_log(lines).latest("checkpoint", headline.digest)
    result = result_of_killed(case, checkpoint, headline, **KILLED)
    blamed = result.variants[1]
    assert blamed.failure is not None
    assert (blamed.failure.reason, blamed.failure.round) == ("OutOfMemory", 2)
    assert all(variant.failure is None and variant.seconds for variant in (result.variants[0], result.variants[2]))
    assert [comparison.verdict for comparison in result.comparisons] == [None, "equivalent"]
    assert "waits-in-round-2 failed in round 2 (OutOfMemory)" in result.comparisons[0].sentence
    assert not result.complete
    assert result.rounds == 1
    assert type(result).model_validate_json(result.to_json()) == result


def test_without_a_checkpoint_there_is_still_a_result_that_names_the_variant() -> None:
    headline = Headline(case="all", attempt=1, state="running", running="b", round=1)
    result = result_of_killed(case_of("a", "b"), None, headline, **KILLED)
    assert [variant.failure is not None for variant in result.variants] == [False, True]
    assert result.rounds == 0


def test_no_comparison_is_kept_if_the_baseline_was_running() -> None:
    headline = Headline(case="all", attempt=1, state="running", running="a", round=1)
    result = result_of_killed(case_of("a", "b"), None, headline, **KILLED)
    assert not any(comparison.verdict for comparison in result.comparisons)


@pytest.mark.parametrize(("state", "running"), [("running", None), ("finished", "a"), ("running", "stranger")])
def test_no_variant_is_blamed_if_none_was_running(state: str, running: str | None) -> None:
    headline = Headline(case="all", attempt=1, state=state, running=running, round=1)
    with pytest.raises(NoRunningVariantError):
        result_of_killed(case_of("a", "b"), None, headline, **KILLED)

"""Test that a failure is named, and that the other variants keep their results."""

import re
from collections.abc import Callable

import pytest

from accelbench.delivery.log import PhaseReached
from runner.simulation import Simulation
from runner.supervision import Ended, case_of, processes_below, seed_of

Run = Callable[..., Ended]

FAILURES = {
    "segfaults": ("Killed", "SIGSEGV ended it at __init__.py, line "),
    "killed": ("Killed", "SIGKILL"),
    "exits": ("InvalidOutput", "with status 7"),
    "garbage": ("InvalidOutput", "Traceback"),
    "endless-line": ("InvalidOutput", "bytes of messages, more than a launch may"),
}
SIMULATED_FAILURES = {
    "raises": ("Raised", "ValueError: no such shape (at theirs.py, line 7)"),
    "says-nothing": ("InvalidOutput", "does it call os._exit()?"),
    "exits": ("InvalidOutput", "with status 7 before returning a result: cannot go on"),
    "cut-off": ("InvalidOutput", "cut off"),
    "nan-block": ("InvalidOutput", "cannot be read"),
    "times-nothing": ("InvalidOutput", "without timing a block"),
}


def test_failed_launches_are_named_with_their_reasons_and_do_not_affect_the_others(run: Run) -> None:
    ended = run(case_of("fine", *FAILURES, "fine_2"))
    for behaviour, (reason, message) in FAILURES.items():
        failure = ended.variant(behaviour).failure
        assert failure is not None
        assert (failure.reason, failure.round) == (reason, 1)
        assert message in failure.message
        assert [launch["variant"] for launch in ended.launches].count(behaviour) == 1
    assert ended.status == 0
    assert ended.result.complete
    assert ended.result.rounds == 2
    for other in ("fine", "fine_2"):
        assert ended.variant(other).failure is None
        assert len(ended.variant(other).launches) == 2


@pytest.mark.parametrize("behaviour", SIMULATED_FAILURES)
def test_the_reason_of_a_failure(simulate: Simulation, behaviour: str) -> None:
    ended = simulate(case_of("fine", behaviour, "fine_2"))
    failure = ended.variant(behaviour).failure
    assert failure is not None
    reason, message = SIMULATED_FAILURES[behaviour]
    assert (failure.reason, failure.round) == (reason, 1)
    assert failure.phase == ("setup" if behaviour == "raises" else None)
    assert message in failure.message
    assert [launch.variant for launch in ended.launches].count(behaviour) == 1
    assert ended.result.rounds == 2


def test_a_crash_is_reported_with_its_last_lines_of_code(run: Run) -> None:
    failure = run(case_of("fine", "segfaults")).variant("segfaults").failure
    assert failure is not None
    assert re.search(r"called from scripted_launch\.py, line \d+ in <module>", failure.message)
    assert "Extension modules" not in failure.message


def test_a_baseline_that_fails_leaves_the_other_variants_their_times(simulate: Simulation) -> None:
    ended = simulate(case_of("raises-in-round-2", "fine", "fine_2", rounds=4))
    assert ended.variant("raises-in-round-2").failure is not None
    assert [launch.round for launch in ended.variant("fine").launches] == [1, 2, 3, 4]
    assert all(comparison.verdict is None for comparison in ended.result.comparisons)


@pytest.mark.parametrize(
    ("baseline", "order", "launched"),
    [
        ("killed", ("killed", "fine", "fine_2"), ["killed"]),
        ("fine", ("raises", "fine"), ["raises"]),
        ("fine", ("raises", "killed", "fine"), ["raises", "killed"]),
        ("killed", ("fine", "killed", "fine_2"), ["fine", "killed"]),
    ],
)
def test_a_first_failure_that_leaves_nothing_to_compare_ends_the_case_at_once(
    simulate: Simulation, baseline: str, order: tuple[str, ...], launched: list[str]
) -> None:
    variants = sorted(order, key=lambda variant: variant != baseline)
    ended = simulate(case_of(*variants, seed=seed_of(variants, order)))
    assert ended.result.complete
    assert ended.result.stopped == "NothingToCompare"
    assert [launch.variant for launch in ended.launches] == launched
    failed = {variant.name for variant in ended.result.variants if variant.failure}
    assert failed == set(launched) - {"fine"}
    assert ended.result.notes == ()


def test_a_launch_that_needs_autograd_is_repeated_with_it_as_are_later_ones(simulate: Simulation) -> None:
    ended = simulate(case_of("fine", "computes-gradients", rounds=3))
    variant = ended.variant("computes-gradients")
    assert variant.failure is None
    assert [launch.round for launch in variant.launches] == [1, 2, 3]
    failing_calls = [event for event in ended.events if isinstance(event, PhaseReached) and event.phase == "first-step"]
    assert len(failing_calls) == 1


def test_a_failure_while_blocks_are_timed_ends_no_round(simulate: Simulation) -> None:
    ended = simulate(case_of("crashes-in-steady", "fine", "fine_2"))
    assert ended.variant("crashes-in-steady").failure is not None
    assert [launch.round for launch in ended.variant("fine").launches] == [1, 2]


def test_a_variant_that_fails_in_a_later_round_is_not_launched_again(simulate: Simulation) -> None:
    ended = simulate(case_of("fine", "raises-in-round-2", rounds=4))
    variant = ended.variant("raises-in-round-2")
    assert variant.failure is not None
    assert variant.failure.round == 2
    assert [launch.round for launch in variant.launches] == [1]
    assert [launch.round for launch in ended.variant("fine").launches] == [1, 2, 3, 4]


def test_measuring_stops_when_every_variant_has_failed(simulate: Simulation) -> None:
    ended = simulate(case_of("raises-in-round-2", "crashes-in-steady", rounds=9))
    assert ended.result.stopped == "NothingToCompare"
    assert len(ended.launches) == 3


@pytest.mark.slow
def test_a_launch_that_hangs_is_killed_and_its_failure_names_the_line(run: Run) -> None:
    ended = run(case_of("fine", "hangs", "fine_2", limit=8))
    failure = ended.variant("hangs").failure
    assert failure is not None
    assert failure.reason == "TimedOut"
    assert re.search(r"it was at scripted_launch\.py, line \d+ in hang_in_a_named_function", failure.message)
    assert failure.phase == "setup"
    assert ended.variant("fine").seconds is not None
    assert ended.variant("fine_2").seconds is not None
    assert processes_below(ended.work) == []


def test_a_finished_launch_does_not_wait_for_a_grandchild_that_holds_its_pipe(run: Run) -> None:
    ended = run(case_of("fine", "grandchild"))
    assert ended.variant("grandchild").failure is None
    assert processes_below(ended.work) == []


def test_a_crash_after_the_final_message_does_not_undo_the_measurement(run: Run) -> None:
    ended = run(case_of("fine", "crashes-after-done"))
    assert ended.variant("crashes-after-done").failure is None
    assert len(ended.variant("crashes-after-done").launches) == 2


def test_absurd_facts_of_a_launch_are_ignored(simulate: Simulation) -> None:
    ended = simulate(case_of("fine", "absurd-facts"))
    variant = ended.variant("absurd-facts")
    assert variant.seconds is not None
    assert variant.numbers.flops_per_second is None
    assert variant.numbers.peak_memory_bytes is None
    assert ended.result.unit == "step"


def test_a_launch_that_cannot_be_started_is_an_internal_error(run: Run) -> None:
    ended = run(case_of("fine", "fine_2"), launch=["/nonexistent/python"])
    assert ended.status == 3
    assert ended.headline.state == "failed"
    assert "/nonexistent/python" in ended.headline.message

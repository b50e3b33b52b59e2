from dataclasses import replace
from typing import Any

import pytest

from accelbench.api.result import Failure
from accelbench.api.run import BenchmarkRunStatus, Condition
from accelbench.document import timestamp
from accelbench_operator.runs.decide import decide
from accelbench_operator.runs.events import event_manifest, transitions
from accelbench_operator.runs.status import RunProgress, progress_status, refused_status
from accelbench_operator.runs.summary import Summary
from operator_world.builders import NOW, UID, make_attempt, make_job, make_plan, make_summary, observe, running


def status_with(*results: Summary, sizes: tuple[int, ...] = (64,), **attempt: Any) -> BenchmarkRunStatus:
    plan = make_plan(sizes=sizes)
    attempts = tuple(make_attempt(plan, index, **attempt) for index in range(len(sizes)))
    return decide(plan, BenchmarkRunStatus(attempts=attempts), observe(results=results), NOW, 1).status


def reason(status: BenchmarkRunStatus) -> tuple[str, str]:
    succeeded = next(condition for condition in status.conditions if condition.type == "Succeeded")
    return succeeded.status, succeeded.reason


FAILED = Failure(reason="OutOfMemory", message="too big", round=2)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, ("True", "Succeeded")),
        ({"failure": FAILED}, ("False", "VariantFailed")),
        ({"complete": False}, ("False", "Incomplete")),
        ({"not_met": ("speedup of jax/jit is 2, at least 3 was expected",)}, ("False", "ExpectationNotMet")),
    ],
)
def test_the_reason_names_the_kind_of_failure(result: dict[str, Any], expected: tuple[str, str]) -> None:
    assert reason(status_with(make_summary(make_plan(), **result))) == expected


def test_a_run_does_not_succeed_if_a_result_was_deleted() -> None:
    plan = make_plan(sizes=(64, 128))
    measured = tuple(case.name for case in plan.cases)
    progress = RunProgress((), measured, {measured[1]: make_summary(plan, 1)}, NOW, None, False, "")
    status = progress_status(plan, BenchmarkRunStatus(), progress)
    assert reason(status) == ("False", "ResultMissing")
    assert plan.cases[0].name in next(each.message for each in status.conditions if each.type == "Succeeded")


def test_a_run_does_not_succeed_if_its_script_changed_between_two_cases() -> None:
    plan = make_plan(sizes=(64, 128))
    both = [replace(make_summary(plan, index), source=f"sha256:{index}") for index in range(2)]
    status = status_with(*both, sizes=(64, 128))
    assert reason(status) == ("False", "WorkloadChanged")
    message = next(each.message for each in status.conditions if each.type == "Succeeded")
    assert "the workload's file had the digests sha256:0, sha256:1" in message
    assert reason(status_with(both[0], replace(both[1], source=both[0].source), sizes=(64, 128))) == (
        "True",
        "Succeeded",
    )


def test_the_status_of_a_refused_run_mentions_results_that_are_kept() -> None:
    measured = refused_status("no such size", BenchmarkRunStatus(measured_cases=("a",)), NOW, 2)
    nothing = refused_status("no such size", BenchmarkRunStatus(), NOW, 2)
    messages = [
        next(each.message for each in status.conditions if each.type == "Finished") for status in (measured, nothing)
    ]
    assert [each.partition(";")[0] for each in messages] == ["stored results are kept", "nothing was measured"]


def test_conditions_of_other_controllers_never_make_a_status_too_long() -> None:
    usual = {"status": "True", "reason": "Yes", "message": "", "last_transition_time": timestamp(NOW)}
    before = BenchmarkRunStatus(
        conditions=tuple(Condition(type=f"example.com/C{number}", **usual) for number in range(32))
    )
    plan = make_plan()
    progress = RunProgress((), (), {}, NOW, None, False, "")
    status = progress_status(plan, before, progress)
    assert [each.type for each in status.conditions[:4]] == ["Accepted", "Finished", "Succeeded", "Reconciling"]
    assert len(status.conditions) == 32


def test_a_run_that_accepted_noise_and_had_noise_does_not_succeed_and_gives_the_reason() -> None:
    quiet = make_summary(make_plan())
    noisy = replace(
        quiet,
        valid=False,
        noisy=True,
        comparisons=(quiet.comparisons[0].model_copy(update={"verdict": None, "noisy": True}),),
    )
    status = status_with(noisy)
    assert reason(status) == ("False", "Noisy")
    assert status.comparisons[0].verdict == "noisy"
    assert status.headline == "jax/jit noisy 2.00x (1.90 to 2.10)"
    invalid = replace(
        noisy, comparisons=(quiet.comparisons[0].model_copy(update={"verdict": None, "invalid": ("parity",)}),)
    )
    assert reason(status_with(invalid)) == ("False", "InvalidMeasurement")


def message_of(status: BenchmarkRunStatus) -> str:
    return next(entry.message for entry in status.conditions if entry.type == "Succeeded")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"failed_checks": ("shared-device", "shared-device"), "rounds": 0}, "shared-device failed"),
        ({"rounds": 1}, "1 round counted, too few for a verdict"),
        ({"rounds": 0}, "no round counted, so nothing has a time"),
        (
            {"rounds": 1, "quarantined": 2},
            "1 round counted, too few for a verdict; 2 rounds disturbed by other load, and discarded",
        ),
    ],
)
def test_a_problem_of_a_measurement_is_mentioned_once(found: dict[str, Any], problem: str) -> None:
    summary = replace(make_summary(make_plan()), valid=False, **found)
    assert message_of(status_with(summary)) == f"{summary.case}: {problem}; BenchmarkResult {summary.name} says more"


def test_a_speedup_without_an_interval_is_in_no_headline() -> None:
    plan = make_plan(sizes=(1, 2))
    one, two = (make_summary(plan, index) for index in range(2))
    (lone,) = (each.model_copy(update=dict.fromkeys(("verdict", "lower", "upper"))) for each in two.comparisons)
    alone = replace(two, valid=False, comparisons=(lone,))
    assert status_with(alone, sizes=(2,)).headline == "jax/jit no verdict"
    assert status_with(one, alone, sizes=(1, 2)).headline == ("jax/jit faster in 1, no verdict in 1 of 2, 2.00x")


def test_a_success_mentions_expectations_only_if_there_are_any() -> None:
    def success(**run: Any) -> str:
        plan = make_plan(**run)
        observed = observe(results=[make_summary(plan)])
        status = BenchmarkRunStatus(attempts=(make_attempt(plan),))
        return message_of(decide(plan, status, observed, NOW, 1).status)

    expected = [{"metric": "speedup", "variant": "jax/jit", "atLeast": "1"}]
    assert success() == "every case has a valid result"
    assert success(expectations=expected) == "every case has a valid result, and every expectation is met"


def test_cases_are_counted_in_words() -> None:
    def accepted(*sizes: int) -> str:
        return next(each.message for each in status_with(sizes=sizes).conditions if each.type == "Accepted")

    assert (accepted(1), accepted(1, 2)) == ("1 case on profile cpu", "2 cases on profile cpu")


def test_the_message_names_the_failed_variant_and_the_result_with_the_reason() -> None:
    summary = make_summary(make_plan(), failure=FAILED)
    message = next(entry.message for entry in status_with(summary).conditions if entry.type == "Succeeded")

    assert "jax/jit OutOfMemory" in message
    assert summary.name in message


def test_the_headline_names_a_failed_variant() -> None:
    status = status_with(make_summary(make_plan(), failure=FAILED))

    assert status.comparisons[0].verdict == "failed"
    assert status.headline == "jax/jit failed"


def test_the_table_shows_each_comparison_with_its_interval() -> None:
    (row,) = status_with(make_summary(make_plan())).comparisons

    assert (row.variant, row.verdict, row.speedup, row.interval, row.rounds) == (
        "jax/jit",
        "faster",
        "2.00x",
        "1.90 to 2.10",
        5,
    )


def test_the_table_is_bounded_and_counts_the_omitted_rows() -> None:
    sizes = tuple(range(1, 101))
    plan = make_plan(sizes=sizes)
    status = status_with(*(make_summary(plan, index) for index in range(100)), sizes=sizes)

    assert len(status.comparisons) == 64
    assert status.comparisons_omitted == 36


def test_the_headline_of_many_cases_counts_verdicts() -> None:
    plan = make_plan(sizes=(1, 2))
    status = status_with(make_summary(plan, 0, speedup="2"), make_summary(plan, 1, speedup="4"), sizes=(1, 2))

    assert status.headline == "jax/jit faster in 2 of 2, 2.00x to 4.00x"


def test_a_restarted_operator_derives_the_same_status_from_what_is_stored() -> None:
    plan = make_plan(sizes=(1, 2))
    attempts = (make_attempt(plan, 0), make_attempt(plan, 1))
    observed = observe([make_job(plan, attempts[1])], [running(attempts[1])], [make_summary(plan, 0)])
    before = decide(plan, BenchmarkRunStatus(attempts=attempts), observed, NOW, 1).status
    written = BenchmarkRunStatus.model_validate_json(before.to_json())

    assert decide(make_plan(sizes=(1, 2)), written, observed, NOW, 1).status == before


def test_a_transition_is_one_event_whose_name_does_not_depend_on_the_replica() -> None:
    first = status_with()
    done = status_with(make_summary(make_plan()))
    events = list(transitions(first, done))

    assert [transition.reason for transition in events] == ["Succeeded"]
    assert events[0].message == "jax/jit faster 2.00x (1.90 to 2.10); every case has a valid result"
    assert list(transitions(done, done)) == []
    names = {event_manifest(events[0], "team", "chain", UID, NOW)["metadata"]["name"] for _ in range(2)}
    assert len(names) == 1


def test_a_lost_attempt_is_a_warning_event_that_names_its_case() -> None:
    before = status_with()
    lost = status_with(reason="NodeLost", message="gone", number=2)
    (event,) = transitions(before, lost)

    assert (event.kind, event.reason) == ("Warning", "NodeLost")
    assert "attempt 1: gone" in event.message


def test_the_headline_is_the_observation_if_nothing_was_timed() -> None:
    summary = replace(make_summary(make_plan()), comparisons=(), observations=("jax/jit raised KeyReuseError",))
    status = status_with(summary)
    assert status.headline == "jax/jit raised KeyReuseError"
    assert status.comparisons == ()


def test_the_headline_of_several_cases_counts_those_with_the_observation() -> None:
    plan = make_plan(sizes=(1, 2, 3))
    found = [("jax/jit compiled once in 4 calls",), ("jax/jit compiled once in 4 calls",), ("jax/jit raised E",)]
    summaries = [
        replace(make_summary(plan, index), comparisons=(), observations=observed)
        for index, observed in enumerate(found)
    ]
    headline = status_with(*summaries, sizes=(1, 2, 3)).headline
    assert headline == "jax/jit compiled once in 4 calls in 2 of 3 cases; jax/jit raised E in 1 of 3 cases"

"""A result is made of a pod's log and headline, and of either if the other is missing."""

from dataclasses import replace

import pytest

from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import Result
from accelbench.delivery.log import Headline, read_log
from accelbench_operator.runs.collect import read_outcome
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.job import attempted_case
from accelbench_operator.runs.observed import ObservedPod
from operator_world.builders import (
    ALL_RETRIES,
    NO_RETRIES,
    ended,
    make_attempt,
    make_headline,
    make_log,
    make_plan,
    make_result,
)

PLAN = make_plan()
CASE = attempted_case(PLAN.cases[0], 1)
RESULT = make_result(CASE)
CHECKPOINT = make_result(CASE, complete=False)
FINISHED = ended(make_attempt(PLAN), message=make_headline(RESULT))
LATER = "2026-03-01T13:00:00Z"


def collect(pod: ObservedPod, log: str | None, *, is_last: bool = False) -> Result | AttemptFailure:
    documents = None if log is None else read_log(log.split("\n"))
    return read_outcome(CASE, pod, documents, retries=NO_RETRIES if is_last else ALL_RETRIES, now=LATER)


def result_of(found: Result | AttemptFailure) -> Result:
    assert isinstance(found, Result), found
    return found


def loss_of(found: Result | AttemptFailure) -> AttemptFailure:
    assert isinstance(found, AttemptFailure)
    return found


def without_result(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if " result " not in line)


def test_a_whole_result_is_taken_as_it_was_written() -> None:
    assert collect(FINISHED, make_log(RESULT, CHECKPOINT)) == RESULT


def test_output_of_the_variants_between_its_lines_does_not_matter() -> None:
    noisy = "\n".join(f"{line}\nwarning: something" for line in make_log(RESULT).splitlines())

    assert collect(FINISHED, noisy) == RESULT


def test_a_result_whose_digest_is_not_the_headlines_is_not_believed() -> None:
    forged = make_result(CASE, speedup="2.05")
    found = result_of(collect(FINISHED, make_log(forged)))

    assert not found.complete
    assert all(comparison.verdict is None for comparison in found.comparisons)


CLAIMS = {
    "origin.series": {"origin": CASE.origin.model_copy(update={"series": "somebody-elses"})},
    "origin.namespace": {"origin": CASE.origin.model_copy(update={"namespace": "another"})},
    "workload": {"workload": "xor"},
    "parameters.size": {"parameters": {"size": 1}},
    "accelerator.devices": {"accelerator": CASE.accelerator.model_copy(update={"devices": 8})},
    "measurement.roundsMax": {"measurement": CASE.measurement.model_copy(update={"rounds_max": 2})},
}


@pytest.mark.parametrize(("field", "claim"), CLAIMS.items(), ids=CLAIMS.keys())
@pytest.mark.parametrize("is_last", [False, True])
def test_a_result_of_another_case_document_ends_the_case_and_names_the_field(
    field: str, claim: dict[str, object], is_last: bool
) -> None:
    forged = RESULT.model_copy(update={"case": CASE.model_copy(update=claim)})
    for message in (make_headline(forged), ""):
        pod = ended(make_attempt(PLAN), message=message)
        failure = loss_of(collect(pod, make_log(forged), is_last=is_last))
        assert (failure.reason, failure.reason.retry_limit) == ("CaseChanged", None)
        assert f"{field} is " in failure.message


def test_a_checkpoint_of_another_case_document_is_not_used() -> None:
    other = CASE.model_copy(update={"measurement": CASE.measurement.model_copy(update={"rounds_max": 2})})
    log = without_result(make_log(RESULT, make_result(other, complete=False)))
    pod = ended(make_attempt(PLAN), 137, reason="ContainerStatusUnknown")

    assert loss_of(collect(pod, log, is_last=True)).reason == "ResultLost"


def test_additions_of_the_runner_to_its_environments_do_not_change_the_case() -> None:
    asked = CaseEnvironment(name="before", requirements=("jax==0.9.2",), interpreter="/env/bin/python")
    found = asked.model_copy(update={"packages": {"jax": "0.9.2"}, "python_version": "3.13", "lock_digest": "x"})
    case = CASE.model_copy(update={"environments": (asked,)})
    result = RESULT.model_copy(update={"case": case.model_copy(update={"environments": (found,)})})
    log = read_log(make_log(result).splitlines())
    pod = ended(make_attempt(PLAN), message=make_headline(result))

    assert read_outcome(case, pod, log, retries=ALL_RETRIES, now=LATER) == result


@pytest.mark.parametrize("foreign", ["name", "uid", "attempt"])
def test_a_result_of_another_case_or_attempt_is_not_believed(foreign: str) -> None:
    origin = {"uid": {"uid": "another"}, "attempt": {"attempt": 2}}.get(foreign, {})
    update = {"origin": CASE.origin.model_copy(update=origin)} | ({"name": "other"} if foreign == "name" else {})
    other = make_result(CASE.model_copy(update=update))
    pod = replace(FINISHED, message="")

    assert loss_of(collect(pod, make_log(other))).reason == "ResultLost"


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_damaged_log_leaves_the_headline_without_verdict_and_the_damage_is_named(damage: str) -> None:
    lines = make_log(RESULT).splitlines()
    index = next(number for number, line in enumerate(lines) if " result " in line)
    if damage == "truncated":
        words = lines[index].split(" ")
        words[3] = "1/2"
        lines[index] = " ".join(words)
    else:
        lines[index] = lines[index][:-8] + "AAAAAAA="
    found = result_of(collect(FINISHED, "\n".join(lines)))

    assert not found.complete
    assert damage in found.notes[0]
    (comparison,) = found.comparisons
    assert comparison.verdict is None
    assert "reported faster, 2.00x (1.90 to 2.10)" in comparison.sentence


@pytest.mark.parametrize("log", [None, "", "only noise"])
def test_a_lost_log_leaves_the_headline_marked_as_incomplete(log: str | None) -> None:
    found = result_of(collect(FINISHED, log))

    assert not found.complete
    assert "only the runner's headline is left" in found.notes[0]


def test_a_result_without_headline_is_taken_when_its_own_digest_holds() -> None:
    assert collect(replace(FINISHED, message=""), make_log(RESULT)) == RESULT


@pytest.mark.parametrize("log", [None, "unable to retrieve container logs for containerd://0123"])
def test_a_case_whose_pod_and_log_are_gone_is_tried_again_while_retries_are_left(log: str | None) -> None:
    pod = replace(FINISHED, disruption="PreemptionByScheduler: preempting", deletion_time=FINISHED.ended_at)
    found = loss_of(collect(pod, log))
    assert (found.reason, "PreemptionByScheduler" in found.message) == ("Preempted", True)
    assert loss_of(collect(replace(pod, disruption=""), log)).reason == "ResultLost"
    assert not result_of(collect(pod, log, is_last=True)).complete


def test_a_lost_log_and_headline_cause_a_new_attempt_and_never_a_success() -> None:
    found = loss_of(collect(replace(FINISHED, message=""), None))

    assert (found.reason, found.reason.retry_limit) == ("ResultLost", "infrastructureRetries")


def test_a_container_killed_for_memory_keeps_its_rounds_and_names_the_variant() -> None:
    message = make_headline(RESULT, state="running", running="jax/jit", digest=None)
    pod = ended(make_attempt(PLAN), 137, reason="OOMKilled", message=message)
    found = result_of(collect(pod, without_result(make_log(RESULT, CHECKPOINT))))
    failures = {variant.name: variant.failure for variant in found.variants}

    assert failures["pytorch/eager"] is None
    assert failures["jax/jit"] is not None
    assert failures["jax/jit"].reason == "OutOfMemory"
    assert found.variants[0].seconds == CHECKPOINT.variants[0].seconds


def test_a_container_killed_for_memory_before_its_first_round_still_names_the_variant() -> None:
    message = make_headline(RESULT, state="running", running="pytorch/eager", digest=None, round=1)
    pod = ended(make_attempt(PLAN), 137, reason="OOMKilled", message=message)
    found = result_of(collect(pod, ""))

    assert found.variants[0].failure is not None
    assert found.rounds == 0


def test_a_pod_that_reached_its_deadline_failed_its_variant_by_timeout() -> None:
    message = make_headline(RESULT, state="running", running="jax/jit", digest=None)
    pod = ended(make_attempt(PLAN), 137, pod_reason="DeadlineExceeded", message=message)
    found = result_of(collect(pod, without_result(make_log(RESULT, CHECKPOINT))))

    assert found.variants[1].failure is not None
    assert found.variants[1].failure.reason == "TimedOut"


def test_a_partial_result_of_an_evicted_pod_is_tried_again_while_retries_are_left() -> None:
    partial = make_result(CASE, complete=False)
    pod = ended(make_attempt(PLAN), 143, disruption="EvictionByEvictionAPI: drained", message=make_headline(partial))

    assert loss_of(collect(pod, make_log(partial))).reason == "Disrupted"
    assert collect(pod, make_log(partial), is_last=True) == partial


def test_a_case_that_the_runner_could_not_read_is_refused_with_its_message() -> None:
    message = Headline(case="", attempt=0, state="failed", message="mine.py, line 3: NameError").to_message()
    found = loss_of(collect(ended(make_attempt(PLAN), 2, message=message), ""))

    assert (found.reason, found.reason.retry_limit) == ("InvalidCase", None)
    assert found.message == "mine.py, line 3: NameError. Correct the spec"


def test_a_pod_that_reached_its_deadline_keeps_its_complete_rounds() -> None:
    partial = make_result(CASE, complete=False)
    pod = ended(make_attempt(PLAN), 143, pod_reason="DeadlineExceeded", message=make_headline(partial))

    assert collect(pod, make_log(partial)) == partial


def test_a_partial_result_of_a_deleted_pod_is_tried_again_while_retries_are_left() -> None:
    partial = make_result(CASE, complete=False)
    pod = ended(make_attempt(PLAN), 143, message=make_headline(partial))

    found = loss_of(collect(pod, make_log(partial)))
    assert (found.reason, found.reason.retry_limit) == ("Interrupted", "infrastructureRetries")
    assert collect(pod, make_log(partial), is_last=True) == partial


def test_a_whole_result_counts_even_where_the_pod_was_evicted_afterwards() -> None:
    pod = replace(FINISHED, disruption="EvictionByEvictionAPI: drained", exit_code=143)

    assert collect(pod, make_log(RESULT)) == RESULT


def test_the_checkpoint_of_the_last_attempt_is_used_and_marked_as_partial() -> None:
    pod = ended(make_attempt(PLAN), 137, reason="ContainerStatusUnknown")
    log = without_result(make_log(RESULT, CHECKPOINT))

    assert isinstance(collect(pod, log), AttemptFailure)
    found = result_of(collect(pod, log, is_last=True))
    assert not found.complete
    assert "ResultLost" in found.notes[-1]


def test_a_case_that_the_runner_refuses_is_not_tried_again() -> None:
    message = make_headline(RESULT, state="failed", digest=None, message="size: must be at least 1")
    found = loss_of(collect(ended(make_attempt(PLAN), 2, message=message), ""))

    assert (found.reason, found.reason.retry_limit) == ("InvalidCase", None)
    assert "size: must be at least 1" in found.message


def test_an_internal_error_is_not_tried_again_and_asks_for_a_report() -> None:
    found = loss_of(collect(ended(make_attempt(PLAN), 3), ""))

    assert (found.reason, found.reason.retry_limit) == ("RunnerError", None)
    assert "kubectl logs" in found.message


def test_a_pod_that_never_ran_is_a_failure_of_the_infrastructure() -> None:
    pod = replace(FINISHED, message="", exit_code=None, started_at=None, phase="Failed", pod_reason="OutOfcpu")
    found = loss_of(collect(pod, None))

    assert (found.reason, found.reason.retry_limit) == ("NotStarted", "infrastructureRetries")
    assert "OutOfcpu" in found.message


@pytest.mark.parametrize("message", ["", "{", '{"format": "other"}', "x" * 3000])
def test_a_termination_message_that_is_no_headline_is_ignored(message: str) -> None:
    assert collect(replace(FINISHED, message=message), make_log(RESULT)) == RESULT

"""Each cause for which the cluster ends a pod has a reason, the cluster's message and a remedy."""

from typing import Any

import pytest

from accelbench.api.result import Result
from accelbench.delivery.log import read_log
from accelbench_operator.runs.collect import read_outcome
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.job import attempted_case
from operator_world.builders import (
    ALL_RETRIES,
    NO_RETRIES,
    NOW,
    ended,
    make_attempt,
    make_headline,
    make_log,
    make_plan,
    make_result,
)

PLAN = make_plan()
CASE = attempted_case(PLAN.cases[0], 1)
ATTEMPT = make_attempt(PLAN)
LATER = "2026-03-01T13:00:00Z"
BY_KUBELET = "TerminationByKubelet: The node was low on resource"
INFRASTRUCTURE, DISRUPTION = "infrastructureRetries", "disruptionRetries"


def failure_of(exit_code: int = 137, **pod: Any) -> AttemptFailure:
    found = read_outcome(CASE, ended(ATTEMPT, exit_code, **pod), None, retries=ALL_RETRIES, now=LATER)
    assert isinstance(found, AttemptFailure)
    return found


@pytest.mark.parametrize(
    ("pod_reason", "pod_message", "disruption", "reason", "retries"),
    [
        ("Evicted", 'Usage of EmptyDir volume "x" exceeds the limit "8Gi". ', "", "StorageLimitExceeded", None),
        ("Evicted", "Pod ephemeral local storage usage exceeds the total", "", "StorageLimitExceeded", None),
        ("Evicted", "Container runner exceeded its local ephemeral storage", "", "StorageLimitExceeded", None),
        ("Evicted", "Container proxy exceeded its local ephemeral storage", "", "AddedContainerFailed", INFRASTRUCTURE),
        ("Evicted", "The node was low on resource: memory. ", BY_KUBELET, "NodePressure", INFRASTRUCTURE),
        ("Evicted", "The node had condition: [DiskPressure]. ", "", "NodePressure", INFRASTRUCTURE),
        ("Preempting", "Preempted in order to admit critical pod", "TerminationByKubelet", "Preempted", DISRUPTION),
        ("", "", "PreemptionByScheduler: default-scheduler: preempting", "Preempted", DISRUPTION),
        ("Terminated", "imminent node shutdown", "TerminationByKubelet: x", "NodeReclaimed", DISRUPTION),
        ("", "", "DeletionByTaintManager: Taint manager: deleting", "NodeReclaimed", DISRUPTION),
        ("", "", "DeletionByPodGC: PodGC: node no longer exists", "NodeReclaimed", DISRUPTION),
        ("", "", "EvictionByEvictionAPI: Eviction API: evicting", "Disrupted", DISRUPTION),
    ],
)
def test_each_cause_has_a_reason_and_keeps_the_clusters_message(
    pod_reason: str, pod_message: str, disruption: str, reason: str, retries: str | None
) -> None:
    failure = failure_of(pod_reason=pod_reason, pod_message=pod_message, disruption=disruption, node="far")
    assert (failure.reason, failure.reason.retry_limit) == (reason, retries)
    assert (pod_message or disruption).strip(". ") in failure.message
    assert "on node far" in failure.message
    assert failure.reason.remedy in failure.message


def test_rounds_before_the_disk_limit_are_kept_because_no_attempt_follows() -> None:
    pod = ended(ATTEMPT, 137, pod_reason="Evicted", pod_message="Usage of EmptyDir volume exceeds the limit")
    checkpoint = make_result(CASE, complete=False)
    log = "\n".join(line for line in make_log(make_result(CASE), checkpoint).splitlines() if " result " not in line)
    found = read_outcome(CASE, pod, read_log(log.splitlines()), retries=ALL_RETRIES, now=LATER)
    assert isinstance(found, Result)
    assert "StorageLimitExceeded" in found.notes[-1]


def test_an_interrupted_result_is_kept_only_if_its_own_kind_of_retry_is_used_up() -> None:
    partial = make_result(CASE, complete=False)
    pod = ended(ATTEMPT, 143, disruption="EvictionByEvictionAPI: drained", message=make_headline(partial))
    for retries, kept in ((ALL_RETRIES, False), ({DISRUPTION}, False), ({INFRASTRUCTURE}, True), (NO_RETRIES, True)):
        found = read_outcome(CASE, pod, read_log(make_log(partial).splitlines()), retries=retries, now=LATER)
        assert isinstance(found, Result) is kept


def test_a_container_that_can_start_on_no_node_is_not_tried_again() -> None:
    message = 'failed to create containerd task: exec: "python": executable file not found in $PATH'
    failure = failure_of(128, reason="StartError", message=message, started_at=None)
    assert (failure.reason, failure.reason.retry_limit) == ("StartError", None)
    assert message in failure.message


def test_a_pod_that_waited_until_its_deadline_is_not_tried_again_and_its_reason_names_what_it_waited_for() -> None:
    failure = failure_of(
        started_at=None,
        pod_reason="DeadlineExceeded",
        pod_message="Pod was active on the node longer than the specified deadline",
        waiting="ErrImagePull: unauthorized",
    )
    assert (failure.reason, failure.reason.retry_limit) == ("StartDeadlineExceeded", None)
    assert "It waited for this: ErrImagePull: unauthorized" in failure.message


def test_a_pod_whose_init_container_failed_names_it_with_its_message() -> None:
    failure = failure_of(
        started_at=None,
        waiting="PodInitializing",
        init_state="vault-agent-init failed with exit code 3 (Error: permission denied)",
    )
    assert (failure.reason, failure.reason.retry_limit) == ("AddedContainerFailed", INFRASTRUCTURE)
    assert "init container vault-agent-init failed with exit code 3 (Error: permission denied)" in failure.message


def test_a_missing_result_names_another_container_that_failed() -> None:
    failure = failure_of(143, failed_containers=("proxy failed with exit code 9 (Error)",))
    assert failure.reason == "ResultLost"
    assert "proxy failed with exit code 9 (Error)" in failure.message


def test_the_exit_code_of_a_container_that_never_ran_is_not_the_runners() -> None:
    failure = failure_of(137, reason="ContainerStatusUnknown", started_at=None, pod_reason="NodeAffinity")
    assert failure.reason == "NotStarted"


def test_a_runner_that_hung_until_it_ended_itself_timed_out_its_variant() -> None:
    result = make_result(CASE)
    message = make_headline(result, state="running", running="jax/jit", digest=None)
    limit = PLAN.runner_limit
    for lasted, reason in ((limit, "TimedOut"), (limit / 2, None)):
        pod = ended(ATTEMPT, 1, message=message, ended_at=NOW + lasted)
        found = read_outcome(CASE, pod, None, retries=ALL_RETRIES, now=LATER)
        failures = [each.failure.reason for each in found.variants if each.failure] if isinstance(found, Result) else []
        assert failures == ([reason] if reason else [])

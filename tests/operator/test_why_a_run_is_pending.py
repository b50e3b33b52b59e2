from typing import Any

import pytest

from accelbench.api.case import ConfigMapKey
from accelbench.api.profiles import Profiles, parse_profiles
from accelbench_operator.runs.event_messages import summarize_event
from accelbench_operator.runs.observed import observe_pod
from accelbench_operator.runs.pending import explain_pending
from operator_world.builders import make_attempt, make_job, make_plan

PLAN = make_plan()
ATTEMPT = make_attempt(PLAN)
JOB = make_job(PLAN, ATTEMPT)
SELECTING = parse_profiles("a100: {platform: cuda, resource: nvidia.com/gpu, nodeSelector: {gpu: a100}}", "x")
PROFILE = Profiles(SELECTING).get("a100")


def pod(*conditions: dict[str, str], waiting: dict[str, str] | None = None) -> Any:
    status: dict[str, Any] = {"phase": "Pending", "conditions": list(conditions)}
    if waiting:
        status["containerStatuses"] = [{"name": "runner", "state": {"waiting": waiting}}]
    metadata = {"name": "p", "namespace": "team", "creationTimestamp": "2026-03-01T12:00:00Z"}
    return observe_pod({"metadata": metadata, "status": status})


def unschedulable(message: str) -> Any:
    return pod({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message})


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        (unschedulable("0/4 nodes are available: 4 Insufficient nvidia.com/gpu."), "install its device plugin"),
        (unschedulable("0/4 nodes are available: 4 Insufficient memory."), "asks for 1 cpu, 4Gi and 8Gi of disk"),
        (unschedulable("0/4 nodes: 4 node(s) didn't match Pod's node affinity/selector."), "selects nodes by gpu=a100"),
        (unschedulable("0/4 nodes: 4 node(s) had untolerated taint {x: }."), "add a toleration"),
        (unschedulable("0/1 nodes: 1 node(s) didn't match pod anti-affinity rules."), "this one waits its turn"),
        (unschedulable("something new"), "No node takes the pod: something new. kubectl describe pod and"),
        (pod(waiting={"reason": "ImagePullBackOff", "message": "not found"}), "Check profile a100's image"),
        (
            pod(waiting={"reason": "CreateContainerConfigError", "message": 'secret "x" not found'}),
            'secret "x" not found',
        ),
        (pod(waiting={"reason": "ContainerCreating"}), "a first pull takes minutes"),
        (pod(), "a first pull takes minutes"),
    ],
)
def test_each_reason_comes_with_a_remedy(waiting: Any, expected: str) -> None:
    assert expected in explain_pending(JOB, waiting, PROFILE)


def test_the_message_about_an_image_stays_the_same_between_two_pulls() -> None:
    why = "ErrImagePull: failed to resolve reference: not found"
    tried = pod(waiting={"reason": "ErrImagePull", "message": why.partition(": ")[2]})
    later = pod(waiting={"reason": "ImagePullBackOff", "message": f'Back-off pulling image "x/y:1": {why}'})
    untold = pod(waiting={"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x/y:1"'})
    assert explain_pending(JOB, tried, PROFILE) == explain_pending(JOB, later, PROFILE)
    assert f"({why})" in explain_pending(JOB, later, PROFILE)
    assert '(ImagePullBackOff: Back-off pulling image "x/y:1")' in explain_pending(JOB, untold, PROFILE)


def injected(state: Any, *, sidecar: bool = False) -> Any:
    name = {"name": "vault-agent-init"}
    spec = {"initContainers": [{**name, "restartPolicy": "Always"} if sidecar else name]}
    status = {
        "phase": "Pending",
        "containerStatuses": [{"name": "runner", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [{**name, "state": state}],
    }
    metadata = {"name": "p", "namespace": "team", "creationTimestamp": "2026-03-01T12:00:00Z"}
    return observe_pod({"metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            {"waiting": {"reason": "ErrImagePull", "message": "unauthorized"}},
            "waits (ErrImagePull: unauthorized)",
        ),
        (
            {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "v": ErrImagePull: no'}},
            "waits (ErrImagePull: no)",
        ),
        ({"running": {}}, "still runs"),
        ({"terminated": {"exitCode": 3, "reason": "Error", "message": "denied"}}, "failed with exit code 3"),
    ],
)
def test_an_injected_init_container_that_delays_the_runner_is_named_with_its_state(state: Any, expected: str) -> None:
    reason = explain_pending(JOB, injected(state), PROFILE)
    assert reason.startswith(f"Init container vault-agent-init {expected}")
    assert "ask whoever runs that webhook" in reason


def test_an_init_container_that_need_not_end_or_has_just_begun_is_not_blamed() -> None:
    preparing = explain_pending(JOB, pod(waiting={"reason": "PodInitializing"}), PROFILE)
    for harmless in (
        injected({"running": {}}, sidecar=True),
        injected({"terminated": {"exitCode": 0, "reason": "Completed"}}),
        injected({"waiting": {"reason": "PodInitializing"}}),
    ):
        assert explain_pending(JOB, harmless, PROFILE) == preparing


def test_a_missing_script_is_named_if_the_pod_cannot_mount_it() -> None:
    script = ConfigMapKey(name="my-workloads", key="softmax.py")
    reason = explain_pending(JOB, pod(waiting={"reason": "ContainerCreating"}), PROFILE, script)
    assert reason.endswith("check that ConfigMap my-workloads exists and has the key softmax.py.")


def test_a_job_without_pod_points_to_quotas_and_webhooks() -> None:
    assert "a quota or an admission webhook" in explain_pending(JOB, None, PROFILE)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("FailedCreate: exceeded quota: few, requested: pods=1", "have the quota raised"),
        ("FailedCreate: no PriorityClass with name urgent was found", "Create that PriorityClass"),
        ('FailedCreate: admission webhook "x" denied the request: no', "Change what the policy names"),
        ('FailedCreate: failed calling webhook "x": connection refused', "That admission webhook does not answer"),
        ("FailedCreate: something new", "kubectl describe job"),
    ],
)
def test_a_refusal_of_a_jobs_pod_is_reported_with_its_message(words: str, expected: str) -> None:
    reason = explain_pending(JOB, None, PROFILE, event_message=words)
    assert reason.startswith(f"Job {JOB.key.name} has no pod yet: {words}. ")
    assert expected in reason


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('Pulling: Pulling image "registry.example/runner:1"', "Images with both frameworks are large"),
        ('FailedMount: configmap "mine" not found', "Create it, and the pod continues by itself"),
    ],
)
def test_the_preparation_of_a_pod_is_reported_with_the_kubelets_message(words: str, expected: str) -> None:
    reason = explain_pending(JOB, pod(), PROFILE, event_message=words)
    assert reason.startswith(f"The node is preparing the pod: {words}. ")
    assert expected in reason


def test_the_newest_event_counts_and_a_warning_before_others_of_its_second() -> None:
    def event(at: str, kind: str, reason: str) -> Any:
        return {"lastTimestamp": at, "type": kind, "reason": reason, "message": "m", "metadata": {}}

    earlier = event("2026-03-01T12:00:00Z", "Warning", "Early")
    warning, other = event("2026-03-01T12:00:09Z", "Warning", "Late"), event("2026-03-01T12:00:09Z", "Normal", "Z")
    assert max(map(summarize_event, [warning, other, earlier])).message == "Late: m"
    assert summarize_event({"eventTime": "2026-03-01T12:00:00.5Z", "reason": "R", "metadata": {}}).message == "R"


def test_a_case_without_a_job_is_reported_as_about_to_get_one() -> None:
    assert explain_pending(None, None, PROFILE) == "Its Job is being created."

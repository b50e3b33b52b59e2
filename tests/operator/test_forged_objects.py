"""A user who may create pods, Jobs and ConfigMaps in a namespace cannot forge a result of another's run there."""

import json
from typing import Any

import pytest

from accelbench.api import labels
from accelbench.plan.names import attempt_name
from cluster.cluster import Cluster
from cluster.wait import wait_until
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, condition, next_pod, succeed, wait_for

pytestmark = pytest.mark.slow

HONEST = "jax/jit faster 2.00x (1.90 to 2.10)"
OF_THE_CONTROLLER = ("job-name", "controller-uid")


def own_labels(pod: Any) -> dict[str, str]:
    """Return the labels of a run's pod, which any user can copy."""
    marks = pod.metadata.labels.items()
    return {name: value for name, value in marks if not name.endswith(OF_THE_CONTROLLER)}


def create(cluster: Cluster, manifest: dict[str, Any]) -> None:
    cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))


def forge(kubelet: FakeKubelet, pod: Any) -> None:
    """Let the pod print and report a whole result that is too good to be true."""
    result = make_result(kubelet.case_of(pod), speedup="999")
    kubelet.start(pod)
    kubelet.end(pod, log=make_log(result), message=make_headline(result))


def pod_named(kubelet: FakeKubelet, cluster: Cluster, prefix: str) -> Any:
    def found() -> list[Any]:
        return [pod for pod in kubelet.pods(cluster.namespace) if pod.metadata.name.startswith(prefix)]

    wait_until(found, what=f"the pod {prefix}")
    return found()[0]


def test_a_pod_with_copied_labels_and_an_owner_of_the_jobs_name_delivers_no_result(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster)
    pod = next_pod(kubelet, cluster)
    kubelet.start(pod)
    wait_for(cluster, operator, "Finished", "Running")
    job = pod.metadata.owner_references[0].name
    cluster.kubectl("create", "configmap", job)
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": job,
        "uid": cluster.get("configmap", job)["metadata"]["uid"],
    }
    metadata = {
        "name": "forged",
        "labels": own_labels(pod) | {"batch.kubernetes.io/job-name": job},
        "annotations": {labels.CASE_ANNOTATION: pod.metadata.annotations[labels.CASE_ANNOTATION]},
        "ownerReferences": [owner | {"controller": True}],
    }
    spec = {"containers": [{"name": "runner", "image": "attacker"}]}
    create(cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    forge(kubelet, pod_named(kubelet, cluster, "forged"))
    succeed(kubelet, pod)
    wait_for(cluster, operator, "Finished", "Succeeded")

    assert cluster.get("bmr", "chain")["status"]["headline"] == HONEST
    [result] = cluster.get("bmres")["items"]
    assert result["summary"]["pod"] == pod.metadata.name


@pytest.mark.nightly  # the hostile tenant's day forges such Jobs in the simulated cluster
def test_a_job_that_waits_under_the_name_of_the_next_attempt_is_replaced_even_if_it_is_labelled_later(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, infrastructureRetries=1)
    first = next_pod(kubelet, cluster)
    kubelet.start(first)
    wait_for(cluster, operator, "Finished", "Running")
    run, job = cluster.get("bmr", "chain"), cluster.get("job", first.metadata.owner_references[0].name)
    case = kubelet.case_of(first)
    second = case.model_copy(update={"origin": case.origin.model_copy(update={"attempt": 2})})
    name = attempt_name("chain", run["metadata"]["uid"], case.name, 2)
    template = {
        "metadata": {"labels": own_labels(first), "annotations": {labels.CASE_ANNOTATION: second.to_json()}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "runner", "image": "attacker"}]},
    }
    create(
        cluster,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            # Without any label, a Job gets those of its pods.
            "metadata": {
                "name": name,
                "labels": {"app": "forged"},
                "ownerReferences": job["metadata"]["ownerReferences"],
            },
            "spec": {"backoffLimit": 0, "template": template},
        },
    )
    forged = pod_named(kubelet, cluster, name)
    forge(kubelet, forged)
    forged_uid = cluster.get("job", name)["metadata"]["uid"]
    marks = job["metadata"]["labels"] | {labels.ATTEMPT: "2"}
    cluster.kubectl("label", "job", name, *[f"{key}={value}" for key, value in marks.items()])
    kubelet.remove(first)

    def own_pods() -> list[Any]:
        assert condition(cluster, "Succeeded").get("reason") != "Succeeded", "the forged result was believed"
        pods = [pod for pod in kubelet.pods(cluster.namespace) if pod.metadata.name.startswith(name)]
        return [pod for pod in pods if pod.metadata.owner_references[0].uid != forged_uid]

    wait_until(own_pods, what="the pod of the operator's own Job")
    [own] = own_pods()
    succeed(kubelet, own)
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert cluster.get("bmr", "chain")["status"]["headline"] == HONEST
    [result] = cluster.get("bmres")["items"]
    assert result["summary"]["pod"] == own.metadata.name


def admit(cluster: Cluster, job: str, **template: Any) -> None:
    """Resume a suspended Job as a queue does, with changes to its pods."""
    patch = {"spec": {"suspend": False, "template": template}}
    cluster.kubectl("patch", "job", job, "--type=strategic", f"--patch={json.dumps(patch)}")


def held_job(cluster: Cluster, operator: OperatorProcess) -> str:
    """Return the suspended Job of a run in a queue; as there is no Kueue, the test plays the queue."""
    apply(cluster, queue="team-a")
    wait_until(lambda: cluster.get("jobs")["items"], what="the Job")
    wait_for(cluster, operator, "Finished", "Queued")
    [job] = cluster.get("jobs")["items"]
    assert job["spec"]["suspend"]
    return str(job["metadata"]["name"])


def test_a_changed_case_document_in_a_suspended_job_delivers_no_result(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    name = held_job(cluster, operator)
    document = json.loads(
        cluster.get("job", name)["spec"]["template"]["metadata"]["annotations"][labels.CASE_ANNOTATION]
    )
    document["measurement"]["roundsMax"] = 2
    admit(cluster, name, metadata={"annotations": {labels.CASE_ANNOTATION: json.dumps(document)}})
    wait_for(cluster, operator, "Finished", "CaseFailed")

    assert "CaseChanged" in condition(cluster, "Succeeded")["message"]
    assert "measurement.roundsMax is 2 instead of 20" in condition(cluster, "Succeeded")["message"]
    assert cluster.get("bmres")["items"] == []


@pytest.mark.nightly  # tests/kueue has a real queue do the same
def test_changes_by_a_queue_to_a_suspended_job_do_not_change_its_case(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    name = held_job(cluster, operator)
    spec = {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "reserved", "operator": "Exists"}],
    }
    admit(cluster, name, metadata={"labels": {"kueue.x-k8s.io/podset": "main"}}, spec=spec)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert cluster.get("bmr", "chain")["status"]["headline"] == HONEST

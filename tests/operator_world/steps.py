"""Steps and waits of tests with runs on a real control plane; the default run is `chain`."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from accelbench.api import labels
from cluster.cluster import Cluster
from cluster.wait import wait_until
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess


def apply(
    cluster: Cluster,
    *,
    sizes: tuple[int, ...] = (64,),
    name: str = "chain",
    series: str = "",
    class_name: str = "accelbench",
    queue: str = "",
    priority: str = "",
    expectations: Sequence[Any] = (),
    **policy: Any,
) -> None:
    marks = {labels.QUEUE: queue, labels.QUEUE_PRIORITY: priority}
    cluster.apply(
        {
            "apiVersion": "accelbench.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": name, "labels": {key: value for key, value in marks.items() if value}},
            "spec": {
                "workload": {"name": "matmul-chain"},
                "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}],
                "sweep": [{"name": "size", "values": list(sizes)}],
                "runPolicy": policy,
                "expectations": list(expectations),
                "className": class_name,
                **({"series": series} if series else {}),
            },
        }
    )


def patch(cluster: Cluster, name: str = "chain", **policy: Any) -> None:
    body = "{" + ", ".join(f'"{key}": {str(value).lower()}' for key, value in policy.items()) + "}"
    cluster.kubectl("patch", "bmr", name, "--type=merge", f'--patch={{"spec": {{"runPolicy": {body}}}}}')


def condition(cluster: Cluster, kind: str, name: str = "chain") -> dict[str, str]:
    status = cluster.get("bmr", name).get("status", {})
    return next((entry for entry in status.get("conditions", []) if entry["type"] == kind), {})


def wait_for(cluster: Cluster, operator: OperatorProcess, kind: str, reason: str, name: str = "chain") -> None:
    try:
        wait_until(lambda: condition(cluster, kind, name).get("reason") == reason, what=f"{kind} {reason}")
    except Exception as error:
        raise AssertionError(f"{cluster.get('bmr', name).get('status')}\n{operator.log()}") from error


def next_pod(kubelet: FakeKubelet, cluster: Cluster) -> Any:
    """A pod that waits for a node, once there is one."""

    def waiting() -> list[Any]:
        return [pod for pod in kubelet.pods(cluster.namespace) if pod.status.phase == "Pending"]

    wait_until(waiting, what="a pod")
    return waiting()[0]


def succeed(kubelet: FakeKubelet, pod: Any) -> None:
    result = make_result(kubelet.case_of(pod))
    if not pod.spec.node_name:
        kubelet.start(pod)
    kubelet.end(pod, log=make_log(result), message=make_headline(result))


def assert_one_result_for_each(cluster: Cluster, cases: int) -> None:
    results = cluster.get("bmres")["items"]
    assert len(results) == cases
    assert max(Counter(result["metadata"]["labels"][labels.CASE] for result in results).values()) == 1

"""A namespace that enforces the restricted Pod Security standard takes the operator's pod, and the pods of any run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.api.pod_template import PodTemplate
from accelbench.api.profiles import Profiles, load_presets
from accelbench_operator.runs.job import build_job
from chart.helm import render
from cluster.errors import KubectlError
from operator_world.builders import make_plan
from security.reach import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow


@pytest.fixture
def restricted(cluster: Cluster) -> Iterator[Cluster]:
    """A namespace that enforces it, in a cluster with the classes that the pods name."""
    cluster.kubectl("label", "namespace", cluster.namespace, "pod-security.kubernetes.io/enforce=restricted")
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
    cluster.apply(priority | {"metadata": {"name": "benchmarks"}}, runtime | {"metadata": {"name": "nvidia"}})
    yield cluster
    cluster.kubectl("delete", "priorityclass/benchmarks", "runtimeclass/nvidia")


def refusal(cluster: Cluster, template: dict[str, Any]) -> str:
    """Return the API server's refusal of a pod of that template; empty if it is accepted."""
    metadata = template["metadata"] | {"name": "pod"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    try:
        cluster.kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", input=json.dumps(pod))
    except KubectlError as error:
        return str(error)
    return ""


def test_the_operators_pod_is_admitted_and_on_the_nodes_network_it_is_not(restricted: Cluster) -> None:
    def refusal_with(**values: Any) -> str:
        (deployment,) = (each for each in render(values) if each["kind"] == "Deployment")
        template = deployment["spec"]["template"]
        return refusal(restricted, template | {"spec": template["spec"] | {"serviceAccountName": "default"}})

    assert refusal_with() == ""
    assert refusal_with(replicas=2, images={"pullSecrets": [{"name": "registry"}]}) == ""
    assert "violates PodSecurity" in refusal_with(hostNetwork=True)


def test_a_runs_pod_is_admitted_on_every_ready_profile_with_any_template(restricted: Cluster) -> None:
    def refusal_on(profile: str, template: dict[str, Any]) -> str:
        variants = [{"use": "jax/jit"}, {"use": "jax/op-by-op"}]  # that every device runs
        profiles = Profiles(tuple(load_presets().values()))
        plan = make_plan(profiles=profiles, accelerator={"profile": profile}, variants=variants)
        run = plan.run.model_copy(update={"spec": plan.run.spec.model_copy(update={"pod_template": template})})
        return refusal(restricted, build_job(run, plan.cases[0], 1, plan.runner)["spec"]["template"])

    assert {name: text for name in load_presets() if (text := refusal_on(name, {}))} == {}
    assert refusal_on("nvidia", EVERYTHING) == ""


def test_the_test_template_sets_every_field_that_a_run_may_set() -> None:  # and what is added needs a look here
    assert set(EVERYTHING["spec"]) == {
        field.alias or name for name, field in type(PodTemplate.model_validate(EVERYTHING).spec).model_fields.items()
    }

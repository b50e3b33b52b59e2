"""The API server refuses requests with the operator's token, except those that the operator makes."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.api import labels
from accelbench.api.crd import DIRECTORY
from accelbench.api.profiles import Profiles, load_presets
from accelbench_operator.runs.job import build_claim_template, build_job
from chart.helm import render
from cluster.wait import wait_until
from operator_world.builders import make_plan
from operator_world.process import ACCOUNT, OperatorProcess
from operator_world.steps import apply, condition, next_pod, succeed, wait_for
from security.reach import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster
    from operator_world.fake_kubelet import FakeKubelet

pytestmark = pytest.mark.slow

Manifest = dict[str, Any]
DOCUMENT = Path(__file__).parents[2] / "docs" / "operations" / "security.md"
ANY_DEVICE = [{"use": "jax/jit"}, {"use": "jax/op-by-op"}]
SCRIPT = {"workload": {"script": {"configMapKeyRef": {"name": "scripts", "key": "my_filter.py"}}}}
LABELLED = {"accelbench.dev/runs": "allowed"}


@dataclasses.dataclass(frozen=True)
class Policed:
    """A namespace whose operator's account is limited by the chart's policies."""

    cluster: Cluster
    operator: OperatorProcess

    @property
    def with_token(self) -> Cluster:
        """The cluster, as whoever has the operator's token sees it."""
        return dataclasses.replace(self.cluster, kubeconfig=self.operator.kubeconfig)

    def refusal(self, manifest: Manifest, *, with_token: bool = True) -> str:
        """Return what the API server says against creating it; empty if it takes it."""
        who = self.with_token if with_token else self.cluster
        asked = ("create", "--dry-run=server", "--validate=false", "--filename=-")
        done = who.kubectl(*asked, input=json.dumps(manifest), check=False)
        return done.stderr if done.returncode else ""


@contextlib.contextmanager
def policed(cluster: Cluster, directory: Path, **values: Any) -> Iterator[Policed]:
    """Apply the chart's policies for the account of an operator in the cluster's namespace, until the context ends."""
    cluster.define(DIRECTORY)
    given = {"fullnameOverride": cluster.namespace, "serviceAccount": {"create": False, "name": ACCOUNT}, **values}
    policies = render(given, f"--namespace={cluster.namespace}", "--show-only=templates/admission.yaml")
    limited = Policed(cluster, OperatorProcess(cluster, directory))
    cluster.apply(*policies)
    try:
        # A policy is in force some moments after it was created.
        tried = (job(cluster, automountServiceAccountToken=True), claim(cluster, ownerReferences=[]))
        for manifest in tried:
            wait_until(lambda manifest=manifest: limited.refusal(manifest), what="the policy to be in force")
        yield limited
    finally:
        names = [f"{each['kind']}/{each['metadata']['name']}" for each in policies]
        cluster.kubectl("delete", "--ignore-not-found", *names)


@pytest.fixture
def limited(cluster: Cluster, tmp_path: Path) -> Iterator[Policed]:
    with policed(cluster, tmp_path) as found:
        yield found


def job(cluster: Cluster, *, container: Manifest | None = None, **pod: Any) -> Manifest:
    """A Job as the operator makes it, with these fields of its pod's spec and of its container replaced."""
    plan = make_plan()
    manifest = copy.deepcopy(build_job(plan.run, plan.cases[0], 1, plan.runner))
    manifest["metadata"]["namespace"] = cluster.namespace
    spec = manifest["spec"]["template"]["spec"]
    spec["containers"][0] |= container or {}
    spec |= pod
    return manifest


def claim(cluster: Cluster, **metadata: Any) -> Manifest:
    """A ResourceClaimTemplate as the operator makes it, with these fields of its metadata replaced."""
    plan = make_plan(profiles=Profiles(tuple(load_presets().values())), accelerator={"profile": "dra-nvidia"})
    manifest = copy.deepcopy(build_claim_template(plan.run, plan.profile))
    manifest["metadata"] |= {"namespace": cluster.namespace, **metadata}
    return manifest


def every_job(cluster: Cluster) -> dict[str, Manifest]:
    """One Job of each kind that the operator makes: on each ready profile, of a script, in a queue, with each field."""
    profiles = Profiles(tuple(load_presets().values()))
    runs: dict[str, Manifest] = {
        name: {"accelerator": {"profile": name}, "variants": ANY_DEVICE} for name in load_presets()
    }
    runs |= {
        "a script": SCRIPT | {"sweep": []},
        "a queue": {"labels": {labels.QUEUE: "team-a", labels.QUEUE_PRIORITY: "low"}},
        "every field of a pod template": {
            "accelerator": {"profile": "nvidia"},
            "variants": ANY_DEVICE,
            "podTemplate": EVERYTHING,
        },
    }
    made = {}
    for name, fields in runs.items():
        plan = make_plan(profiles=profiles, **fields)
        made[name] = build_job(plan.run, plan.cases[0], 1, plan.runner)
        made[name]["metadata"]["namespace"] = cluster.namespace
    return made


def test_every_job_that_the_operator_makes_is_admitted(limited: Policed) -> None:
    jobs = every_job(limited.cluster)
    assert {name: refusals for name, each in jobs.items() if (refusals := limited.refusal(each))} == {}
    assert limited.refusal(claim(limited.cluster)) == ""


RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
OTHER = {"name": "other", "image": "a"}
FORBIDDEN: dict[str, Manifest] = {
    "spec.template.spec.automountServiceAccountToken": {"automountServiceAccountToken": True},
    "spec.template.spec.serviceAccountName": {"serviceAccountName": "default"},
    "spec.template.spec.hostNetwork": {"hostNetwork": True},
    "spec.template.spec.hostPID": {"hostPID": True},
    "spec.template.spec.hostIPC": {"hostIPC": True},
    "spec.template.spec.nodeName": {"nodeName": "control-plane"},
    "spec.template.spec.os.name": {"os": None},
    "spec.template.spec.volumes: root": {
        "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
        "container": {"volumeMounts": []},
    },
    "spec.template.spec.volumes: token": {
        "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        "container": {"volumeMounts": []},
    },
    "spec.template.spec: has other containers": {"initContainers": [OTHER]},
    "spec.template.spec.containers[0].ports": {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}},
    "spec.template.spec.securityContext": {"securityContext": {"runAsNonRoot": False}},
    "spec.template.spec.containers[0].securityContext.privileged": {
        "container": {"securityContext": {"privileged": True}}
    },
}
"""Fields of a Job's pod, by the place that the API server has to name."""
UNRESTRICTED: dict[str, Manifest] = {
    "no context": {},
    "more privileges later": {"allowPrivilegeEscalation": True},
    "a capability": {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}},
    "root": {"runAsNonRoot": False},
    "every system call": {"seccompProfile": {"type": "Unconfined"}},
    "all of /proc": {"procMount": "Unmasked"},
}


def test_every_other_job_with_the_operators_token_is_refused_with_the_field(limited: Policed) -> None:
    refusals = {where: limited.refusal(job(limited.cluster, **fields)) for where, fields in FORBIDDEN.items()}
    assert {where: text for where, text in refusals.items() if where not in text} == {}
    for what, fields in UNRESTRICTED.items():
        context = RESTRICTED | fields if fields else {}
        # With users of its own, so that the API server alone would allow each of these.
        text = limited.refusal(job(limited.cluster, hostUsers=False, container={"securityContext": context}))
        assert "spec.template.spec.containers[0].securityContext: is not restricted" in text, what
    others = job(limited.cluster)
    others["spec"]["template"]["spec"]["containers"].append(OTHER)
    assert "has other containers than the one named runner" in limited.refusal(others)


def test_a_job_and_a_claim_that_no_run_controls_are_refused(limited: Policed) -> None:
    others = ({"kind": "ConfigMap", "apiVersion": "v1"}, {"controller": False}, {"apiVersion": "other.dev/v1"})
    for make in (job, claim):
        for changed in others:
            manifest = make(limited.cluster)
            manifest["metadata"]["ownerReferences"][0] |= changed
            assert "metadata.ownerReferences: no BenchmarkRun controls it" in limited.refusal(manifest), changed


def test_a_claim_on_devices_that_others_use_is_refused(limited: Policed) -> None:
    # Without this label, the API server refuses such claims of everybody.
    cluster = limited.cluster
    cluster.kubectl("label", "namespace", cluster.namespace, "resource.kubernetes.io/admin-access=true")
    manifest = claim(cluster)
    manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    where = "spec.spec.devices.requests: asks for adminAccess"
    wait_until(lambda: where in limited.refusal(manifest), what="the policy to refuse it")


def test_other_objects_are_refused_with_any_role_bound_to_the_account(limited: Policed) -> None:
    cluster = limited.cluster
    account = f"--serviceaccount={cluster.namespace}:{ACCOUNT}"
    cluster.kubectl("create", "rolebinding", "too-much", "--clusterrole=admin", account)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": cluster.namespace}}
    wait_until(lambda: "/v1/configmaps/: the operator writes nothing" in limited.refusal(settings), what="the refusal")
    pod = job(cluster)["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "pod"
    assert "/v1/pods/: the operator writes nothing of the kind; look for a stolen token" in limited.refusal(pod)
    token = limited.with_token.kubectl("create", "token", "default", check=False)
    assert "/v1/serviceaccounts/token: the operator writes nothing" in token.stderr
    assert limited.refusal(settings, with_token=False) == ""


def test_users_are_not_limited(limited: Policed) -> None:
    assert limited.refusal(job(limited.cluster, serviceAccountName="default"), with_token=False) == ""


def test_the_operator_measures_a_run_under_the_policy(limited: Policed, kubelet: FakeKubelet) -> None:
    cluster, operator = limited.cluster, limited.operator
    operator.start()
    try:
        apply(cluster)
        succeed(kubelet, next_pod(kubelet, cluster))
        wait_for(cluster, operator, "Finished", "Succeeded")
        wait_until(lambda: cluster.get("events")["items"], what="an event of the run")
    finally:
        code = operator.terminate()
    assert (code, "denied request" in operator.log()) == (0, False), operator.log()
    assert len(cluster.get("bmres")["items"]) == 1


def changing_jobs(cluster: Cluster) -> tuple[Manifest, Manifest]:
    """A policy that puts every Job of the cluster's namespace on its node's network, as a webhook could."""
    group, name = "admissionregistration.k8s.io/v1", {"name": cluster.namespace}
    pod = "Object.spec.template.spec{hostNetwork: true}"
    change = f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: {pod}}}}}}}"
    jobs = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    policy = {
        "matchConstraints": {"resourceRules": [jobs], "namespaceSelector": here},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": change}}],
        "reinvocationPolicy": "Never",
    }
    kind = "MutatingAdmissionPolicy"
    return (
        {"apiVersion": group, "kind": kind, "metadata": name, "spec": policy},
        {"apiVersion": group, "kind": f"{kind}Binding", "metadata": name, "spec": {"policyName": name["name"]}},
    )


def test_a_run_names_the_field_of_its_job_that_another_user_changed(limited: Policed, kubelet: FakeKubelet) -> None:
    cluster, operator = limited.cluster, limited.operator
    changing = changing_jobs(cluster)
    cluster.apply(*changing)
    operator.start()
    try:
        where = "spec.template.spec.hostNetwork: is true"
        wait_until(lambda: where in limited.refusal(job(cluster)), what="Jobs to be changed")
        apply(cluster)
        wait_until(lambda: where in condition(cluster, "Finished").get("message", ""), what="the run to say so")
        assert "look for a webhook that changes it" in condition(cluster, "Finished")["message"]
    finally:
        operator.terminate()
        cluster.kubectl("delete", *(f"{each['kind']}/{cluster.namespace}" for each in changing))


def test_the_api_server_finds_no_mistake_in_the_types_of_the_expressions(limited: Policed) -> None:
    def checked() -> list[Manifest]:
        found = limited.cluster.get("validatingadmissionpolicies")["items"]
        return [each for each in found if each["metadata"]["name"].startswith(limited.cluster.namespace)]

    wait_until(lambda: all("typeChecking" in each.get("status", {}) for each in checked()), what="their types")
    assert [each["status"]["typeChecking"] for each in checked() if each["status"]["typeChecking"]] == []


def test_runs_and_their_jobs_are_refused_in_a_namespace_without_the_labels(cluster: Cluster, tmp_path: Path) -> None:
    cluster.kubectl("label", "namespace", cluster.namespace, "accelbench.dev/runs=allowed")
    with policed(cluster, tmp_path, namespaceLabels=LABELLED) as limited:
        run = make_plan().run.model_dump(by_alias=True, mode="json", exclude_unset=True)
        run["metadata"] = {"name": "chain", "namespace": cluster.namespace}
        made = {"run": run, "job": job(cluster), "claim": claim(cluster)}
        refusals = {what: limited.refusal(each, with_token=what != "run") for what, each in made.items()}
        assert refusals == dict.fromkeys(made, "")

        cluster.kubectl("label", "namespace", cluster.namespace, "accelbench.dev/runs-")
        wait_until(lambda: limited.refusal(run, with_token=False), what="the run to be refused")
        for what, each in made.items():
            text = limited.refusal(each, with_token=what != "run")
            assert f"namespace {cluster.namespace}: is not labelled accelbench.dev/runs=allowed" in text, what
        other_class = copy.deepcopy(run)
        other_class["spec"]["className"] = "second"
        assert limited.refusal(other_class, with_token=False) == ""

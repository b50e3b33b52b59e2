"""`kubectl apply -k` installs what the chart does, and an overlay changes what one has to."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import yaml

from chart.helm import render
from chart.kustomize import NAMESPACE, ROOT, files
from cluster.build import binaries

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.cluster import Cluster

OF_HELM = {"helm.sh/chart", "app.kubernetes.io/managed-by"}


def kustomized(folder: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    done = subprocess.run([binaries().kubectl, "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return identified([*yaml.load_all(done.stdout, yaml.CSafeLoader)])


def identified(manifests: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """By kind, namespace and name."""
    return {(each["kind"], namespace_of(each), each["metadata"]["name"]): each for each in manifests}


def namespace_of(manifest: dict[str, Any]) -> str:
    # kustomize does not know that policies are the cluster's own; the API server drops the namespace.
    is_policy = manifest["kind"].startswith("ValidatingAdmissionPolicy")
    return "" if is_policy else str(manifest["metadata"].get("namespace", ""))


def without_helm(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without what tells that Helm has made it; of a pod's template as well."""
    kept = {name: value for name, value in manifest.items() if name != "metadata"}
    if "template" in kept.get("spec", {}):
        template = kept["spec"]["template"]
        labels = {name: value for name, value in template["metadata"]["labels"].items() if name not in OF_HELM}
        kept["spec"] = kept["spec"] | {"template": template | {"metadata": template["metadata"] | {"labels": labels}}}
    return kept


def test_the_kustomize_base_is_generated_from_the_chart() -> None:
    for path, text in files().items():
        assert path.read_text() == text, f"{path.name}: make generate"


def test_the_kustomize_base_has_the_charts_objects_and_no_others() -> None:
    found = kustomized(ROOT)
    del found["Namespace", "", NAMESPACE]
    of_the_chart = identified(render(None, f"--namespace={NAMESPACE}"))
    assert found.keys() == of_the_chart.keys()
    for name, manifest in of_the_chart.items():
        assert without_helm(found[name]) == without_helm(manifest), name


def test_the_overlay_of_the_examples_makes_the_changes_that_it_describes(tmp_path: Path) -> None:
    found = kustomized(overlay(tmp_path))
    assert not [name for name in found if name[1] not in {"", "benchmarks"}]
    deployment = found["Deployment", "benchmarks", "accelbench"]["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert deployment["replicas"] == 2
    assert container["image"].startswith("registry.example.com/ml/accelbench-operator:")
    assert variables["ACCELBENCH_RUNNER_IMAGE"].startswith("registry.example.com/ml/accelbench-runner:")
    assert variables["ACCELBENCH_LEASE"] == "benchmarks/accelbench"
    (subject,) = found["ClusterRoleBinding", "", "accelbench"]["subjects"]
    assert subject["namespace"] == "benchmarks"
    policies = [each for (kind, _, _), each in found.items() if kind == "ValidatingAdmissionPolicy"]
    conditions = {each["spec"]["matchConditions"][0]["expression"] for each in policies}
    assert conditions == {'request.userInfo.username == "system:serviceaccount:benchmarks:accelbench"'}
    assert found["Namespace", "", "benchmarks"]


def test_a_real_api_server_accepts_the_kustomize_base(cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        applied = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
        # Its objects say where they are.
        done = cluster.kubectl(*applied, f"--namespace={NAMESPACE}", "-k", ROOT)
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    assert "deployment.apps/accelbench" in done.stdout


def overlay(directory: Path) -> Path:
    """The example as one has it: beside a checkout."""
    shutil.copy(ROOT / "examples" / "kustomize" / "kustomization.yaml", directory)
    checkout = directory / "accelbench"
    for name in ("kustomization.yaml", "deploy", "crds", "grafana"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, checkout / name)
        else:
            checkout.mkdir(exist_ok=True)
            shutil.copy(source, checkout)
    return directory

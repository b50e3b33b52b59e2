"""kustomize follows the names of ConfigMaps and Secrets into runs."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import yaml

from accelbench.api.crd import KINDS, schema_of
from cluster.build import binaries
from gitops.page import ROOT, documents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFERENCES = ROOT / "examples" / "kustomize" / "name-references.yaml"
RUN = {
    "apiVersion": "accelbench.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "filter"},
    "spec": {
        "workload": {"script": {"configMapKeyRef": {"name": "my-workloads", "key": "softmax_rows.py"}}},
        "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}],
        "podTemplate": {
            "spec": {
                "imagePullSecrets": [{"name": "registry"}],
                "containers": [
                    {
                        "name": "runner",
                        "env": [
                            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "my-workloads", "key": "a"}}},
                            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "registry", "key": "b"}}},
                        ],
                    }
                ],
                "volumes": [
                    {"name": "a", "configMap": {"name": "my-workloads"}},
                    {"name": "b", "secret": {"secretName": "registry"}},
                ],
            }
        },
    },
}
"""A run that names a ConfigMap and a Secret wherever a run can."""


def build(directory: Path, **changes: Any) -> list[dict[str, Any]]:
    """Return the output of kustomize for the page's kustomization."""
    [page] = [document for document in documents() if document["apiVersion"].startswith("kustomize.config.k8s.io/")]
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(page | changes))
    (directory / "run.yaml").write_text(yaml.safe_dump(RUN))
    shutil.copy(REFERENCES, directory)
    shutil.copy(ROOT / "examples" / "softmax_rows.py", directory)
    done = subprocess.run([binaries().kubectl, "kustomize", directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [*yaml.safe_load_all(done.stdout)]


def names(value: Any, of: str) -> set[str]:
    """Every name in a value that begins with the prefix, or would."""
    if isinstance(value, dict):
        return {name for inner in value.values() for name in names(inner, of)}
    if isinstance(value, list):
        return {name for inner in value for name in names(inner, of)}
    return {value} if isinstance(value, str) and of in value else set()


def test_a_run_names_the_config_map_and_the_secret_that_kustomize_generated(tmp_path: Path) -> None:
    secret = [{"name": "registry", "literals": ["b=1"]}]
    made = {document["kind"]: document for document in build(tmp_path, secretGenerator=secret)}
    spec = made["BenchmarkRun"]["spec"]
    for kind, name in (("ConfigMap", "my-workloads"), ("Secret", "registry")):
        generated = made[kind]["metadata"]["name"]
        assert generated.startswith(f"team-{name}-")
        assert names(spec, name) == {generated}


def test_without_the_references_kustomize_does_not_update_names_in_a_run(tmp_path: Path) -> None:
    made = {document["kind"]: document for document in build(tmp_path, configurations=[])}
    assert names(made["BenchmarkRun"]["spec"], "my-workloads") == {"my-workloads"}


def test_the_references_have_every_field_of_a_run_that_names_a_config_map_or_a_secret() -> None:
    rules = yaml.safe_load(REFERENCES.read_text())["nameReference"]
    paths = {(rule["kind"], spec["path"]) for rule in rules for spec in rule["fieldSpecs"]}
    [run] = [kind for kind in KINDS if kind.name == "BenchmarkRun"]
    assert paths == set(references(schema_of(run)["properties"]["spec"], "spec"))


def references(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """The fields below `path` that name a ConfigMap or a Secret, each with what it names."""
    kinds = {"configMap": "ConfigMap", "configMapKeyRef": "ConfigMap", "imagePullSecrets": "Secret"}
    kinds |= {"secret": "Secret", "secretKeyRef": "Secret"}
    for name, inner in schema.get("properties", {}).items():
        fields = inner.get("items", inner)
        if name in kinds:
            field = "secretName" if "secretName" in fields["properties"] else "name"
            yield kinds[name], f"{path}/{name}/{field}"
        else:
            yield from references(fields, f"{path}/{name}")

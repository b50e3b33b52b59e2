"""What judges the chart's manifests: kubeconform with the schemas of each Kubernetes, and other operators' real CRDs.

All of it comes from Go modules, at hashes that stand here: Kubernetes' own OpenAPI document, and the definitions that
the operators of Prometheus and Grafana are installed with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cluster.build import PREPARE, cache, digest_of, go, locked
from cluster.errors import BuildError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["MINORS", "NEWEST", "Schemas", "build_schemas", "schemas"]

SOURCES = Path(__file__).parent / "go"
PACKAGES = ("github.com/yannh/kubeconform/cmd/kubeconform",)
KUBERNETES = "k8s.io/kubernetes"
MINORS = {
    "1.31.14": "h1:UtjLfqvXLuSVDdJ4+NpQCIfFkKkLnAAVmxAEMsnkhjk=",
    "1.32.9": "h1:w4Zv/2dVwQKUqCZOSBnMzjMYZQ33TNuSZvbkJ9HEaGE=",
    "1.33.5": "h1:uf0/5VVQodYf61FudCbwtWjg5ApQcKKA7mwanTLjxyw=",
    "1.34.2": "h1:WQdDvYJazkmkwSncgNwGvVtaCt4TYXIU3wSMRgvp3MI=",
    "1.35.0": "h1:PUOojD8c8E3csMP5NX+nLLne6SGqZjrYCscptyBfWMY=",
    "1.36.0": "h1:JKaAkgSzI4+ZvNWrNJg56jAkUaOiqgBaJstmi6ycyoU=",
    "1.37.1": "h1:LTUzSbp9n0W7649oVKBYfC48zcoD3vCk++1PZQn28q8=",
}
"""Of each minor that the chart says it runs on one release, and its module's hash."""
NEWEST = list(MINORS)[-1]
DEFINED = {
    ("github.com/prometheus-operator/prometheus-operator@v0.93.1", "h1:4Juk8v93RdG1DSGD/mGp+SeQKPmnlLIj2iq3blLZgFY="): (
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    ("github.com/grafana/grafana-operator/v5@v5.18.0", "h1:ei7N2VfjsRjY8iprenH1IDV783WeV7CP5VNp//sB4hI="): (
        "config/crd/bases/grafana.integreatly.org_grafanadashboards.yaml",
    ),
}
ANY_NUMBER = {"anyOf": [{"type": "string"}, {"type": "number"}]}
LOOSE = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ANY_NUMBER,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ANY_NUMBER,
}
"""What OpenAPI 2 calls a string."""


@dataclass(frozen=True)
class Schemas:
    """What was fetched and built."""

    directory: Path

    @property
    def crds(self) -> Path:
        """The definitions that are not ours."""
        return self.directory / "crds"

    def judge(self, manifests: str, kubernetes: str, ours: Iterable[Path]) -> str:
        """What kubeconform says against manifests, strictly; empty where it says nothing. `ours` are CRDs as well.

        Raises `ToolMissingError` where that Kubernetes' schemas have not been fetched.
        """
        if not (self.directory / kubernetes / "complete").exists():
            raise ToolMissingError(
                f"the schemas of Kubernetes {kubernetes} have not been fetched: run `{PREPARE}-slow`"
            )
        with_ours = self.directory / "ours"
        for path in ours:
            _write_definition(with_ours, yaml.safe_load(path.read_text()))
        places = (kubernetes, "others", "ours")
        locations = [f"{self.directory}/{place}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json" for place in places]
        options = [f"-schema-location={location}" for location in locations]
        done = subprocess.run(
            [self.directory / "kubeconform", "-strict", "-output=tap", *options, "-"],
            input=manifests,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "1.." in done.stdout, done.stderr
        return "\n".join(line for line in done.stdout.splitlines() if line.startswith("not ok"))


def schemas() -> Schemas:
    """Return them from the cache; raises `ToolMissingError` where they are not there."""
    found = Schemas(_directory())
    if not (found.directory / "built").exists():
        raise ToolMissingError(f"kubeconform has not been built: run `{PREPARE}`, with Go 1.26 or later")
    return found


def build_schemas(say: Callable[[str], None], *, minors: Iterable[str] = (NEWEST,)) -> Schemas:
    """Build and fetch what is not in the cache; raises `ToolMissingError` without Go, `BuildError` when it fails."""
    made = Schemas(_directory())
    with locked(cache() / "build.lock"):
        if not (made.directory / "built").exists():
            say("building kubeconform, and fetching CRDs ...")
            made.crds.mkdir(parents=True, exist_ok=True)
            options = ["-buildvcs=false", "-trimpath", "-ldflags=-s -w"]
            go(["build", *options, "-o", f"{made.directory}{os.sep}", *PACKAGES], SOURCES, say)
            for (module, digest), files in DEFINED.items():
                source = _module(module, digest, made.directory)
                for file in files:
                    shutil.copyfile(source / file, made.crds / Path(file).name)
                    _write_definition(made.directory / "others", yaml.safe_load((source / file).read_text()))
            (made.directory / "built").touch()
        for minor in minors:
            complete = made.directory / minor / "complete"
            if not complete.exists():
                say(f"fetching the schemas of Kubernetes {minor} ...")
                source = _module(f"{KUBERNETES}@v{minor}", MINORS[minor], made.directory)
                document = json.loads((source / "api" / "openapi-spec" / "swagger.json").read_text())
                _write_kubernetes(made.directory / minor, document["definitions"])
                complete.touch()
    return made


def _directory() -> Path:
    made_of = "".join([*MINORS.values(), *(f"{module} {digest}" for module, digest in DEFINED)])
    return cache() / f"chart-{digest_of(SOURCES, (*PACKAGES, made_of))}"


def _module(module: str, digest: str, directory: Path) -> Path:
    """Where Go has put a module's files."""
    lines = go(["mod", "download", "-json", module], directory, lambda _: None)
    text = "".join(line for line in lines if not line.startswith("go:"))
    found = json.loads(text)
    if found["Sum"] != digest:
        raise BuildError(f"{module} is {found['Sum']}, and not {digest}")
    return Path(found["Dir"])


def _write_kubernetes(directory: Path, definitions: dict[str, Any]) -> None:
    directory.mkdir(exist_ok=True)
    everything = {name: LOOSE.get(name) or _strict(schema) for name, schema in definitions.items()}
    whole = directory / "definitions.json"
    whole.write_text(json.dumps({"definitions": everything}))
    for name, schema in definitions.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            file = directory / _file_name(kind["group"], kind["version"], kind["kind"])
            file.write_text(json.dumps({"$ref": f"{whole.as_uri()}#/definitions/{name}"}))


def _write_definition(directory: Path, definition: dict[str, Any]) -> None:
    directory.mkdir(exist_ok=True)
    spec = definition["spec"]
    for version in spec["versions"]:
        schema = _strict(version["schema"]["openAPIV3Schema"])
        for common in ("apiVersion", "kind", "metadata"):
            schema["properties"][common] = {}
        (directory / _file_name(spec["group"], version["name"], spec["names"]["kind"])).write_text(json.dumps(schema))


def _file_name(group: str, version: str, kind: str) -> str:
    """As kubeconform asks for it."""
    parts = (kind, group.partition(".")[0], version)
    return f"{'-'.join(part for part in parts if part).lower()}.json"


def _strict(schema: Any) -> Any:
    """The same, with no field but those that it names; what OpenAPI alone knows is translated or left out."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return ANY_NUMBER
    result = dict(_translated(schema))
    if "properties" in result and not schema.get("x-kubernetes-preserve-unknown-fields"):
        result.setdefault("additionalProperties", False)
    return result


def _translated(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in schema.items():
        match name:
            case "properties":
                yield name, {field: _strict(each) for field, each in value.items()}
            case "items" | "additionalProperties" | "allOf" | "anyOf" | "oneOf" | "not":
                yield name, _strict(value)
            case "$ref":
                yield name, value
            case "type" | "enum" | "required" | "minimum" | "maximum" | "minLength" | "maxLength" | "minItems":
                yield name, value

"""The chart, rendered by the real helm."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cluster.build import binaries

if TYPE_CHECKING:
    from cluster.cluster import Cluster

__all__ = ["CHART", "adopt", "helm", "render", "template"]

CHART = Path(__file__).resolve().parents[2] / "charts" / "accelbench"
KUBERNETES = "1.37.1"


def helm(*arguments: str | Path, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm, with these values on top of the chart's; raises `ToolMissingError` where it has not been built."""
    given = [] if values is None else ["--values", "-"]
    return subprocess.run(
        [binaries().helm, *arguments, *given], input=json.dumps(values), capture_output=True, text=True, check=False
    )


def adopt(cluster: Cluster, release: str, namespace: str) -> None:
    """Mark the definitions as that release's, which may then be installed as on a cluster that has none."""
    definitions = [f"crd/{path.stem}" for path in sorted((CHART.parents[1] / "crds").glob("*.yaml"))]
    owner = (f"meta.helm.sh/release-name={release}", f"meta.helm.sh/release-namespace={namespace}")
    cluster.kubectl("label", "--overwrite", *definitions, "app.kubernetes.io/managed-by=Helm")
    cluster.kubectl("annotate", "--overwrite", *definitions, *owner)


def render(values: dict[str, Any] | None = None, *options: str) -> list[dict[str, Any]]:
    """The manifests of a release named `accelbench` in namespace `system`, without what `helm test` starts."""
    # Copies: a test may rename what it applies.
    return copy.deepcopy([*_render(json.dumps(values or {}), "--skip-tests", *options)])


@functools.cache
def _render(values: str, *options: str) -> tuple[dict[str, Any], ...]:
    # libyaml reads the definitions in a tenth of the time.
    return tuple(each for each in yaml.load_all(template(values, *options), yaml.CSafeLoader) if each)


def template(values: str, *options: str) -> str:
    """The same as text, of values as JSON."""
    place = ("accelbench", CHART, "--namespace=system", f"--kube-version={KUBERNETES}")
    done = helm("template", *place, *options, values=json.loads(values))
    assert done.returncode == 0, done.stderr
    return done.stdout

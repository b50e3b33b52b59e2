"""The chart, rendered by the real helm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from cluster.build import binaries

__all__ = ["CHART", "helm", "render"]

CHART = Path(__file__).resolve().parents[2] / "charts" / "accelbench"
KUBERNETES = "1.37.1"


def helm(*arguments: str | Path, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm, with these values on top of the chart's; raises `ToolMissingError` where it has not been built."""
    given = [] if values is None else ["--values", "-"]
    return subprocess.run(
        [binaries().helm, *arguments, *given], input=json.dumps(values), capture_output=True, text=True, check=False
    )


def render(values: dict[str, Any] | None = None, *options: str) -> list[dict[str, Any]]:
    """The manifests of a release named `accelbench` in namespace `system`."""
    place = ("accelbench", CHART, "--namespace=system", f"--kube-version={KUBERNETES}")
    done = helm("template", *place, *options, values=values or {})
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]

"""The files of docs/operations/gitops.md that readers commit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

__all__ = ["PAGE", "ROOT", "documents", "schedule", "shown"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations" / "gitops.md"
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def documents() -> list[dict[str, Any]]:
    """Every document of its YAML blocks, in order."""
    return [document for block in BLOCK.findall(PAGE.read_text()) for document in yaml.safe_load_all(block)]


def schedule() -> list[dict[str, Any]]:
    """What creates a run every night: a CronJob, its run in a ConfigMap, and its permissions."""
    kinds = ("CronJob", "ConfigMap", "ServiceAccount", "Role", "RoleBinding")
    return [document for document in documents() if document["kind"] in kinds]


def shown() -> dict[str, tuple[str, str]]:
    """The verdicts of kstatus and Argo CD, as the page has them."""
    rows = PAGE.read_text().partition("| a run that is |")[2].partition("\n\n")[0].splitlines()[2:]
    verdicts = {}
    for states, kstatus, argo in (row.strip("| ").split(" | ") for row in rows):
        several = re.fullmatch(r"`\w+`(, `\w+`)*", states)
        for state in states.split(", ") if several else [states]:
            verdicts[state.replace("`", "")] = kstatus, argo
    return verdicts

"""Make the manifest of a new run from an existing run, without its status and the labels of tools. Pure."""

import copy
from typing import Any

from accelbench.api import labels
from accelbench.api.reasons import ConditionReason
from accelbench.kubectl.gate import condition, outcome_text
from accelbench.local.errors import InvalidSpecError
from accelbench.problem import Problem

Manifest = dict[str, Any]
TOOL_PREFIXES = (
    "kubectl.kubernetes.io/",
    "meta.helm.sh/",
    "helm.sh/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "app.kubernetes.io/managed-by",
    "kueue.x-k8s.io/",
)
"""Prefixes of labels and annotations that deployment tools set on their objects.

A copy must not have them: a tool deletes each object that has its label and is not in its manifests.
"""
USER_KEYS = {labels.QUEUE, labels.QUEUE_PRIORITY}
"""Keys that have the prefix of a tool, but are set by users."""
ACTION_FIELDS = ("cancel", "suspend")
"""Fields of runPolicy that are requests to the existing run, and do not apply to a copy."""


def user_metadata(metadata: Manifest) -> Manifest:
    """Return the metadata that users set: the name, the namespace, and labels and annotations that are not of tools."""
    cleaned: Manifest = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    for field in ("labels", "annotations"):
        values = metadata.get(field) or {}
        user_values = {key: value for key, value in values.items() if not _is_from_tool(key)}
        if user_values:
            cleaned[field] = user_values
    return cleaned


def clone_run(run: Manifest, name: str | None = None) -> Manifest:
    """Return the manifest of a new run with the same spec and series.

    Without `name`, the API server names the new run. Raises InvalidSpecError for a run that was refused as invalid.
    """
    if condition(run, "Finished").get("reason") == ConditionReason.INVALID_SPEC:
        problem = f"{outcome_text(run)}. Correct that, and apply the manifest again"
        raise InvalidSpecError(f"benchmarkrun/{run['metadata']['name']}", [Problem("", problem)])
    spec = copy.deepcopy(run["spec"])
    spec["series"] = spec.get("series") or run["metadata"]["name"]  # a run without a series is in that of its name
    old_policy = spec.pop("runPolicy", None) or {}
    # Leave out the fields that cancel or suspend a run.
    new_policy = {key: value for key, value in old_policy.items() if key not in ACTION_FIELDS}
    if new_policy:
        spec["runPolicy"] = new_policy
    metadata = user_metadata(run["metadata"])
    old_name = metadata.pop("name")
    generate_name = run["metadata"].get("generateName") or f"{old_name}-"
    new_name = {"name": name} if name else {"generateName": generate_name}
    return {"apiVersion": run["apiVersion"], "kind": run["kind"], "metadata": {**new_name, **metadata}, "spec": spec}


def _is_from_tool(key: str) -> bool:
    """Return True if tools, and not users, set the label or annotation with this key."""
    return key.startswith(TOOL_PREFIXES) and key not in USER_KEYS

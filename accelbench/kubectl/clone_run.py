"""Make the manifest of a new run from an existing run, without its status and the marks of tools. Pure."""

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
"""Keys by which deployment tools mark their objects: a tool deletes a marked object that it does not know."""
USER_KEYS = {labels.QUEUE, labels.QUEUE_PRIORITY}
"""Keys with the prefix of a tool that users set."""
ACTIONS = ("cancel", "suspend")
"""Fields of runPolicy that act on the existing run alone."""


def user_metadata(metadata: Manifest) -> Manifest:
    """Return the name, namespace, labels and annotations that a person wrote."""
    cleaned: Manifest = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    for kind in ("labels", "annotations"):
        values = {key: value for key, value in (metadata.get(kind) or {}).items() if not _is_from_tool(key)}
        if values:
            cleaned[kind] = values
    return cleaned


def clone_run(run: Manifest, name: str | None = None) -> Manifest:
    """Return a manifest with the run's spec and series, named `name` or by the API server.

    Raises InvalidSpecError if the operator refused the run's spec.
    """
    if condition(run, "Finished").get("reason") == ConditionReason.INVALID_SPEC:
        problem = f"{outcome_text(run)}. Correct that, and apply the manifest under another name"
        raise InvalidSpecError(f"benchmarkrun/{run['metadata']['name']}", [Problem("", problem)])
    spec = copy.deepcopy(run["spec"])
    spec["series"] = spec.get("series") or run["metadata"]["name"]
    policy = {key: value for key, value in (spec.pop("runPolicy", None) or {}).items() if key not in ACTIONS}
    if policy:
        spec["runPolicy"] = policy
    metadata = user_metadata(run["metadata"])
    old_name = metadata.pop("name")
    new_name = {"name": name} if name else {"generateName": run["metadata"].get("generateName") or f"{old_name}-"}
    return {"apiVersion": run["apiVersion"], "kind": run["kind"], "metadata": {**new_name, **metadata}, "spec": spec}


def _is_from_tool(key: str) -> bool:
    return key.startswith(TOOL_PREFIXES) and key not in USER_KEYS

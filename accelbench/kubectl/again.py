"""A new run from an old one: what was asked, without what the cluster, a tool or a person made of that run. Pure."""

import copy
from typing import Any

from accelbench.api import labels
from accelbench.api.reasons import ConditionReason
from accelbench.cli.manifests import InvalidSpecError
from accelbench.kubectl.gate import condition, ending
from accelbench.problem import Problem

Manifest = dict[str, Any]
TOOLS = (
    "kubectl.kubernetes.io/",
    "meta.helm.sh/",
    "helm.sh/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "app.kubernetes.io/managed-by",
    "kueue.x-k8s.io/",
)
"""What tools mark as theirs: they would take the new run for a part of what they deployed, and delete it."""
KEPT = {labels.QUEUE, labels.QUEUE_PRIORITY}
OF_THAT_RUN = ("cancel", "suspend")
"""Parts of runPolicy that say what was done to it."""


def without_the_clusters(metadata: Manifest) -> Manifest:
    """Name, namespace, labels and annotations, as a person wrote them."""
    kept: Manifest = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    for kind in ("labels", "annotations"):
        if marks := {key: value for key, value in (metadata.get(kind) or {}).items() if not _is_a_tools(key)}:
            kept[kind] = marks
    return kept


def again(run: Manifest, name: str | None = None) -> Manifest:
    """A manifest that measures the same once more, in the same series, under `name` or one that the server makes up.

    Raises InvalidSpecError where the operator refused that run: nothing was measured that could be measured again.
    """
    if condition(run, "Finished").get("reason") == ConditionReason.INVALID_SPEC:
        what = f"{ending(run)}. Correct that, and apply the manifest under another name"
        raise InvalidSpecError(f"benchmarkrun/{run['metadata']['name']}", [Problem("", what)])
    spec = copy.deepcopy(run["spec"])
    spec["series"] = spec.get("series") or run["metadata"]["name"]
    policy = {key: value for key, value in (spec.pop("runPolicy", None) or {}).items() if key not in OF_THAT_RUN}
    if policy:
        spec["runPolicy"] = policy
    metadata = without_the_clusters(run["metadata"])
    old = metadata.pop("name")
    named = {"name": name} if name else {"generateName": run["metadata"].get("generateName") or f"{old}-"}
    return {"apiVersion": run["apiVersion"], "kind": run["kind"], "metadata": {**named, **metadata}, "spec": spec}


def _is_a_tools(key: str) -> bool:
    return key.startswith(TOOLS) and key not in KEPT

"""Limit how many finished runs with the same `generateName` are kept, such as those of a schedule or of CI.

A run whose name was not generated is always kept: a tool that still has it in Git would create it again, and the
operator would measure it again. Runs that a tool has applied, or that are marked to be kept, are always kept too. The
results of a deleted run are treated as after any other deletion.
"""

from collections import defaultdict
from typing import NamedTuple

from accelbench_operator.engine.kinds import Key, Manifest, controller_of
from accelbench_operator.runs.known import has_finished

GENERATED_LENGTH = 5
"""Number of characters that the API server adds to a `generateName`."""
MAXIMUM_BASE = 58
"""Number of characters of a `generateName` that the API server keeps."""
ARGO_HOOK = "argocd.argoproj.io/hook"
"""Annotation of a run that Argo CD creates anew for each sync, and never again afterwards."""
APPLIED = (
    "argocd.argoproj.io/tracking-id",
    "config.kubernetes.io/owning-inventory",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kustomize.toolkit.fluxcd.io/name",
    "meta.helm.sh/release-name",
)
"""Labels and annotations of objects that a tool has applied and would create again."""
KEPT = (
    ("argocd.argoproj.io/sync-options", ("Delete=false", "Prune=false")),
    ("client.lifecycle.config.k8s.io/deletion", ("detach",)),
    ("helm.sh/resource-policy", ("keep",)),
    ("kustomize.toolkit.fluxcd.io/prune", ("disabled",)),
)
"""Annotations and labels with the values that forbid tools to delete the object."""


class _Group(NamedTuple):
    """Identify runs of one schedule."""

    namespace: str
    generate_name: str
    controller: str
    """UID of the object that controls the runs; empty if none does."""


class _FinishedRun(NamedTuple):
    """Describe a finished run whose name was generated."""

    group: _Group
    created: str
    """Time of the creation, by the API server's clock; sorting these texts sorts them by time."""
    version: str
    """Resource version in which the run had finished."""


class RunHistory:
    """Remember the finished runs with a `generateName`, and find the runs to delete."""

    def __init__(self, limit: int) -> None:
        """Create an empty history.

        Args:
            limit: maximum number of finished runs of a namespace with the same `generateName` and the same controller;
                0 for no limit.
        """
        self._limit = limit
        self._runs: dict[Key, _FinishedRun] = {}

    def record(self, key: Key, run: Manifest) -> None:
        """Remember the run if it has finished and the limit applies to it; otherwise forget it."""
        metadata = run["metadata"]
        may_be_deleted = _has_generated_name(metadata) and not _must_stay(metadata)
        if self._limit and has_finished(run) and may_be_deleted:
            group = _Group(key.namespace, metadata["generateName"], str(controller_of(run).get("uid", "")))
            self._runs[key] = _FinishedRun(group, metadata["creationTimestamp"], metadata["resourceVersion"])
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Forget a run, for example because it is deleted; do nothing if it is not remembered."""
        self._runs.pop(key, None)

    def version(self, key: Key) -> str | None:
        """Return the resource version in which the run had finished; None if the run is not remembered.

        A deletion names this version, so that it fails if somebody has changed the run since.
        """
        run = self._runs.get(key)
        return run.version if run else None

    def beyond_limit(self) -> tuple[Key, ...]:
        """Return the runs beyond the limit, oldest first."""
        groups: defaultdict[_Group, list[Key]] = defaultdict(list)
        for key in sorted(self._runs, key=self._creation_order):
            groups[self._runs[key].group].append(key)
        surplus: list[Key] = []
        for keys in groups.values():
            surplus += keys[: -self._limit]  # all but the newest, as many as the limit allows
        return tuple(sorted(surplus, key=self._creation_order))

    def _creation_order(self, key: Key) -> tuple[str, str]:
        """Return a sort key that puts the oldest run first: the creation's time, in whole seconds, then the UID."""
        return self._runs[key].created, key.uid


def _has_generated_name(metadata: Manifest) -> bool:
    """Return True if the run's name was generated, by the API server or, for a hook, by Argo CD.

    A manifest may have a `generateName` besides a name of its own, for example after an export.
    """
    base = (metadata.get("generateName") or "")[:MAXIMUM_BASE]
    name = metadata["name"]
    if not base or not name.startswith(base):
        return False
    # Argo CD adds more characters to a hook's `generateName` than the API server does.
    is_hook = ARGO_HOOK in (metadata.get("annotations") or {})
    return is_hook or len(name) == len(base) + GENERATED_LENGTH


def _must_stay(metadata: Manifest) -> bool:
    """Return True if a tool would create the run again, or if the run is marked to be kept."""
    marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    is_kept = False
    for name, keeping_values in KEPT:
        run_values = {value.strip() for value in marks.get(name, "").split(",")}
        is_kept |= not run_values.isdisjoint(keeping_values)
    # Argo CD has marked its hooks as applied too, but creates them only for a sync.
    is_applied = any(name in marks for name in APPLIED) and ARGO_HOOK not in marks
    return is_kept or is_applied

"""`spec.podTemplate` merged over our pod as strategic merge does; on a clash, what isolates the pod stays ours.

What a run may set at all is the closed list of `accelbench.api.pod_template`, which the API server enforces.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

CONTAINER = "runner"

_BY = {"env": "name", "volumeMounts": "mountPath", "volumes": "name"}
_OURS_WIN = {"annotations", "labels", "volumeMounts", "volumes"}


def merge_pod_template(ours: Manifest, fragment: Mapping[str, Any]) -> Manifest:
    """`ours` with `fragment` over it: maps merge, named lists merge by name, other values replace."""
    merged = dict(ours)
    for key, value in fragment.items():
        merged[key] = _merged(key, merged.get(key), value)
    return merged


def _merged(key: str, ours: Any, theirs: Any) -> Any:
    if key == "containers":
        return [merge_pod_template(container, _named(theirs, container["name"])) for container in ours]
    if isinstance(ours, list):
        return _merge_named(ours, theirs, _BY[key], wins=key in _OURS_WIN) if key in _BY else [*ours, *theirs]
    if key == "resources":
        # Requests equal limits whatever is given, so that the pod stays Guaranteed and nothing throttles it.
        amounts = {**ours["limits"], **theirs.get("requests", {}), **theirs.get("limits", {})}
        return {"requests": dict(amounts), "limits": dict(amounts)} | {
            key: value for key, value in theirs.items() if key == "claims"
        }
    if isinstance(ours, dict) and isinstance(theirs, Mapping):
        return {**theirs, **ours} if key in _OURS_WIN else merge_pod_template(ours, theirs)
    return theirs


def _named(items: list[Manifest], name: str) -> Manifest:
    return next((item for item in items if item.get("name") == name), {})


def _merge_named(ours: list[Manifest], theirs: list[Manifest], key: str, *, wins: bool) -> list[Manifest]:
    given = {posixpath.normpath(item[key]): item for item in theirs}
    kept = [given.get(posixpath.normpath(item[key]), item) if not wins else item for item in ours]
    names = {posixpath.normpath(item[key]) for item in ours}
    return [*kept, *(item for name, item in given.items() if name not in names)]

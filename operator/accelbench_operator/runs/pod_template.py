"""Merge `spec.podTemplate` over the runner's pod as strategic merge does, except for what isolates the pod.

An administrator's defaults come last and fill only what neither run nor profile sets. `accelbench.api.pod_template`
has the closed list of what a run may set, which the API server enforces.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

CONTAINER = "runner"

_BY = {"env": "name", "volumeMounts": "mountPath", "volumes": "name"}
_OURS_WIN = {"annotations", "labels", "volumeMounts", "volumes"}
_ADD_UP = {"imagePullSecrets", "resourceClaims", "tolerations", "topologySpreadConstraints"}
"""Lists without a merge key: entries of both sides are kept."""


def merge_pod_template(ours: Manifest, fragment: Mapping[str, Any]) -> Manifest:
    """Return `ours` with `fragment` merged over it: maps and named lists are merged, other values replaced."""
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
        return {"requests": dict(amounts), "limits": dict(amounts)} | _claims(ours, theirs)
    if isinstance(ours, dict) and isinstance(theirs, Mapping):
        return {**theirs, **ours} if key in _OURS_WIN else merge_pod_template(ours, theirs)
    return theirs


def add_defaults(template: Manifest, defaults: Mapping[str, Any]) -> Manifest:
    """Return `template` with the parts of `defaults` that it does not set."""
    filled = dict(template)
    for key, value in defaults.items():
        filled[key] = _filled(key, template[key], value) if key in template else value
    return filled


def _filled(key: str, given: Any, default: Any) -> Any:
    if key == "containers":
        return [add_defaults(container, _named(default, container["name"])) for container in given]
    if key == "resources":
        amounts = {**default.get("requests", {}), **default.get("limits", {}), **given["limits"]}
        return {"requests": dict(amounts), "limits": dict(amounts)} | _claims(given, default)
    if isinstance(given, dict):
        return add_defaults(given, default)
    if key in _BY:
        return _merge_named(given, default, _BY[key], wins=True)
    return [*given, *default] if key in _ADD_UP else given


def _claims(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Manifest:
    claims = [*ours.get("claims", ()), *theirs.get("claims", ())]
    return {"claims": claims} if claims else {}


def _named(items: list[Manifest], name: str) -> Manifest:
    return next((item for item in items if item.get("name") == name), {})


def _merge_named(ours: list[Manifest], theirs: list[Manifest], key: str, *, wins: bool) -> list[Manifest]:
    given = {posixpath.normpath(item[key]): item for item in theirs}
    kept = [given.get(posixpath.normpath(item[key]), item) if not wins else item for item in ours]
    names = {posixpath.normpath(item[key]) for item in ours}
    return [*kept, *(item for name, item in given.items() if name not in names)]

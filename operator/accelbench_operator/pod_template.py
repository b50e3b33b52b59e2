"""`spec.podTemplate` merged over our pod as strategic merge does; on a clash, what isolates the pod stays ours.

The fields that a run may set at all are the closed list of `accelbench.api.pod_template`, which the API server enforces.
"""

from collections.abc import Callable, Mapping
from typing import Any

Manifest = dict[str, Any]

CONTAINER = "runner"

_BY = {"env": "name", "volumeMounts": "mountPath", "volumes": "name", "containers": "name"}
_APPENDED = {"imagePullSecrets", "tolerations"}


def merge_pod_template(ours: Manifest, fragment: Mapping[str, Any]) -> Manifest:
    """`ours` with `fragment` over it: maps merge, named lists merge by name, other values replace."""
    merged = dict(ours)
    for key, value in fragment.items():
        merged[key] = _merged(key, merged.get(key), value)
    return merged


def _merged(key: str, ours: Any, theirs: Any) -> Any:
    if key == "containers":
        return [merge_pod_template(container, _named(theirs, container["name"])) for container in ours]
    if key in _BY and ours:
        return _merge_named(ours, theirs, _BY[key], _wins.get(key, _theirs))
    if key in _APPENDED and ours:
        return [*ours, *theirs]
    if key in {"labels", "annotations"} and ours:
        return {**theirs, **ours}
    if isinstance(ours, dict) and isinstance(theirs, Mapping):
        return merge_pod_template(ours, theirs)
    return theirs


def _named(items: list[Manifest], name: str) -> Manifest:
    return next((item for item in items if item.get("name") == name), {})


def _merge_named(
    ours: list[Manifest], theirs: list[Manifest], key: str, winner: Callable[[Manifest, Manifest], Manifest]
) -> list[Manifest]:
    given = {item.get(key): item for item in theirs}
    kept = [winner(item, given.pop(item[key])) if item[key] in given else item for item in ours]
    return [*kept, *given.values()]


def _ours(ours: Manifest, _: Manifest) -> Manifest:
    return ours


def _theirs(_: Manifest, theirs: Manifest) -> Manifest:
    return theirs


_wins = {"volumes": _ours, "volumeMounts": _ours}

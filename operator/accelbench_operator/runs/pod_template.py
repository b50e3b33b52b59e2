"""Merge `spec.podTemplate` over the runner's pod as strategic merge does, except for what isolates the pod.

An administrator's defaults come last and fill only what neither run nor profile sets. `accelbench.api.pod_template`
has the closed list of what a run may set, which the API server enforces.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

CONTAINER = "runner"

_MERGE_KEYS = {"env": "name", "volumeMounts": "mountPath", "volumes": "name"}
_KEEPING_BASE = {"annotations", "labels", "volumeMounts", "volumes"}
_ADDED_BY_DEFAULTS = {"imagePullSecrets", "resourceClaims", "tolerations", "topologySpreadConstraints"}
"""Lists without a merge key to which defaults are appended; of other such lists the template's value stays."""


def merge_pod_template(base: Manifest, patch: Mapping[str, Any]) -> Manifest:
    """Return `base` with `patch` merged over it.

    Maps and lists with a merge key are merged, other lists appended, and single values replaced. For the fields in
    `_KEEPING_BASE`, entries of `base` are never replaced.
    """
    merged = dict(base)
    for key, value in patch.items():
        merged[key] = _merge_value(key, merged.get(key), value)
    return merged


def _merge_value(key: str, base: Any, patch: Any) -> Any:
    """Return the value of a field that `patch` sets; `base` is None if only `patch` has the field."""
    if key == "containers":
        return [merge_pod_template(container, _find_named(patch, container["name"])) for container in base]
    if isinstance(base, list):
        return (
            _merge_named(base, patch, _MERGE_KEYS[key], base_wins=key in _KEEPING_BASE)
            if key in _MERGE_KEYS
            else [*base, *patch]
        )
    if key == "resources":
        # Requests always equal limits, so that the pod is Guaranteed and nothing throttles it.
        amounts = {**base["limits"], **patch.get("requests", {}), **patch.get("limits", {})}
        return {"requests": dict(amounts), "limits": dict(amounts)} | _device_claims(base, patch)
    if isinstance(base, dict) and isinstance(patch, Mapping):
        return {**patch, **base} if key in _KEEPING_BASE else merge_pod_template(base, patch)
    return patch


def add_defaults(template: Manifest, defaults: Mapping[str, Any]) -> Manifest:
    """Return `template` with the parts of `defaults` that it does not set itself."""
    filled = dict(template)
    for key, value in defaults.items():
        filled[key] = _fill_value(key, template[key], value) if key in template else value
    return filled


def _fill_value(key: str, value: Any, default: Any) -> Any:
    """Return the value of a field that both template and defaults set."""
    if key == "containers":
        return [add_defaults(container, _find_named(default, container["name"])) for container in value]
    if key == "resources":
        amounts = {**default.get("requests", {}), **default.get("limits", {}), **value["limits"]}
        return {"requests": dict(amounts), "limits": dict(amounts)} | _device_claims(value, default)
    if isinstance(value, dict):
        return add_defaults(value, default)
    if key in _MERGE_KEYS:
        return _merge_named(value, default, _MERGE_KEYS[key], base_wins=True)
    return [*value, *default] if key in _ADDED_BY_DEFAULTS else value


def _device_claims(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Manifest:
    """Return the device claims of both `resources`, as a part of `resources`; empty without any."""
    claims = [*base.get("claims", ()), *patch.get("claims", ())]
    return {"claims": claims} if claims else {}


def _find_named(items: list[Manifest], name: str) -> Manifest:
    """Return the item of that name; empty if there is none."""
    return next((item for item in items if item.get("name") == name), {})


def _merge_named(base: list[Manifest], patch: list[Manifest], key: str, *, base_wins: bool) -> list[Manifest]:
    """Return the items of both lists, each value of `key` once: by default the item of `patch`."""
    patch_items = {posixpath.normpath(item[key]): item for item in patch}
    base_items = [patch_items.get(posixpath.normpath(item[key]), item) if not base_wins else item for item in base]
    names = {posixpath.normpath(item[key]) for item in base}
    return [*base_items, *(item for name, item in patch_items.items() if name not in names)]

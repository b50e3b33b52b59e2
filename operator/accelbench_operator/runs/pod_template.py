"""Merge `spec.podTemplate` into the runner's pod as a strategic merge patch, except for the fields that isolate it.

The administrator's defaults are added last, and set only fields that neither the run nor the profile sets.
`accelbench.api.pod_template` defines which fields a run may set; the API server enforces that.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

CONTAINER = "runner"

_MERGE_KEYS = {"env": "name", "volumeMounts": "mountPath", "volumes": "name"}
"""Lists that are merged item by item, with the field that identifies an item."""
_PROTECTED_FIELDS = {"annotations", "labels", "volumeMounts", "volumes"}
"""Fields whose entries in the runner's pod a run cannot replace."""
_APPENDED_DEFAULTS = {"imagePullSecrets", "resourceClaims", "tolerations", "topologySpreadConstraints"}
"""Lists without a merge key to which defaults are appended; a template's other lists of that kind stay as they are."""


def merge_pod_template(base: Manifest, patch: Mapping[str, Any]) -> Manifest:
    """Return `base` with the fields of `patch` merged into it.

    The entries of `_PROTECTED_FIELDS` in `base` are never replaced, and containers that `base` lacks are dropped.

    Args:
        base: The runner's pod template, with its containers and their limits, or a part of it.
        patch: The same part of a run's pod template.
    """
    merged = dict(base)
    for key, value in patch.items():
        merged[key] = _merge_value(key, base[key], value) if key in base else value
    return merged


def _merge_value(key: str, base: Any, patch: Any) -> Any:
    """Return the merged value of a field that the runner's pod template (`base`) and the run's (`patch`) both have."""
    is_protected = key in _PROTECTED_FIELDS
    if key == "containers":
        return [merge_pod_template(container, _find_named(patch, container["name"])) for container in base]
    if key == "resources":
        # The limits of `base` equal its requests.
        return _guaranteed({**base["limits"], **_quantities(patch)}) | _device_claims(base, patch)
    if key in _MERGE_KEYS:
        return _merge_items(base, patch, _MERGE_KEYS[key], base_wins=is_protected)
    if isinstance(base, list):
        return [*base, *patch]
    if isinstance(base, dict) and isinstance(patch, Mapping):
        return {**patch, **base} if is_protected else merge_pod_template(base, patch)
    return patch


def add_defaults(template: Manifest, defaults: Mapping[str, Any]) -> Manifest:
    """Return the template, with missing fields filled from `defaults`."""
    filled = dict(template)
    for key, default in defaults.items():
        filled[key] = _fill_value(key, template[key], default) if key in template else default
    return filled


def _fill_value(key: str, value: Any, default: Any) -> Any:
    """Return the template's value of a field, with those parts of the default value that it lacks."""
    if key == "containers":
        return [add_defaults(container, _find_named(default, container["name"])) for container in value]
    if key == "resources":
        # The limits of `value` equal its requests.
        return _guaranteed({**_quantities(default), **value["limits"]}) | _device_claims(value, default)
    if isinstance(value, dict):
        return add_defaults(value, default)
    if key in _MERGE_KEYS:
        return _merge_items(value, default, _MERGE_KEYS[key], base_wins=True)
    if key in _APPENDED_DEFAULTS:
        return [*value, *default]
    return value


def _quantities(resources: Mapping[str, Any]) -> Manifest:
    """Return the limit of each resource, or its request if it has no limit."""
    return {**resources.get("requests", {}), **resources.get("limits", {})}


def _guaranteed(quantities: Manifest) -> Manifest:
    """Return `resources` whose requests equal its limits, so that the pod is Guaranteed and nothing throttles it."""
    return {"requests": dict(quantities), "limits": dict(quantities)}


def _device_claims(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Manifest:
    """Return the device claims of both `resources` as their field `claims`; empty if there are none."""
    claims = [*base.get("claims", ()), *patch.get("claims", ())]
    return {"claims": claims} if claims else {}


def _find_named(items: list[Manifest], name: str) -> Manifest:
    """Return the item with that name; empty if there is none."""
    return next((item for item in items if item.get("name") == name), {})


def _merge_items(base: list[Manifest], patch: list[Manifest], key: str, *, base_wins: bool) -> list[Manifest]:
    """Merge two lists of items that their field `key` identifies.

    If both lists have an item, that of `base` is kept if `base_wins`, else that of `patch`.
    """
    # An identifier can be a path, and `/cache/` is the same as `/cache`.
    patch_items = {posixpath.normpath(item[key]): item for item in patch}
    base_names = [posixpath.normpath(item[key]) for item in base]
    merged = list(base)
    if not base_wins:
        merged = [patch_items.get(name, item) for name, item in zip(base_names, base, strict=True)]
    return [*merged, *(item for name, item in patch_items.items() if name not in base_names)]

"""Manifests for the tables: a run that is good, and ways to change it."""

import copy
import re
from typing import Any

GOOD: dict[str, Any] = {
    "apiVersion": "accelbench.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "matmul-chain"},
    "spec": {
        "workload": {"name": "matmul-chain"},
        "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}],
    },
}

ABSENT = object()


def changed(changes: dict[str, Any], manifest: dict[str, Any] = GOOD) -> dict[str, Any]:
    """Return a copy of `manifest` with fields set by path, `spec.variants[0].use`; ABSENT removes one."""
    result = copy.deepcopy(manifest)
    for path, value in changes.items():
        *parents, last = [int(key) if key.isdecimal() else key for key in re.findall(r"[^.\[\]]+", path)]
        at: Any = result
        for key in parents:
            at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
        if value is ABSENT:
            del at[last]
        else:
            at[last] = value
    return result


def runner(**fields: Any) -> dict[str, Any]:
    """Return a pod template whose runner has these fields."""
    return {"spec": {"containers": [{"name": "runner", **fields}]}}

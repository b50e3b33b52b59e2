"""A variant that runs out of memory is named by the run, and rounds of the others are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from cluster.wait import HANG_SECONDS
from e2e.installation import conditions

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.installation import Installed

SCRIPT = """
import numpy as np


def arrays(rng):
    return {"x": rng.standard_normal((64, 64))}


def numpy(x):
    return x @ x


def numpy_hoarding(x):
    hoard = np.ones(2**29)  # 4 GiB, which the kernel cannot reclaim: the limit ends the process at once
    return x @ x * hoard[0]
"""
MANIFEST = yaml.safe_dump(
    {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "hungry"},
        "spec": {
            "workload": {"script": {"configMapKeyRef": {"name": "hungry", "key": "hungry.py"}}},
            "variants": [
                {"use": "numpy/eager"},
                {"name": "again", "use": "numpy/eager"},
                {"use": "numpy_hoarding/eager"},
            ],
            # Whatever else is at work here: what becomes of the others' rounds is what is asked.
            "measurement": {"rounds": {"min": 3, "max": 3}, "timeLimitSeconds": HANG_SECONDS, "acceptNoise": True},
            "podTemplate": {"spec": {"containers": [{"name": "runner", "resources": {"limits": {"memory": "1Gi"}}}]}},
        },
    }
)


def test_the_run_names_the_variant_and_keeps_the_complete_rounds_of_the_others(
    installed: Installed, record: Callable[..., None]
) -> None:
    installed.cluster.kubectl("create", "configmap", "hungry", f"--from-literal=hungry.py={SCRIPT}")
    installed.apply(MANIFEST)
    run = installed.finished("hungry")
    succeeded = conditions(run)["Succeeded"]
    assert succeeded["status"] == "False"
    assert "numpy_hoarding/eager OutOfMemory" in succeeded["message"]
    assert "Raise the limit" in succeeded["message"]
    record("out of memory", succeeded)
    (stored,) = installed.owned("benchmarkresults", "hungry")
    variants = {variant["name"]: variant for variant in stored["result"]["variants"]}
    assert variants["numpy_hoarding/eager"]["failure"]["reason"] == "OutOfMemory"
    assert stored["result"]["rounds"] == 3
    (comparison,) = [each for each in stored["result"]["comparisons"] if each["variant"] == "again"]
    assert comparison["rounds"] == 3
    # Beside other load there is an interval and no verdict; where blocks drift with it, not even a time.
    assert comparison.get("verdict") or comparison.get("noisy") or comparison["invalid"]
    if not comparison.get("invalid"):
        assert [len(variants[kept]["launches"]) for kept in ("numpy/eager", "again")] == [3, 3]

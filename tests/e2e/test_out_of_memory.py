"""A variant that runs out of memory is a result: its name stands on the run, the others' rounds are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from cluster.wait import HANG_SECONDS
from e2e.installation import conditions

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.installation import Installed

# torch.compile starts a C++ compiler beside the process, which does not fit; NumPy does.
MANIFEST = yaml.safe_dump(
    {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "hungry"},
        "spec": {
            "workload": {"name": "matmul-chain", "parameters": {"size": 64, "length": 4}},
            "variants": [
                {"use": "numpy/eager"},
                {"name": "again", "use": "numpy/eager"},
                {"use": "pytorch/compile"},
            ],
            # Whatever else is at work here: what becomes of the others' rounds is what is asked.
            "measurement": {"rounds": {"min": 3, "max": 3}, "timeLimitSeconds": HANG_SECONDS, "acceptNoise": True},
            "podTemplate": {"spec": {"containers": [{"name": "runner", "resources": {"limits": {"memory": "480Mi"}}}]}},
        },
    }
)


def test_the_run_names_the_variant_and_keeps_the_complete_rounds_of_the_others(
    installed: Installed, record: Callable[..., None]
) -> None:
    installed.apply(MANIFEST)
    run = installed.finished("hungry")
    succeeded = conditions(run)["Succeeded"]
    assert succeeded["status"] == "False"
    assert "pytorch/compile OutOfMemory" in succeeded["message"]
    assert "Raise the limit" in succeeded["message"]
    record("out of memory", succeeded)
    (stored,) = installed.owned("benchmarkresults", "hungry")
    variants = {variant["name"]: variant for variant in stored["result"]["variants"]}
    assert variants["pytorch/compile"]["failure"]["reason"] == "OutOfMemory"
    assert stored["result"]["rounds"] == 3
    (comparison,) = [each for each in stored["result"]["comparisons"] if each["variant"] == "again"]
    assert comparison["rounds"] == 3
    # Beside other load there is an interval and no verdict; where blocks drift with it, not even a time.
    assert comparison.get("verdict") or comparison.get("noisy") or comparison["invalid"]
    if not comparison.get("invalid"):
        assert [len(variants[kept]["launches"]) for kept in ("numpy/eager", "again")] == [3, 3]

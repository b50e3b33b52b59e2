"""A user's workload on a real node: a file in a ConfigMap, which may be created after the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from cluster.wait import HANG_SECONDS, wait_until
from e2e.installation import conditions

if TYPE_CHECKING:
    from e2e.installation import Installed

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "softmax_rows.py"
MANIFEST = yaml.safe_dump(
    {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "mine"},
        "spec": {
            "workload": {
                "script": {"configMapKeyRef": {"name": "my-workloads", "key": SCRIPT.name}},
                "parameters": {"rows": 256, "columns": 256},
            },
            "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}],
            "measurement": {"rounds": {"min": 3, "max": 3}, "timeLimitSeconds": HANG_SECONDS, "acceptNoise": True},
        },
    }
)


def test_a_script_is_measured_when_its_config_map_exists(installed: Installed) -> None:
    installed.apply(MANIFEST)
    wait_until(
        lambda: any("ConfigMap my-workloads" in each["message"] for each in conditions(installed.run("mine")).values()),
        what="the status to name the ConfigMap that is missing",
    )
    installed.cluster.kubectl("create", "configmap", "my-workloads", f"--from-file={SCRIPT}")
    run = installed.finished("mine")
    assert conditions(run)["Finished"]["status"] == "True"
    (stored,) = installed.owned("benchmarkresults", "mine")
    result = stored["result"]
    assert result["case"]["workload"] == "softmax-rows"
    assert result["fingerprint"]["workloadSource"]
    parity = {
        check["variant"]: check["outcome"] for check in result["certificate"]["checks"] if check["name"] == "parity"
    }
    assert parity == {"pytorch/eager": "passed", "jax/jit": "passed"}

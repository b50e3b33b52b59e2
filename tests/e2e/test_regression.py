"""A slower program, measured on the node, causes a notification by the chart's own rule.

Nothing is made up: both runs are measured. That a history is seconds and not a week is the rules' interval in
`monitoring`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cluster.wait import HANG_SECONDS, wait_until
from e2e.installation import conditions

if TYPE_CHECKING:
    from e2e.installation import Installed

pytestmark = pytest.mark.nightly

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "softmax_rows.py"
FAST = SCRIPT.read_text()
LINE = "    shifted = torch.exp("
TIMES_AS_MUCH = 20
SLOW = FAST.replace(LINE, f"    for _ in range({TIMES_AS_MUCH}):\n    {LINE}")
"""The same result, by computing most of it time and again: beyond all noise."""
SERIES, VARIANT = "nightly", "pytorch/eager"


def measure(installed: Installed, run: str, script: str) -> None:
    """Apply a run of the series."""
    source = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": run}, "data": {SCRIPT.name: script}}
    installed.cluster.apply(source)
    manifest = {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": run},
        "spec": {
            "series": SERIES,
            "workload": {
                "script": {"configMapKeyRef": {"name": run, "key": SCRIPT.name}},
                "parameters": {"rows": 256, "columns": 256},
            },
            "variants": [{"use": "jax/jit"}, {"use": VARIANT}],
            "measurement": {"rounds": {"min": 3, "max": 3}, "timeLimitSeconds": HANG_SECONDS, "acceptNoise": True},
        },
    }
    installed.apply(yaml.safe_dump(manifest))


def assert_measured(installed: Installed, run: str) -> None:
    """Assert that the run has a time; under other load it has no verdict."""
    succeeded = conditions(installed.finished(run))["Succeeded"]
    assert succeeded["reason"] in {"Succeeded", "Noisy"}, succeeded


def notified(installed: Installed, status: str) -> list[dict[str, Any]]:
    """Return the notified alerts about the variant."""
    marks = {"series": SERIES, "variant": VARIANT}.items()
    return [
        each for each in installed.notifications.of("AccelbenchRegression", status) if marks <= each["labels"].items()
    ]


def test_a_regression_and_its_end_are_notified_to_the_person_on_call(installed: Installed) -> None:
    assert SLOW != FAST
    measure(installed, "monday", FAST)
    assert_measured(installed, "monday")
    before = f'count_over_time(accelbench:step_seconds:median7d{{series="{SERIES}", variant="{VARIANT}"}}[1h]) > 10'
    wait_until(lambda: installed.prometheus.query(before), what="a history")
    assert notified(installed, "firing") == []

    # What another replica exports is the same series.
    measure(installed, "tuesday", SLOW)
    installed.kill_leader()
    assert_measured(installed, "tuesday")
    wait_until(lambda: notified(installed, "firing"), what="the notification of the regression")
    [alert] = notified(installed, "firing")
    marks = {"namespace": installed.cluster.namespace, "case": "all", "severity": "warning", "team": "ml"}
    assert marks.items() <= alert["labels"].items()
    assert alert["annotations"]["runbook"].endswith("#accelbenchregression")

    # Without that result, the latest of the series is again that of Monday.
    installed.cluster.kubectl("delete", "benchmarkresults", "--selector=accelbench.dev/run=tuesday")
    wait_until(lambda: notified(installed, "resolved"), what="the regression to be over")
    assert len(notified(installed, "firing")) == 1, "a regression is notified twice"

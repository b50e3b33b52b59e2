"""On a real node: apply the first example, and read the verdict in kubectl, Prometheus and Grafana."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from accelbench.api.result import MAXIMUM_BYTES
from accelbench.validity.quarantine import noise_check_names
from cluster.errors import DeadlineError
from cluster.wait import HANG_SECONDS, wait_until
from e2e.installation import conditions
from grafana.dashboards import ALL

if TYPE_CHECKING:
    from e2e.installation import Installed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = yaml.safe_load((ROOT / "examples" / "01-matmul-chain.yaml").read_text())
# Where others use the machine, the numbers are noisy, and are shown all the same; and a round may take minutes. With
# time for one round, the run would end as soon as that round is reported, and nobody could see it under way.
EXAMPLE["spec"]["measurement"] |= {"acceptNoise": True, "timeLimitSeconds": HANG_SECONDS}
UNMET = {
    **EXAMPLE,
    "metadata": {"name": "unmet"},
    "spec": {
        "workload": {"name": "matmul-chain", "parameters": {"size": 16, "length": 20}},
        "variants": [{"use": "numpy/eager"}, {"name": "again", "use": "numpy/eager"}],
        "measurement": EXAMPLE["spec"]["measurement"],
        "expectations": [{"metric": "parity", "variant": "again", "atMost": "0"}],
    },
}
"""What no float32 can do: however quiet the machine, there is a result that does not stand."""
VERDICTS = {"faster", "slower", "equivalent", "inconclusive", "noisy"}


def verdict(comparison: dict[str, Any]) -> str:
    """What a stored comparison comes to."""
    return "noisy" if comparison.get("noisy") else str(comparison["verdict"])


@pytest.fixture(scope="module")
def example(installed: Installed) -> dict[str, Any]:
    """The first example, applied, seen under way, and finished."""
    installed.apply(yaml.safe_dump(EXAMPLE))
    under_way = 'accelbench_live_rounds{run="matmul-chain"} >= 1'
    expected = "the first round to be reported while it runs"
    installed.until(lambda: installed.prometheus.query(under_way), "matmul-chain", what=expected)
    return installed.finished("matmul-chain")


def test_the_run_is_accepted_finishes_and_succeeds(example: dict[str, Any]) -> None:
    found = {name: (condition["status"], condition["reason"]) for name, condition in conditions(example).items()}
    ends = ("Succeeded", "True"), ("Noisy", "False")
    stalled = found.pop("Stalled", None)
    assert found in [
        {"Accepted": ("True", "Accepted"), "Finished": ("True", reason), "Succeeded": (status, reason)}
        for reason, status in ends
    ]
    assert (stalled is None) is (found["Succeeded"][0] == "True")
    assert example["status"]["cases"] == {"total": 1, "active": 0, "measured": 1, "failed": 0}


def test_one_result_is_stored_and_names_the_run_and_its_image(installed: Installed, example: dict[str, Any]) -> None:
    (stored,) = installed.owned("benchmarkresults", "matmul-chain")
    assert stored["metadata"]["labels"]["accelbench.dev/run-uid"] == example["metadata"]["uid"]
    result = stored["result"]
    assert stored["summary"]["pod"].startswith("matmul-chain-")
    image = stored["summary"]["image"]
    assert "@sha256:" in image or image.startswith("sha256:")
    assert result["fingerprint"]["image"] == example["status"]["runner"]["image"]
    assert example["status"]["workloadSource"] == result["fingerprint"]["workloadSource"]
    assert result["complete"] is True
    least = example["spec"]["measurement"]["rounds"]["min"]
    assert result["rounds"] >= least or result["stopped"] in {"TimeLimitReached", "NoTimeForRound"}
    assert {variant["name"] for variant in result["variants"]} == {"pytorch/eager", "jax/jit", "jax/op-by-op"}
    for variant in result["variants"]:
        assert float(variant["seconds"]["medianSeconds"]) > 0
        assert {"import", "first-step", "steady"} <= {phase["phase"] for phase in variant["phases"]}
    for comparison in result["comparisons"]:
        assert verdict(comparison) in VERDICTS
        assert float(comparison["lower"]) <= float(comparison["speedup"]) <= float(comparison["upper"])
    outcomes = {(check["name"], check["outcome"]) for check in result["certificate"]["checks"]}
    assert ("parity", "passed") in outcomes
    assert {name for name, outcome in outcomes if outcome == "failed"} <= noise_check_names()
    assert len(json.dumps(result)) <= MAXIMUM_BYTES


def test_the_status_table_matches_the_result(installed: Installed, example: dict[str, Any]) -> None:
    (stored,) = installed.owned("benchmarkresults", "matmul-chain")
    rows = {row["variant"]: row for row in example["status"]["comparisons"]}
    for comparison in stored["result"]["comparisons"]:
        row = rows[comparison["variant"]]
        assert row["verdict"] == verdict(comparison)
        assert row["result"] == stored["metadata"]["name"]


def test_kubectl_get_shows_the_speedup_with_its_interval(installed: Installed, example: dict[str, Any]) -> None:
    assert example
    shown = installed.cluster.kubectl("get", "bmr", "matmul-chain").stdout
    header, row = shown.splitlines()
    assert header.split()[:2] == ["NAME", "WORKLOAD"]
    assert re.search(r"\d+\.\d+x \(\d+\.\d+ to \d+\.\d+\)", row), shown


def test_prometheus_has_the_speedup_and_its_interval(installed: Installed, example: dict[str, Any]) -> None:
    (stored,) = installed.owned("benchmarkresults", example["metadata"]["name"])
    for comparison in stored["result"]["comparisons"]:
        selector = f'{{series="matmul-chain", variant="{comparison["variant"]}"}}'
        for metric, field in (
            ("accelbench_speedup_ratio", "speedup"),
            ("accelbench_speedup_lower_ratio", "lower"),
            ("accelbench_speedup_upper_ratio", "upper"),
        ):
            wait_until(lambda: installed.prometheus.query(metric + selector), what=metric)  # noqa: B023 - within the turn
            (sample,) = installed.prometheus.query(metric + selector)
            assert float(sample["value"][1]) == pytest.approx(float(comparison[field]))


def test_the_job_is_deleted_when_its_result_is_stored(installed: Installed, example: dict[str, Any]) -> None:
    name = example["metadata"]["name"]
    wait_until(lambda: installed.owned("jobs", name) == [], what="the Job to be deleted")
    assert installed.owned("jobs", name) == []


def test_every_query_of_the_overview_and_of_the_operators_dashboard_returns_data(
    installed: Installed, example: dict[str, Any]
) -> None:
    assert example["status"]["phase"] in {"Succeeded", "Noisy"}
    installed.apply(yaml.safe_dump(UNMET))
    installed.finished("unmet")
    (stored,) = installed.owned("benchmarkresults", "unmet")
    assert [each["outcome"] for each in stored["expectations"]] == ["not-met"]
    queries = [
        (title, dashboard.filled_in(query))
        for dashboard in (ALL["overview"], ALL["operator"])
        for title, query in dashboard.queries()
    ]

    def silent() -> list[str]:
        """What moved most is looked for once a minute, and a rate needs a second scrape."""
        return [title for title, query in queries if not installed.prometheus.query(query)]

    with contextlib.suppress(DeadlineError):
        wait_until(lambda: not silent(), what="data for every query")
    assert silent() == []

"""Programs for a GPU and a slice of TPUs, compiled in pods of a node that has neither."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.api.result import Result
from cluster.wait import wait_until
from e2e.installation import conditions
from image.build import NATIVE

if TYPE_CHECKING:
    from e2e.installation import Installed

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(NATIVE != "amd64", reason="there is no libtpu for other machines"),
]

ROOT = Path(__file__).resolve().parents[2]
NAME = "08-fusion-of-sine-and-cosine-on-targets"
RUN = f"claim-{NAME}"
TARGETS = {"h100", "v5e-16"}
OF_THE_PROCESS = {"compile_peak_memory_bytes"}
"""What compiling took there, and not what came of it."""


@pytest.fixture(scope="module")
def run(installed: Installed) -> dict[str, Any]:
    """A row of the claims about two targets, applied and finished."""
    installed.apply((ROOT / "examples" / "claims" / f"{NAME}.yaml").read_text())
    return installed.finished(RUN)


def numbers(result: Result) -> dict[str, dict[str, object]]:
    """By variant, what the compiler made of it, and none of what that took."""
    return {
        variant.name: variant.numbers.model_dump(exclude_none=True, exclude=OF_THE_PROCESS)
        for variant in result.variants
    }


def test_a_pod_and_a_laptop_have_the_same_findings(installed: Installed, run: dict[str, Any]) -> None:
    assert conditions(run)["Succeeded"]["status"] == "True", conditions(run)
    stored = [Result.model_validate(each["result"]) for each in installed.owned("benchmarkresults", RUN)]
    in_pods = {result.case.accelerator.target: result for result in stored}
    files = (ROOT / "tests" / "data" / "compiled").glob("*.result.json")
    on_a_laptop = [Result.model_validate_json(file.read_text()) for file in files]
    assert in_pods.keys() == {result.case.accelerator.target for result in on_a_laptop} == TARGETS
    for result in on_a_laptop:
        in_a_pod = in_pods[result.case.accelerator.target]
        assert in_a_pod.compiled == result.compiled
        found = numbers(in_a_pod)
        for variant, known in numbers(result).items():
            assert known
            assert {name: found[variant].get(name) for name in known} == known


def test_no_pod_reports_a_time(installed: Installed, run: dict[str, Any]) -> None:
    for stored in installed.owned("benchmarkresults", run["metadata"]["name"]):
        assert not stored["result"].get("comparisons")
        assert all("seconds" not in variant for variant in stored["result"]["variants"])


def test_kubectl_and_prometheus_show_that_the_program_fits(installed: Installed, run: dict[str, Any]) -> None:
    shown = installed.cluster.kubectl("get", "bmr", run["metadata"]["name"]).stdout
    assert "fits" in shown, shown
    query = f'accelbench_target_fits{{series="{RUN}"}}'
    wait_until(lambda: len(installed.prometheus.query(query)) == len(TARGETS), what="both targets in Prometheus")
    samples = installed.prometheus.query(query)
    assert {sample["metric"]["accelerator"]: sample["value"][1] for sample in samples} == dict.fromkeys(TARGETS, "1")

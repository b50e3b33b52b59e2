"""The health of runs and results according to the packages of GitOps tools."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from accelbench.api.metadata import ObjectMeta
from accelbench.api.reasons import ConditionReason
from accelbench.api.result import BenchmarkResult, Failure, JudgedExpectation
from gitops.build import judges
from gitops.page import ROOT, shown
from gitops.phases import PHASES, run_in
from operator_world.builders import make_plan, make_result, run_manifest

CHECKS = ROOT / "examples" / "argocd" / "argocd-cm.yaml"
UNSEEN = "new: no operator has seen it"
CORRECTED = "InvalidSpec, but corrected since"
DELETED = "being deleted"

pytestmark = pytest.mark.nightly


def judge(objects: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The verdict of each tool on each object."""
    done = subprocess.run(
        [judges(), "health", CHECKS], input=json.dumps(objects), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def runs() -> dict[str, dict[str, Any]]:
    """A run in each phase, and on its way from one to another."""
    unseen = run_manifest() | {"status": {"observedGeneration": 0}}
    corrected, deleted = run_in(ConditionReason.INVALID_SPEC), run_in(ConditionReason.RUNNING)
    corrected["metadata"]["generation"] = 2
    deleted["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    return {UNSEEN: unseen, CORRECTED: corrected, **{phase: run_in(phase) for phase in PHASES}, DELETED: deleted}


def test_the_page_has_the_verdict_of_each_tool_on_each_phase() -> None:
    states = runs()
    verdicts = zip(states, judge(list(states.values())), strict=True)
    assert shown() == {state: (verdict["kstatus"], verdict["argo"]) for state, verdict in verdicts}


def test_flux_agrees_with_kstatus() -> None:
    for verdict in judge(list(runs().values())):
        assert verdict["flux"] == verdict["kstatus"], verdict


def test_a_gate_opens_for_a_success_and_in_flux_for_a_run_that_its_own_spec_suspends() -> None:
    states = runs()
    judged = dict(zip(states, judge(list(states.values())), strict=True))
    healthy = {state for state, verdict in judged.items() if verdict["argo"] == "Healthy"}
    current = {state for state, verdict in judged.items() if verdict["kstatus"] == "Current"}
    assert healthy == {"Succeeded"}
    assert current == {"Succeeded", "Suspended"}


def test_argo_cd_shows_why_a_run_waits_and_why_it_failed() -> None:
    for phase in PHASES:
        [verdict] = judge([run_in(phase)])
        [finished] = [each for each in run_in(phase)["status"]["conditions"] if each["type"] == "Finished"]
        if phase not in {ConditionReason.SUCCEEDED, ConditionReason.INVALID_SPEC}:
            assert finished["message"] in verdict["message"]
    [refused] = judge([run_in(ConditionReason.INVALID_SPEC)])
    assert "jax/jitt" in refused["message"]


def test_a_result_is_healthy_if_it_is_valid_and_meets_its_expectations() -> None:
    def stored(*expectations: JudgedExpectation, **result: Any) -> dict[str, Any]:
        found = make_result(make_plan().cases[0], **result)
        document = BenchmarkResult.from_result(found, ObjectMeta(name="chain"), expectations)
        return json.loads(document.model_dump_json(by_alias=True, exclude_none=True))

    expected = {"metric": "speedup", "variant": "jax/jit", "atLeast": "3", "message": "speedup of jax/jit is 2"}
    missed = JudgedExpectation.model_validate(expected | {"outcome": "not-met"})
    failed = stored(failure=Failure(reason="OutOfMemory", message="too big", round=2))
    verdicts = judge([stored(), stored(missed), failed, stored(complete=False)])
    assert [verdict["argo"] for verdict in verdicts] == ["Healthy", "Degraded", "Degraded", "Degraded"]
    assert verdicts[1]["message"] == missed.message
    assert {verdict["kstatus"] for verdict in verdicts} == {"Current"}

"""A run with targets: a case for each, on ordinary nodes, refused where it cannot be."""

from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.profiles import Profiles, parse_profiles
from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs.accept import Plan, Refused, accept
from accelbench_operator.runs.job import build_job
from accelbench_operator.runs.summary import summarize
from operator_world.builders import IMAGE, make_plan, run_manifest
from targets.documents import compiled

PROFILES = Profiles(parse_profiles("for-h100: {preset: cpu, target: h100x8}", "x"))


def accepted(**spec: Any) -> Plan | Refused:
    return accept(run_manifest(**spec), PROFILES, IMAGE)


def test_each_case_of_a_sweep_is_compiled_for_each_target() -> None:
    plan = make_plan(sizes=(64, 128), accelerator={"targets": ["h100", "v5e-16"]})
    found = [(case.accelerator.target, case.parameters["size"]) for case in plan.cases]
    assert found == [("h100", 64), ("h100", 128), ("v5e-16", 64), ("v5e-16", 128)]
    assert len({case.name for case in plan.cases}) == 4


def test_a_profile_brings_its_target_and_the_runs_own_come_first() -> None:
    own = make_plan(profiles=PROFILES, accelerator={"profile": "for-h100"})
    other = make_plan(profiles=PROFILES, accelerator={"profile": "for-h100", "targets": ["v5e-16"]})
    assert [case.accelerator.target for case in (*own.cases, *other.cases)] == ["h100x8", "v5e-16"]


def test_a_compiled_case_has_no_price_because_it_has_no_time() -> None:
    priced = Profiles(parse_profiles('dear: {preset: cpu, target: h100, pricePerHour: "11.06 USD"}', "x"))
    (case,) = make_plan(profiles=priced, accelerator={"profile": "dear"}).cases
    assert case.accelerator.price_per_hour is None


def test_a_case_too_large_for_any_pod_can_be_compiled_for_many_chips() -> None:
    sizes = {"layers": 32, "width": 4096, "heads": 32, "vocabulary": 32_000}
    spec = {
        "workload": {"name": "transformer-lm", "parameters": sizes},
        "variants": [{"use": "jax/jit-scanned"}],
        "baseline": "jax/jit-scanned",
        "sweep": [],
    }
    assert isinstance(accepted(**spec, accelerator={"targets": ["v5e-256"]}), Plan), "its arrays are never drawn"
    refused = accepted(**spec)
    assert isinstance(refused, Refused)
    assert "needs at least" in refused.message


def test_the_pod_of_a_compiled_case_requests_no_device() -> None:
    plan = make_plan(accelerator={"targets": ["h100x8"]})
    job = build_job(plan.run, plan.cases[0], 1, plan.runner)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert set(container["resources"]["limits"]) == {"cpu", "memory", "ephemeral-storage"}
    assert '"target":"h100x8"' in job["spec"]["template"]["metadata"]["annotations"][labels.CASE_ANNOTATION]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"accelerator": {"targets": ["h100x9"]}}, 'spec.accelerator.targets[0]: unknown target "h100x9"'),
        (
            {"accelerator": {"profile": "nvidia", "targets": ["h100"]}},
            "spec.accelerator.profile: compiling needs no device, but profile nvidia has one",
        ),
        (
            {"accelerator": {"targets": ["v5e-16"]}, "measurement": {"precision": "tf32"}},
            "spec.measurement.precision: tf32 is a format of NVIDIA GPUs",
        ),
        (
            {
                "accelerator": {"targets": ["v5e-16"]},
                "expectations": [{"metric": "speedup", "variant": "jax/jit", "atLeast": "2"}],
            },
            "spec.expectations[0].metric: speedup is not known for a case that is compiled for a target",
        ),
        (
            {
                "accelerator": {"targets": ["v5e-16"]},
                "expectations": [{"metric": "fits", "variant": "jax/jit", "atLeast": "1", "target": "v5e-8"}],
            },
            'spec.expectations[0].target: unknown target "v5e-8"; did you mean v5e-16?',
        ),
        (
            {"expectations": [{"metric": "kernelsPerCall", "variant": "jax/jit", "atMost": "1", "target": "h100"}]},
            "spec.expectations[0].target: the run has no compile target",
        ),
    ],
)
def test_an_impossible_target_is_refused_with_the_remedy(spec: dict[str, Any], message: str) -> None:
    refused = accepted(**spec)
    assert isinstance(refused, Refused)
    assert message in refused.message


def test_the_operator_keeps_the_target_the_finding_and_the_numbers() -> None:
    held = summarize(compiled(), Key("BenchmarkResult", "team-a", "a-result", ""), "uid")
    assert held.accelerator == "h100x8"
    assert held.observations == ("jax/jit fits h100x8 (40.0 GB of 80.0 GB a device)",)
    assert held.valid
    eager, jitted = held.variants
    assert eager.failure is None
    assert (jitted.numbers["fits"], jitted.numbers["peak_bytes"], jitted.numbers["all_reduce_bytes"]) == (1, 4e10, 6e6)

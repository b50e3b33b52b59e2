# ruff: noqa: S311 - samples, no secrets
"""Each check fails on the facts that it exists to detect, and passes good ones."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.api.case import Case
from accelbench.api.result import Check
from accelbench.launch.fact import MAXIMUM_CHARACTERS
from accelbench.launch.facts import Probe
from accelbench.launch.record import LaunchRecord, ParityReading
from accelbench.validity.certificate import certify, validity_checks
from accelbench.validity.check import LaunchCheck, passed, remedy_for
from accelbench.validity.evidence import Evidence
from accelbench_runner.judge.layout import mismatch
from judge.launches import BASELINE, GOOD_FACTS, GOOD_PARITY, VARIANT, a_case, a_launch, rounds_of, with_facts

NAMES = {check.name for check in validity_checks()}
WITHOUT_ENVIRONMENTS = NAMES - {"environment", "generator-late", "saturated"}
"""Checks of variants that run in accelbench's own environment, where no requests arrive."""


def checks_of(name: str, *launches: LaunchRecord, case: Case | None = None) -> list[Check]:
    certificate = certify(Evidence(case=case or a_case(), launches=launches))
    return [check for check in certificate.checks if check.name == name]


def only(name: str, *launches: LaunchRecord, case: Case | None = None) -> Check:
    (check,) = checks_of(name, *launches, case=case)
    return check


def reporting(number: int = 1, variant: str = VARIANT, **facts: Any) -> LaunchRecord:
    return a_launch(variant, number, facts=facts)


def without(name: str, variant: str = VARIANT) -> LaunchRecord:
    return with_facts(a_launch(variant), **{name: None})


def test_good_launches_fail_no_check() -> None:
    launches = rounds_of({BASELINE: [0.02] * 5, VARIANT: [0.01] * 5})
    certificate = certify(Evidence(case=a_case(), launches=launches))
    assert {check.name for check in certificate.checks} == WITHOUT_ENVIRONMENTS
    assert {check.name for check in certificate.checks if check.outcome != "passed"} == {"autocorrelated"}


def test_every_check_states_its_threshold_and_its_reason() -> None:
    assert all(check.threshold and check.reason for check in validity_checks())
    assert len(NAMES) == len(validity_checks())


def test_every_check_that_can_fail_has_a_remedy() -> None:
    never_fail = {"denormals"}
    assert {check.name for check in validity_checks() if not remedy_for(check, {})} == never_fail


def test_a_new_check_runs_without_times_unless_it_requires_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    new = LaunchCheck("new", threshold="any", reason="none", evaluate=lambda _case, _launch: passed("fine"))
    measured = replace(new, name="measured", measured_only=True)
    monkeypatch.setattr("accelbench.validity.certificate.validity_checks", lambda: (measured, new))
    evidence = Evidence(case=a_case(), launches=(a_launch(VARIANT),))
    assert [check.name for check in certify(evidence, timed=False).checks] == ["new"]
    assert [check.name for check in certify(evidence).checks] == ["measured", "new"]


@pytest.mark.parametrize(
    ("name", "fact", "probe"),
    [
        ("throttled", "throttling", "watch"),
        ("shared-device", "neighbours", "watch"),
        ("unsynchronised", "synchronisation", "synchronisation"),
        ("impossible-speed", "limits", "limits"),
    ],
)
def test_a_missing_answer_of_a_probe_fails_no_variant_and_is_noted(name: str, fact: str, probe: Probe) -> None:
    why = f"accelbench's own probe `{probe}` did not finish within 20 s in round 1"
    launch = with_facts(a_launch().model_copy(update={"unchecked": {probe: why}}), **{fact: None})
    check = only(name, launch)
    assert check.outcome == "untested"
    assert why in check.reading


DEVICE = GOOD_FACTS["device"]
PRECISION = GOOD_FACTS["precision"]


@pytest.mark.parametrize(
    ("name", "facts", "reading"),
    [
        ("wrong-device", {"device": {**DEVICE, "platform": "cuda"}}, "round 1: on cuda, cpu was requested"),
        ("threads", {"threads": {"requested": 2, "affinity": 4, "framework": 2}}, "4 processors allowed"),
        ("threads", {"threads": {"requested": 2, "affinity": 2, "framework": 1}}, "the framework uses 1"),
        ("precision", {"precision": {**PRECISION, "policy": "tf32"}}, "tf32 was set, float32 was requested"),
        ("precision", {"precision": {**PRECISION, "dtype": "bfloat16"}}, "arrays are bfloat16"),
        ("precision", {"precision": {**PRECISION, "matmul": {"cuda.matmul": "tf32"}}}, "cuda.matmul is tf32"),
        ("precision", {"precision": {**PRECISION, "matmul": {"x": None}}}, "x is None, which is not float32"),
        ("recompiled", {"recompilations": 2, "recompilationCauses": ["a new shape"]}, "2 in the steady phase: a new"),
        ("recompiled", {"recompilations": 1, "recompilationCauses": 7}, "1 in the steady phase"),
        ("clock", {"clock": {"resolution_seconds": 0.001}}, "clock resolves 1e+06 ns"),
        ("clock", {"clock": {"resolution_seconds": 0.0}}, "clock resolves 0 ns"),
        ("shared-device", {"neighbours": {"busy_seconds": 0.3, "offered_seconds": 2.0}}, "Other processes used 15 %"),
        (
            "throttled",
            {"throttling": {"periods": 3, "seconds": 0.1}},
            "CPU quota: 50 % of the timed seconds (limit 1 %)",
        ),
        (
            "throttled",
            {"throttling": {"periods": 0, "seconds": 0.0, "steal_seconds": 0.14}},
            "Hypervisor steal: 7 % (limit 5 %) in round 1",
        ),
    ],
)
def test_a_launch_that_violates_a_rule_fails_the_check_with_its_numbers(
    name: str, facts: dict[str, Any], reading: str
) -> None:
    check = only(name, reporting(**facts))
    assert (check.outcome, check.variant) == ("failed", VARIANT)
    assert reading in check.reading


def test_with_default_precision_a_frameworks_own_settings_pass_and_are_shown() -> None:
    settings = {**PRECISION, "policy": "default", "matmul": {"cuda.matmul": "ieee", "cudnn.conv": "tf32", "jax": None}}
    check = only("precision", reporting(precision=settings), case=a_case(precision="default"))
    assert check.outcome == "passed"
    assert "cuda.matmul ieee, cudnn.conv tf32, jax unset" in check.reading


def test_blocks_too_short_for_the_clock_fail() -> None:
    check = only("clock", a_launch(block_seconds=0.001, seconds=0.001))
    assert check.outcome == "failed"
    assert "blocks of 1 ms" in check.reading


def test_a_launch_without_blocks_fails_the_clock() -> None:
    launch = a_launch().model_copy(update={"blocks": ()})
    assert only("clock", launch).reading == "no block was timed"


def test_one_bad_round_fails_its_variant_and_is_named() -> None:
    bad = [reporting(number, recompilations=1) for number in range(2, 7)]
    check = only("recompiled", a_launch(number=1), bad[0])
    assert (check.outcome, check.reading) == ("failed", "round 2: 1 in the steady phase")
    assert only("recompiled", a_launch(number=1), *bad[:2]).reading == "rounds 2 and 3: 1 in the steady phase"
    assert only("recompiled", a_launch(number=1), *bad).reading.startswith("rounds 2, 3, 4 and 2 more: 1 in")
    assert only("recompiled", *bad).reading == "1 in the steady phase"


def test_disturbed_rounds_are_counted_in_a_sentence() -> None:
    crowded = {"busy_seconds": 1.04, "offered_seconds": 2.0}
    reading = only("shared-device", *(reporting(number, neighbours=crowded) for number in range(1, 8))).reading
    assert reading == "Other processes used 52 % of the CPU in round 1; 6 more rounds were also disturbed"
    reading = only("shared-device", *(reporting(number, neighbours=crowded) for number in (1, 2))).reading
    assert reading.endswith("in round 1; 1 more round was also disturbed")


def test_the_processes_that_used_most_are_named() -> None:
    processes = [
        {"name": "python", "pid": 1234, "seconds": 0.98},
        {"name": "idle", "pid": 7, "seconds": 0.001},
    ]
    busy = {"busy_seconds": 1.04, "offered_seconds": 2.0, "processes": processes}
    assert only("shared-device", reporting(neighbours=busy)).reading == (
        "Other processes used 52 % of the CPU (python, pid 1234: 49 %) in round 1"
    )


@pytest.mark.parametrize("failed_first", [True, False])
def test_a_failure_outranks_an_untested_check(failed_first: bool) -> None:
    held_back = reporting(2, throttling={"periods": 9, "seconds": 0.1})
    launches = (held_back, without("throttling"))
    check = only("throttled", *(launches if failed_first else launches[::-1]))
    assert check.outcome == "failed"


@pytest.mark.parametrize(("seconds", "outcome"), [(0.0019, "passed"), (0.0021, "failed")])
def test_being_throttled_for_a_hundredth_of_the_timed_seconds_is_the_limit(seconds: float, outcome: str) -> None:
    assert only("throttled", reporting(throttling={"periods": 1, "seconds": seconds})).outcome == outcome


def test_the_other_variant_passes() -> None:
    bad, good = checks_of("recompiled", a_launch(BASELINE), reporting(recompilations=1))[::-1]
    assert (good.variant, good.outcome) == (BASELINE, "passed")
    assert (bad.variant, bad.outcome) == (VARIANT, "failed")


def test_a_reading_that_is_the_same_for_all_variants_is_given_once() -> None:
    check = only("threads", a_launch(BASELINE), a_launch(VARIANT))
    assert (check.variant, check.outcome) == (None, "passed")


def test_different_inputs_fail_for_every_variant() -> None:
    check = only("same-inputs", a_launch(BASELINE), reporting(inputsDigest="b" * 64))
    assert (check.outcome, check.variant) == ("failed", None)
    assert "aaaaaaaaaaaa in 1 launches" in check.reading


def test_different_devices_fail_for_every_variant() -> None:
    launches = a_launch(BASELINE), reporting(device={**DEVICE, "name": "another processor"})
    check = next(check for check in checks_of("wrong-device", *launches) if check.variant is None)
    assert check.outcome == "failed"
    assert "a processor, another processor" in check.reading


def test_denormals_flushed_on_one_side_are_a_warning() -> None:
    check = only("denormals", a_launch(BASELINE), reporting(precision={**PRECISION, "flush_denormal": False}))
    assert check.outcome == "untested"
    assert f"{BASELINE} flushed them, {VARIANT} did not" in check.reading


@pytest.mark.parametrize(
    ("parity", "check", "reading"),
    [
        (GOOD_PARITY.model_copy(update={"worst_ratio": 8.5}), "parity", "x[0]: error 0.2, 8.50 times the tolerance"),
        (None, "parity", "were not compared"),
        (None, "non-finite", "were not checked"),
        (
            GOOD_PARITY.model_copy(update={"finite": False, "detail": "x[3]: NaN or infinity"}),
            "non-finite",
            "x[3]: NaN or infinity",
        ),
    ],
)
def test_outputs_that_are_wrong_or_were_never_compared_fail(
    parity: ParityReading | None, check: str, reading: str
) -> None:
    found = only(check, a_launch(parity=parity))
    assert found.outcome == "failed"
    assert reading in found.reading


def test_outputs_that_differ_from_run_to_run_are_called_random() -> None:
    wrong = GOOD_PARITY.model_copy(update={"worst_ratio": 5e5, "diagnosis": "every number is 0"})
    replay = {"calls": 3, "timed": 0.9, "untimed": 1.2}
    dependence = {**GOOD_FACTS["dependence"], "replay": replay}
    reading = only("parity", a_launch(parity=wrong, facts={"dependence": dependence})).reading
    assert reading.startswith("x[0]: error 0.2, 500,000 times the tolerance; every number is 0; two runs of it")
    assert "the outputs are random, or depend on earlier calls" in reading
    replay["untimed"] = 1e-6
    assert "random" not in only("parity", a_launch(parity=wrong, facts={"dependence": dependence})).reading


def test_outputs_that_cannot_be_compared_have_no_ratio() -> None:
    check = only("parity", a_launch(parity=mismatch(1, "x has shape (8,), the reference (4,)")))
    assert (check.outcome, check.reading) == ("failed", "x has shape (8,), the reference (4,)")


@pytest.mark.parametrize(
    ("fact", "check", "outcome"),
    [
        ("device", "wrong-device", "failed"),
        ("threads", "threads", "failed"),
        ("precision", "precision", "failed"),
        ("precision", "denormals", "untested"),
        ("inputsDigest", "same-inputs", "failed"),
        ("recompilations", "recompiled", "failed"),
        ("clock", "clock", "failed"),
        ("throttling", "throttled", "untested"),
        ("neighbours", "shared-device", "untested"),
    ],
)
def test_a_missing_fact_does_not_pass(fact: str, check: str, outcome: str) -> None:
    found = only(check, without(fact))
    assert found.outcome == outcome
    assert "did not report" in found.reading


def test_few_rounds_cannot_show_that_they_are_independent() -> None:
    check = only("autocorrelated", *rounds_of({BASELINE: [0.02] * 19, VARIANT: [0.01] * 19}))
    assert (check.outcome, check.reading) == ("untested", "needs 20 rounds, has 19")


def test_rounds_that_follow_each_other_fail() -> None:
    slow_then_quick = [0.010] * 10 + [0.012] * 10
    check = only("autocorrelated", *rounds_of({BASELINE: [0.02] * 20, VARIANT: slow_then_quick}))
    assert (check.outcome, check.variant) == ("failed", VARIANT)


def test_independent_rounds_pass() -> None:
    rng = random.Random(5)
    times = [0.01 * (1 + 0.01 * rng.random()) for _ in range(20)]
    assert only("autocorrelated", *rounds_of({BASELINE: [0.02] * 20, VARIANT: times})).outcome == "passed"


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["platform", "policy"]), inner),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(GOOD_FACTS)), garbage, min_size=1))
def test_invalid_facts_never_crash_a_check(facts: dict[str, Any]) -> None:
    certificate = certify(Evidence(case=a_case(), launches=(a_launch(BASELINE), a_launch(facts=facts))))
    assert {check.name for check in certificate.checks} >= WITHOUT_ENVIRONMENTS
    assert all(len(check.reading) <= MAXIMUM_CHARACTERS for check in certificate.checks)

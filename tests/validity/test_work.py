"""What a call was counted to do, and what is made of it: work left out, work put in, and what nobody can tell."""

from typing import Any

import pytest

from accelbench.launch.record import LaunchRecord
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from judge.launches import BASELINE, GOOD_FACTS, VARIANT, a_case, a_launch, with_facts

DEPENDENCE = GOOD_FACTS["dependence"]
DOTS = {"dot": 4}


def without_operations(variant: str = VARIANT, **facts: Any) -> LaunchRecord:
    """A launch of a workload that declares none."""
    return with_facts(a_launch(variant, facts=facts), operations=None)


def counted(run: float | None, written: float | None = None, **more: Any) -> dict[str, Any]:
    return {"run": run, "written": written or run, "source": "the optimised HLO", **more}


def found(name: str, *launches: LaunchRecord, variant: str = VARIANT) -> tuple[str, str]:
    certificate = certify(Evidence(case=a_case(), launches=launches))
    (check,) = (each for each in certificate.checks if each.name == name and each.variant in {variant, None})
    return check.outcome, check.reading


@pytest.mark.parametrize(
    ("dependence", "outcome", "says"),
    [
        ({}, "passed", "4 operations in a call, and as many when it is repeated"),
        ({"seen": {}}, "failed", "a repeated call runs 0 of 4 dot"),
        ({"seen": None}, "passed", "4 operations"),
        ({"again": [{}, DOTS, {"dot": 8}, {"dot": 12}]}, "failed", "a repeated call runs 0 of 4 dot"),
        ({"again": [DOTS, DOTS, {"dot": 8}, {"dot": 12}]}, "failed", "4 operations in a call, 0, 4, 4 in those after"),
        ({"again": [DOTS, {"dot": 8}, {"dot": 12}, {"dot": 40}]}, "passed", "4 operations"),
        (
            {
                "dispatched": {"mm": 1, "add": 1},
                "seen": {"mm": 1, "add": 1},
                "again": [{"mm": 1, "add": 1}, {"mm": 1, "add": 2}, {"mm": 1, "add": 3}],
            },
            "failed",
            "a later call runs 0 of 1 mm",
        ),
        ({"exported": [{"mm": 1}, {"mm": 1}]}, "untested", "export, which is not timed, runs mm"),
        ({"dispatched": {}}, "failed", "0 operations in a call, 4, 4, 4 in those after it"),
        ({"dispatched": {}, "again": [{}, {}]}, "untested", "runs no operation of its framework"),
        ({"many": {"dot": 160}, "many_calls": 40}, "passed", "4 operations"),
        ({"many": {"dot": 20}, "many_calls": 40}, "failed", "20 operations in 40 calls, at 4 in a call"),
        ({"exported": [{"add": 1}, {"add": 1}]}, "passed", "4 operations"),
        (
            {"exported": [{"add": 1}, {"add": 4}]},
            "failed",
            "export, which is not timed, runs 1 operations after one call and 4 later",
        ),
        ({"replay": {"calls": 9, "timed": 0.0, "untimed": 0.0}}, "passed", "4 operations"),
        ({"replay": {"calls": 9, "timed": 0.5, "untimed": 0.4}}, "passed", "4 operations"),
        ({"replay": {"calls": 9, "timed": 0.5, "untimed": 0.0}}, "failed", "9 timed calls give other results"),
        ({"replay": {"calls": 9, "timed": 0.5, "untimed": 0.0}, "unable": "why"}, "failed", "9 timed calls give other"),
        ({"unable": "why"}, "untested", "why"),
    ],
)
def test_what_is_skipped_is_said_with_its_counts(dependence: dict[str, Any], outcome: str, says: str) -> None:
    launch = a_launch(facts={"dependence": {**DEPENDENCE, **dependence}})
    assert found("work-skipped", launch)[0] == outcome
    assert says in found("work-skipped", launch)[1]


@pytest.mark.parametrize(
    ("run", "units", "outcome", "says"),
    [
        (1e6, 1, "passed", "1e+06 floating-point operations in a call"),
        (3e5, 1, "passed", "3e+05"),
        (1e5, 1, "untested", "10 % of what cost() says: a better algorithm, or work left out"),
        (1e6, 10, "untested", "10 % of what cost() says"),
        (None, 1, "untested", "cannot be counted"),
    ],
)
def test_work_is_held_against_cost_by_the_unit(run: float | None, units: int, outcome: str, says: str) -> None:
    launch = without_operations(arithmetic=counted(run), unitsPerCall=units)
    assert found("work-present", launch)[0] == outcome
    assert says in found("work-present", launch)[1]


def test_work_is_held_against_the_other_variants_by_the_unit() -> None:
    one, ten = counted(1e6), counted(1e7)
    alike = (
        without_operations(BASELINE, arithmetic=ten, unitsPerCall=10),
        without_operations(arithmetic=one, unitsPerCall=1),
    )
    assert found("work-present", *alike)[0] == "passed"
    thrice = alike[0], without_operations(arithmetic=counted(3e6), unitsPerCall=1)
    outcome, reading = found("work-present", *thrice)
    assert outcome == "untested"
    assert reading.endswith("3 times pytorch/eager's: a worse algorithm, or unnecessary work")
    assert found("work-present", *thrice, variant=BASELINE)[0] == "passed"


@pytest.mark.parametrize(
    ("units", "counts_units", "operations", "outcome"),
    [
        (2, False, False, "untested"),
        (2, False, True, "passed"),
        (2, True, False, "passed"),
        (1, False, False, "passed"),
    ],
)
def test_a_step_that_claims_several_units_has_to_show_them(
    units: int, *, counts_units: bool, operations: bool, outcome: str
) -> None:
    facts = {"unitsPerStep": units, "unitsPerCall": 1, "arithmetic": counted(1e6)}
    launch = a_launch(facts=facts) if operations else without_operations(**facts)
    assert launch.parity
    launch = launch.model_copy(update={"parity": launch.parity.model_copy(update={"counts_units": counts_units})})
    found_outcome, reading = found("work-present", launch)
    assert found_outcome == outcome
    assert ("a step claims to do 2 units, and half as many give the same outputs" in reading) == (outcome == "untested")


@pytest.mark.parametrize(("busy", "outcome"), [(1.9, "passed"), (0.6, "passed"), (0.4, "untested")])
def test_whoever_computes_for_less_than_half_of_the_time_is_idle(busy: float, outcome: str) -> None:
    reading = found("work-present", a_launch(facts={"idle": {"seconds": 1.0, "busy_seconds": busy}}))
    assert reading[0] == outcome
    assert ("idle for 60 % of the time" in reading[1]) == (outcome == "untested")


def test_a_doubt_is_shown_even_if_no_operations_were_counted() -> None:
    launch = without_operations(idle={"seconds": 1.0, "busy_seconds": 0.4}, arithmetic=None)
    outcome, reading = found("work-present", launch)
    assert (outcome, "idle for 60 % of the time" in reading) == ("untested", True), reading


@pytest.mark.parametrize(
    ("name", "facts", "outcome", "says"),
    [
        ("precision", {"arithmetic": counted(1.0, types=["float32"])}, "passed", ""),
        ("precision", {"arithmetic": counted(1.0, types=["bfloat16", "float32"])}, "failed", "computes in bfloat16"),
        ("precision", {"arithmetic": counted(1.0, types=["float64"])}, "failed", "computes in float64, float32 was"),
        ("precision", {"meddling": {"flags": ["XLA_FLAGS"]}}, "untested", "the program sets XLA_FLAGS"),
        ("gradients", {"arithmetic": counted(1.0, recorded=True)}, "failed", "recorded inside the step"),
        (
            "gradients",
            {"arithmetic": counted(1.0, recorded=True), "gradients": {"wanted": True, "found": "on"}},
            "passed",
            "",
        ),
        (
            "clock",
            {"meddling": {"functions": ["blocks.time_calls"]}},
            "failed",
            "blocks.time_calls",
        ),
    ],
)
def test_what_a_step_does_by_itself_is_found_out(name: str, facts: dict[str, Any], outcome: str, says: str) -> None:
    reading = found(name, a_launch(facts=facts))
    assert reading[0] == outcome
    assert says in reading[1]

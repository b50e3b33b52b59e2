"""Counted operations show work that is missing or superfluous, or leave it undecided."""

from typing import Any

import pytest

from accelbench.launch.record import LaunchRecord
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from judge.launches import BASELINE, GOOD_FACTS, VARIANT, a_case, a_launch, with_facts

DEPENDENCE = GOOD_FACTS["dependence"]
DOTS = {"dot": 4}


def without_operations(variant: str = VARIANT, **facts: Any) -> LaunchRecord:
    """Return a launch of a workload that declares none."""
    return with_facts(a_launch(variant, facts=facts), operations=None)


def counted(run: float | None, written: float | None = None, **more: Any) -> dict[str, Any]:
    return {"run": run, "written": written or run, "source": "the optimised HLO", **more}


def recorded(operations: int, differentiated: int) -> dict[str, Any]:
    """Return the facts of a step whose operations autograd recorded."""
    counts = {"operationsRecorded": operations, "operationsDifferentiated": differentiated}
    return {"arithmetic": counted(1.0, **counts)}


AUTOGRAD_OFF = {"gradients": {"wanted": False, "found": "off"}}
AUTOGRAD_NEEDED = {"gradients": {"wanted": False, "found": "on", "needed": True}}


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
        ({"again": [DOTS, {"dot": 8}]}, "passed", "4 operations"),
        ({"again": [DOTS, DOTS]}, "failed", "4 operations in a call, 0 in those after"),
        ({"again": [DOTS, {}]}, "failed", "4 operations in a call, 0 in those after"),
        ({"again": [DOTS]}, "untested", "no run of two calls"),
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
def test_skipped_work_is_reported_with_its_counts(dependence: dict[str, Any], outcome: str, says: str) -> None:
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
def test_work_is_compared_with_the_declared_cost_per_unit(
    run: float | None, units: int, outcome: str, says: str
) -> None:
    launch = without_operations(arithmetic=counted(run), unitsPerCall=units)
    assert found("work-present", launch)[0] == outcome
    assert says in found("work-present", launch)[1]


def test_work_is_compared_with_the_other_variants_per_unit() -> None:
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


NEEDED = 1e7
"""Operations that a program writes, without those of functions that are only differentiated."""


def counting(variant: str = VARIANT, **counts: float | None) -> LaunchRecord:
    """Return a launch with nothing but the counts of operations."""
    arithmetic = {**counted(NEEDED), **counts}
    return without_operations(variant, arithmetic=arithmetic, unitsPerCall=1, flopsPerUnit=None)


def eager(operations: float) -> LaunchRecord:
    return counting(BASELINE, written=operations, run=operations)


@pytest.mark.parametrize(
    ("counts", "other", "outcome", "says"),
    [
        ({"run": 4e6}, 1e7, "passed", "4e+06 floating-point operations in a call, in the optimised HLO"),
        # A gradient: the value of the function is computed and not used.
        ({"run": 1e7, "written": 4e7, "unneeded": 3e7}, 4e7, "passed", "1e+07"),
        ({"run": 0.0, "written": 4e7, "unneeded": 4e7}, 4e7, "passed", "0 floating-point operations"),
        # A product that is written ten times and computed once.
        ({"run": 1e6, "repeated": 9e6}, 1e7, "failed", "of 1e+07 written: the rest repeats earlier work"),
        ({"run": 1e6, "dropped": 9e6}, 1e7, "failed", "no output depends on the rest, and the compiler dropped it"),
        ({"run": 1e6, "constant": 9e6}, 1e7, "failed", "the rest depends on no input"),
        ({"run": 1e6, "repeated": 4e6, "dropped": 5e6}, 1e7, "failed", "no output depends on the rest"),
        # Eager PyTorch does as little: nobody measured more work than it does.
        ({"run": 1e6, "repeated": 9e6}, 1e6, "untested", "; pytorch/eager runs as much uncompiled"),
        # The compiler folded nothing that is repeated: nothing is missing.
        ({"run": 9e6, "repeated": 9e6}, 1e7, "passed", "9e+06"),
        # Half of it is repeated, which does not explain that a tenth is left.
        ({"run": 1e6, "repeated": 5e6}, 1e7, "untested", "the compiler simplified the rest, or left work out"),
        # Algebra.
        ({"run": 2e6}, 1e7, "passed", "2e+06 floating-point operations in a call, in the optimised HLO, of 1e+07"),
        ({"run": 2e6}, 1e8, "untested", "the compiler simplified the rest, or left work out"),
        ({"run": 2e6}, None, "untested", "the compiler simplified the rest, or left work out"),
        # A few numbers decide nothing.
        ({"run": 0.0, "written": 99.0, "repeated": 99.0}, 1e7, "untested", "of pytorch/eager's"),
        ({"run": 0.0, "written": 99.0, "repeated": 99.0}, 99.0, "passed", "0 floating-point operations"),
        ({"run": 0.0, "written": 0.0}, 99.0, "passed", "0 floating-point operations"),
    ],
)
def test_unnecessary_work_may_be_absent(counts: dict[str, float], other: float | None, outcome: str, says: str) -> None:
    launches = [counting(**counts), *([eager(other)] if other else [])]
    assert found("work-present", *launches)[0] == outcome
    assert says in found("work-present", *launches)[1]


def test_simplified_work_is_questioned_unless_outputs_for_unseen_inputs_are_right() -> None:
    launch = with_facts(counting(run=2e6), dependence={**DEPENDENCE, "unable": "it was given none"})
    assert found("work-present", eager(NEEDED), launch)[0] == "untested"


def test_variants_are_compared_by_the_operations_that_their_authors_wrote() -> None:
    """Eager PyTorch computes the value of a function as well, of which JAX only takes the gradient."""
    launches = eager(4e7), counting(run=1e6, written=4e7, unneeded=3.9e7)
    assert found("work-present", *launches)[0] == "passed"
    assert found("work-present", *launches, variant=BASELINE)[0] == "passed"


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
def test_a_variant_that_computes_less_than_half_of_the_time_is_idle(busy: float, outcome: str) -> None:
    reading = found("work-present", a_launch(facts={"idle": {"seconds": 1.0, "busy_seconds": busy}}))
    assert reading[0] == outcome
    assert ("idle for 60 % of the time" in reading[1]) == (outcome == "untested")


def test_a_warning_is_shown_even_if_no_operations_were_counted() -> None:
    launch = without_operations(idle={"seconds": 1.0, "busy_seconds": 0.4}, arithmetic=None)
    outcome, reading = found("work-present", launch)
    assert (outcome, "idle for 60 % of the time" in reading) == ("untested", True), reading


@pytest.mark.parametrize(
    ("name", "facts", "outcome", "says"),
    [
        ("precision", {"arithmetic": counted(1.0, types={"float32": 1.0})}, "passed", ""),
        (
            "precision",
            {"arithmetic": counted(1.0, types={"bfloat16": 0.5, "float32": 0.5})},
            "failed",
            "computes in bfloat16",
        ),
        (
            "precision",
            {"arithmetic": counted(1.0, types={"float64": 1.0})},
            "failed",
            "computes in float64, float32 was",
        ),
        ("precision", {"arithmetic": counted(1.0, types={"float64": 0.05, "float32": 0.95})}, "passed", ""),
        ("precision", {"arithmetic": counted(1.0, types={"bfloat16": 0.01, "float32": 0.99})}, "failed", "in bfloat16"),
        ("precision", {"meddling": {"flags": ["XLA_FLAGS"]}}, "untested", "the program sets XLA_FLAGS"),
        ("gradients", AUTOGRAD_OFF | recorded(0, 0), "passed", "autograd off"),
        ("gradients", AUTOGRAD_OFF | recorded(40, 0), "failed", "recorded 40 operations, and backward passes diff"),
        ("gradients", AUTOGRAD_OFF | recorded(40, 2), "failed", "differentiated 2"),
        ("gradients", AUTOGRAD_OFF | recorded(40, 12), "passed", "computes gradients"),
        ("gradients", AUTOGRAD_NEEDED | recorded(40, 55), "passed", "computes gradients"),
        ("gradients", AUTOGRAD_NEEDED | recorded(40, 2), "failed", "differentiated 2"),
        ("gradients", AUTOGRAD_NEEDED, "passed", "autograd on"),
        ("gradients", {"gradients": {"wanted": False, "found": "on"}}, "failed", "the step changed it"),
        ("gradients", {"gradients": {"wanted": True, "found": "on"}} | recorded(40, 0), "passed", "autograd on"),
        (
            "clock",
            {"meddling": {"functions": ["blocks.time_calls"]}},
            "failed",
            "blocks.time_calls",
        ),
    ],
)
def test_the_effect_of_a_step_alone_is_determined(name: str, facts: dict[str, Any], outcome: str, says: str) -> None:
    reading = found(name, a_launch(facts=facts))
    assert reading[0] == outcome
    assert says in reading[1]

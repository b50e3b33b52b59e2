"""The check `formula`: a program in float64 against the float64 reference, and what parity makes of it."""

from typing import Any

import pytest

from accelbench.api.case import Case, Precision
from accelbench.api.result import CheckOutcome
from accelbench.launch.record import MISMATCH, LaunchRecord, ParityReading
from accelbench.validity import formula, parity
from accelbench.validity.evidence import Evidence
from judge.launches import GOOD_PARITY, a_case, a_launch


def in_float64(ratio: float, **fields: Any) -> ParityReading:
    return ParityReading(units=2, finite=True, worst_ratio=ratio, worst_array="x", detail="x[0] differs", **fields)


EXACT = {"accuracyLimit": ""}
"""Facts of a program that computes with float64 numbers alone, and always runs the same operations."""


def in_precision(precision: Precision) -> Case:
    case = a_case()
    return case.model_copy(update={"measurement": case.measurement.model_copy(update={"precision": precision})})


def outcome(launch: LaunchRecord, precision: Precision = "float32") -> tuple[CheckOutcome, str]:
    [check] = formula.CHECK.outcomes(Evidence(case=in_precision(precision), launches=(launch,)))
    return check.outcome, check.reading


@pytest.mark.parametrize(
    ("reading", "run", "expected", "words"),
    [
        (in_float64(0.5), {}, "passed", "agrees"),
        (in_float64(60), {}, "passed", "agrees"),
        (in_float64(1e6), {}, "untested", "whether it stops at a tolerance is unknown"),
        (in_float64(1e6), EXACT, "untested", "whether the reference stops at a tolerance is unknown"),
        (in_float64(1e6, reference_limit="it stops"), EXACT, "untested", "and it stops; x[0] differs"),
        (in_float64(1e6, reference_limit=""), {"accuracyLimit": "it stops"}, "untested", "and it stops; x[0] differs"),
        (in_float64(1e6, relative_error=0.08), {}, "failed", "something else than the reference: x[0] differs"),
        (in_float64(1e6, reference_limit=""), EXACT, "failed", "let the reference take the same steps"),
        (in_float64(1e9), {}, "failed", "something else than the reference: x[0] differs, 1,000,000,000 times"),
        (in_float64(MISMATCH), {}, "failed", "something else than the reference: x[0] differs"),
        (in_float64(1e9), {"types": ["float32", "float64"]}, "untested", "computes in float32 although"),
        (in_float64(0.5), {"types": ["float32", "float64"]}, "passed", "agrees"),
        (in_float64(0.0, compared=False), {}, "untested", "in float64: x[0] differs"),
        (None, {"unable": "TypeError: no float64"}, "untested", "does not run in float64: TypeError: no float64"),
        (None, {}, "untested", "were not compared"),
    ],
)
def test_a_program_in_float64_is_judged(
    reading: ParityReading | None, run: dict[str, Any], expected: str, words: str
) -> None:
    launch = a_launch(
        facts={"formula": {"units": 2, "types": ["float64"], **run}},
        parity=GOOD_PARITY.model_copy(update={"formula": reading}),
    )
    found, text = outcome(launch)
    assert (found, words in text) == (expected, True), text


def test_rounded_arrays_other_than_inputs_excuse_a_small_error() -> None:
    launch = a_launch(
        facts={"formula": {"units": 2, "types": ["float64"], **EXACT}, "dependence": {"captured": ["w (8,) float32"]}},
        parity=GOOD_PARITY.model_copy(update={"formula": in_float64(1e6, reference_limit="")}),
    )
    found, text = outcome(launch)
    assert found == "untested"
    assert text.endswith("that are not its inputs, rounded to the requested precision: w (8,) float32; x[0] differs")


def test_a_launch_that_did_not_run_in_float64_leaves_the_formula_untested() -> None:
    assert outcome(a_launch(facts={"formula": None}))[0] == "untested"


def test_in_float64_parity_compares_the_formula() -> None:
    assert outcome(a_launch(facts={"formula": None}), "float64")[0] == "passed"


FEW = {"off": 3, "elements": 1000, "less_exact": True}


@pytest.mark.parametrize(
    ("fields", "formula_ratio", "expected"),
    [
        (FEW, 0.5, "passed"),
        (FEW, 1e9, "failed"),
        (FEW, None, "failed"),
        ({**FEW, "off_or_in_class": 101}, 0.5, "failed"),
        ({**FEW, "less_exact": False}, 0.5, "failed"),
    ],
)
def test_a_right_formula_may_be_less_exact_in_few_outputs(
    fields: dict[str, Any], formula_ratio: float | None, expected: str
) -> None:
    reading = in_float64(9.0, **fields, formula=None if formula_ratio is None else in_float64(formula_ratio))
    assert parity.CHECK.evaluate(a_case(), a_launch(parity=reading)).outcome == expected


@pytest.mark.parametrize(
    ("ratio", "rounds_more", "formula_ratio", "precision", "expected"),
    [
        (7.0, True, 7.0, "float32", "passed"),
        (7.0, False, 7.0, "float32", "failed"),
        (9.0, True, 0.5, "float32", "failed"),
        (1.1, True, 9.0, "float32", "failed"),
        (1.1, True, None, "float32", "failed"),
        (1.1, True, 0.5, "bfloat16", "failed"),
    ],
)
def test_a_right_formula_may_round_a_few_times_as_much_as_the_reference_in_float32(
    ratio: float, rounds_more: bool, formula_ratio: float | None, precision: Precision, expected: str
) -> None:
    formula_reading = None if formula_ratio is None else in_float64(formula_ratio)
    reading = in_float64(ratio, rounds_more=rounds_more, formula=formula_reading)
    assert parity.CHECK.evaluate(in_precision(precision), a_launch(parity=reading)).outcome == expected


def test_outputs_that_are_too_sensitive_are_not_compared() -> None:
    reading = in_float64(0.1, compared=False, formula=in_float64(0.5))
    assert parity.CHECK.evaluate(a_case(), a_launch(parity=reading)).outcome == "untested"

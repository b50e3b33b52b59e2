"""Check that every variant's formula is right: in float64, its program agrees with the reference.

`parity` asks how exactly the timed outputs were computed, in the requested precision. There, rounding hides small
mistakes: a variance with the wrong divisor, a missing term, an approximation. In float64 it hides none of them. Faults
of a kernel that exists only in low precision are `parity`'s to find.
"""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable, value_or_none
from accelbench.launch.facts import FormulaRun
from accelbench.launch.record import LaunchRecord, ParityReading
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, passed, untested
from accelbench.validity.evidence import Evidence

MAXIMUM_RATIO = 64.0
"""Maximum error in float64, as a multiple of parity's tolerance there: 4096 scales. A scale is the error that rounding
makes. Correct programs were off by up to 150 scales, and the smallest mistake, one term of 262,144, by 9.5 million."""
UNCLEAR_RATIO = 2.0**26
"""Multiple up to which an error is no larger than 8 roundings of float32. A right program can be off by so much if it
stops at a tolerance, or computes with numbers that were rounded to float32; a wrong one if it leaves out one term of
262,144. So a program with such an error fails, unless there is evidence that a harmless reason may apply."""
UNCLEAR_RELATIVE_ERROR = 8 * 2.0**-23
"""The same limit as a share of the output's largest number. Where a choice of the reference widens a tolerance, a
multiple of the tolerance may be far more than roundings of float32."""
SAME_STEPS = (
    "if it approximates, in a fixed number of steps, what the reference computes exactly, let the reference take the "
    "same steps"
)


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Judge each variant's formula by the outputs of its program in float64, from the first launch that tried it."""
    for variant in evidence.variants:
        if evidence.case.measurement.precision == "float64":
            yield variant, passed("float64 is the requested precision: parity compares it")
            continue
        launches = [*evidence.launches_of(variant), *evidence.quarantined_of(variant)]
        launch_in_float64 = next((launch for launch in launches if _was_tried(launch)), None)
        if launch_in_float64 is None:
            yield variant, untested("no launch ran in float64")
        else:
            yield variant, judge(launch_in_float64)


def _was_tried(launch: LaunchRecord) -> bool:
    """Return True if the launch reported how its program ran in float64, or why it could not."""
    return not isinstance(launch.facts.formula, Unreadable) or launch.facts.formula.reported


def judge(launch: LaunchRecord) -> Finding:
    """Pass if the outputs of a launch's program in float64 agree with the reference; fail if its formula is wrong.

    Untested if the program did not run in float64, or if its outputs were not compared.
    """
    formula_run = launch.facts.formula
    if isinstance(formula_run, Unreadable):
        return untested(formula_run)
    if formula_run.unable is not None:
        return untested(f"it does not run in float64: {formula_run.unable}")
    reading = launch.parity.formula if launch.parity else None
    if reading is None:
        return untested("its outputs in float64 were not compared")
    is_in_parity_reading = launch.parity is not None and launch.parity.diagnosis == reading.diagnosis
    diagnosis = "" if is_in_parity_reading else reading.diagnosis  # the report shows parity's reading too
    return _judge_reading(launch, formula_run, reading, diagnosis)


def _judge_reading(launch: LaunchRecord, formula_run: FormulaRun, reading: ParityReading, diagnosis: str) -> Finding:
    """Judge a comparison of outputs in float64 with the reference; `diagnosis` explains a mistake, or is empty."""
    if reading.failed_reference:
        return untested("there is no reference to compare with (parity)")
    if not (reading.finite and reading.compared):
        return untested(f"in float64: {reading.detail}")
    if agrees(reading):
        return passed(f"in float64 it agrees with the reference: {reading.detail}")
    narrow_types = sorted(set(formula_run.types) - {"float64"})
    if narrow_types:
        return untested(f"it computes in {', '.join(narrow_types)} although its inputs are float64; {reading.detail}")
    is_small = reading.worst_ratio <= UNCLEAR_RATIO and reading.relative_error <= UNCLEAR_RELATIVE_ERROR
    if is_small and (excuse := _excuse_of_small_error(launch, formula_run, reading)):
        return untested(f"in float64 it is off by no more than roundings of float32, and {excuse}; {reading.detail}")
    error = f"in float64 it computes something else than the reference: {reading.describe_error()}"
    return failed("; ".join(filter(None, (error, diagnosis, SAME_STEPS if is_small else ""))))


def _excuse_of_small_error(launch: LaunchRecord, formula_run: FormulaRun, reading: ParityReading) -> str:
    """Return what may explain that a run in float64 has the error of a few roundings in float32; empty if nothing does.

    It may be explained if numbers were rounded before the run, or if the program or the reference stops at a tolerance.
    """
    dependence = value_or_none(launch.facts.dependence)
    if dependence is not None and dependence.captured:
        return f"it uses arrays that are not its inputs, rounded to the requested precision: {dependence.captured[0]}"
    for limit, subject in ((formula_run.accuracy_limit, "it"), (reading.reference_limit, "the reference")):
        # None: it is unknown why the program may be less exact. An empty text: there is no such reason.
        if limit is None:
            return f"whether {subject} stops at a tolerance is unknown"
        if limit:
            return limit
    return ""


def agrees(reading: ParityReading | None, maximum_ratio: float = MAXIMUM_RATIO) -> bool:
    """Return True if a program's outputs in float64 were compared, and agree with the reference.

    Outputs of a less exact algorithm agree too: none errs by more than a rounding of the largest output. For all other
    outputs `maximum_ratio` is the largest error with which they agree, as a multiple of the tolerance.
    """
    if reading is None or not (reading.finite and reading.compared):
        return False
    return reading.worst_ratio <= maximum_ratio or reading.less_exact


CHECK = CaseCheck(
    name="formula",
    threshold=f"in float64, error at most {MAXIMUM_RATIO:g} tolerances of parity",
    reason="rounding hides small mistakes: in bfloat16 a biased variance passes, in float64 it does not",
    evaluate=_evaluate,
    remedy="compare the variant's formula with the reference's, term by term: constants, axes, divisors, steps",
)

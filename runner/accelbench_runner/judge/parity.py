"""Check parity: compare the outputs of launches with the float64 reference, element by element.

A launch writes up to three sets of outputs: those of the program as it was timed; those of the program in float64,
which show whether its formula is right (`formula` in facts and readings); and those for unseen inputs, which the launch
got after it was timed.
"""

import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from accelbench import catalogue, figures
from accelbench.api.case import Case
from accelbench.catalogue import script
from accelbench.catalogue.workload_checks import call_reference
from accelbench.launch.fact import Unreadable, value_or_none
from accelbench.launch.record import CANONICAL, MISMATCH, LaunchRecord, ParityReading, UnseenReading
from accelbench.validity import formula
from accelbench.workload import NamedArrays
from accelbench_runner.judge.arithmetic import EPSILON, root_mean_square
from accelbench_runner.judge.comparison import compare_array
from accelbench_runner.judge.decisions import reference_limit
from accelbench_runner.judge.expected import Expected
from accelbench_runner.judge.explanation import explain
from accelbench_runner.judge.layout import describe_layout, mismatch, read_outputs
from accelbench_runner.judge.no_reference import narrow_reference, without_reference
from accelbench_runner.judge.random_outputs import declared_random_comparison, read_random
from accelbench_runner.judge.reference import (
    FORMULA_RUNS,
    IncomparableOutputsError,
    Reference,
    reference_for,
)
from accelbench_runner.judge.reference_program import start_arrays
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import FORMULA, UNSEEN

MOST_SHARE = 0.9
"""A certificate states the relative error that parity detects in half of the floats, and in this share of them."""


def read_parity(request: JudgeRequest) -> dict[str, ParityReading]:
    """Compare the outputs of each launch with the reference, by `ROUND/VARIANT`.

    A launch that only observes has no outputs to compare, and is left out.
    """
    launches = {f"{launch.round}/{launch.variant}": launch for launch in request.launches}
    readings: dict[str, ParityReading] = {}
    for key, directory in request.outputs.items():
        launch = launches.get(key)
        if launch is None:
            readings[key] = mismatch(0, f"there is no launch {key}")
        elif not launch.observes:
            readings[key] = _read_launch(request, launch, Path(directory))
    return _add_agreement_hint(request, readings)


def _read_launch(request: JudgeRequest, launch: LaunchRecord, directory: Path) -> ParityReading:
    """Compare the outputs that a launch wrote to `directory`: as timed, in float64 and on unseen inputs."""
    units = launch.facts.parity_units
    if isinstance(units, Unreadable):
        return mismatch(0, units.why)
    try:
        outputs = read_outputs(directory)
    except Exception as error:  # noqa: BLE001 - a launch may write any file, or none
        return mismatch(units, f"its outputs cannot be read: {error!r}")
    if declared_random_comparison(request.case):
        return read_random(request, launch, outputs, units)
    reading = _compare_with_reference(request, outputs, units)
    if reading.failed_reference:  # then other runs of the reference show nothing either
        unseen = UnseenReading(reading=reading, changes=True)
        return reading.model_copy(update={"formula": reading, "unseen": unseen})
    in_float64 = _read_formula(request, launch, directory)
    return reading.model_copy(update={"formula": in_float64, "unseen": compare_unseen(request, launch, directory)})


def _compare_with_reference(request: JudgeRequest, outputs: NamedArrays, units: int) -> ParityReading:
    """Compare the outputs after `units` units of work with the reference.

    If the reference cannot be computed or used, the reading says why.
    """
    try:
        if failed_reading := narrow_reference(request.case, request.launches, units):
            return failed_reading
        reference = reference_for(request.case, units, Path(request.directory))
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code
        return without_reference(request.case, request.launches, units, error)
    return _compare_and_explain(request, outputs, reference, units)


def _compare_and_explain(
    request: JudgeRequest, outputs: NamedArrays, reference: Reference, units: int
) -> ParityReading:
    """Bring outputs into the form in which they are compared, compare them, and explain what is wrong.

    Outputs that have no such form are a mismatch.
    """
    try:
        compared = reference.to_compared_form(outputs)
    except IncomparableOutputsError as error:
        return mismatch(units, str(error)).model_copy(update={"finite": error.finite})
    return _add_diagnosis(compare(compared, reference, units), request, compared, reference)


def _add_diagnosis(
    reading: ParityReading, request: JudgeRequest, outputs: NamedArrays, reference: Reference
) -> ParityReading:
    """Return the reading with an explanation of what is wrong or cannot be compared; unchanged if all is right."""
    is_right = reading.finite and reading.worst_ratio <= 1 and reading.compared
    if is_right:
        return reading
    try:
        diagnosis = explain(request, outputs, reference, reading.worst_array)
    except Exception:  # noqa: BLE001 - an explanation must not change an outcome
        traceback.print_exc()
        return reading
    return reading.model_copy(update={"diagnosis": diagnosis})


def _add_agreement_hint(request: JudgeRequest, readings: dict[str, ParityReading]) -> dict[str, ParityReading]:
    """Add a hint to all readings if the outputs agree with each other and all differ from the reference.

    Then the mistake may be in the reference.
    """
    unit_counts = {reading.units for reading in readings.values()}
    # Outputs that are not finite say nothing about the reference: all variants may overflow in the same way.
    all_differ = all(
        reading.finite and reading.worst_ratio > 1 and not reading.failed_reference for reading in readings.values()
    )
    # Outputs of different numbers of units cannot be compared.
    if len(readings) < 2 or len(unit_counts) > 1 or not all_differ:  # noqa: PLR2004 - one output cannot agree
        return readings
    [units] = unit_counts
    try:
        reference = reference_for(request.case, units, Path(request.directory))
        outputs = [reference.to_compared_form(read_outputs(Path(request.outputs[key]))) for key in readings]
        if not agree(outputs, reference):
            return readings
    except Exception:  # noqa: BLE001 - the readings already describe the error
        return readings
    agreement = "both variants agree" if len(readings) == 2 else "all variants agree"  # noqa: PLR2004
    hint = f"{agreement} with each other and differ from the reference"
    return {
        key: reading.model_copy(update={"detail": f"{reading.detail}; {hint}"}) for key, reading in readings.items()
    }


def compare_unseen(request: JudgeRequest, launch: LaunchRecord, directory: Path) -> UnseenReading | None:
    """Compare a launch's outputs for unseen inputs with the reference for these inputs; None without such outputs.

    `directory` is where the launch wrote its outputs. `changes` of the result is True if the right outputs for unseen
    inputs differ from those for the original ones. After an error it is True too, but nothing reads it then.
    """
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable) or dependence.units is None:
        return None
    units, reference_directory = dependence.units, Path(request.directory)
    try:
        unseen_reference = reference_for(request.case, units, reference_directory, unseen_seed=request.unseen_seed)
        original_reference = reference_for(request.case, units, reference_directory)
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code
        return UnseenReading(reading=without_reference(request.case, request.launches, units, error), changes=True)
    try:
        compared = unseen_reference.to_compared_form(read_outputs(directory, UNSEEN))
        reading = compare(compared, unseen_reference, units)
        changes = not is_within_tolerance(original_reference.values, unseen_reference)
        return UnseenReading(reading=reading, changes=changes)
    except IncomparableOutputsError as error:
        reading = mismatch(units, str(error)).model_copy(update={"finite": error.finite})
        return UnseenReading(reading=reading, changes=True)
    except Exception as error:  # noqa: BLE001 - a launch may write any file, or none
        return UnseenReading(reading=mismatch(units, f"cannot be compared: {script.format_error(error)}"), changes=True)


def _read_formula(request: JudgeRequest, launch: LaunchRecord, directory: Path) -> ParityReading | None:
    """Return how the outputs of the variant's program in float64 compare with the reference; None if it never ran so.

    The program runs in float64 in the first rounds only. For a later launch, return the comparison of an earlier one.
    """
    reading = compare_in_float64(request, launch, directory)
    if reading is not None:
        return reading
    parities = [other.parity for other in request.launches if other.variant == launch.variant]
    return next((parity.formula for parity in parities if parity and parity.formula), None)


def compare_in_float64(request: JudgeRequest, launch: LaunchRecord, directory: Path) -> ParityReading | None:
    """Compare the outputs of a launch's program in float64 with the reference; None if it did not run in float64.

    `directory` is where the launch wrote its outputs. If the reference or the outputs cannot be used, return a reading
    that states why.
    """
    run = launch.facts.formula
    if isinstance(run, Unreadable) or run.units is None:
        return None
    measurement = request.case.measurement.model_copy(update={"precision": "float64"})
    case = request.case.model_copy(update={"measurement": measurement})
    try:
        if failed_reading := narrow_reference(request.case, request.launches, run.units):
            return failed_reading
        reference = reference_for(case, run.units, Path(request.directory), runs=FORMULA_RUNS)
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code
        return without_reference(case, request.launches, run.units, error)
    try:
        reading = _compare_and_explain(request, read_outputs(directory, FORMULA), reference, run.units)
        is_unclear = formula.MAXIMUM_RATIO < reading.worst_ratio <= formula.UNCLEAR_RATIO
        # An inexact reference is a harmless reason for an unclear error, so find out whether it is inexact.
        limit = _limit_of_reference(case, request.launches, run.units) if is_unclear else None
        return reading.model_copy(update={"reference_limit": limit})
    except Exception as error:  # noqa: BLE001 - a launch may write any file, or none
        return mismatch(run.units, f"cannot be compared: {script.format_error(error)}")


def _limit_of_reference(case: Case, launches: Sequence[LaunchRecord], units: int) -> str | None:
    """Return why the reference may be less exact than float64; empty if there is no reason, None if unknown.

    If the reference is a baseline's own program, the baseline's launch has reported the reason.
    """
    workload = catalogue.find(case.workload)
    if workload.has_reference():
        parameters = catalogue.parse_parameters(workload, case.parameters)
        start = start_arrays(case, workload, parameters, unseen_seed=None)
        return reference_limit(lambda arrays: call_reference(workload, parameters, arrays, units), start)
    baseline_launches = [launch for launch in launches if launch.variant == case.baseline]
    float64_runs = (value_or_none(launch.facts.formula) for launch in baseline_launches)
    return next((run.accuracy_limit for run in float64_runs if run is not None and run.unable is None), None)


def compare(outputs: NamedArrays, reference: Reference, units: int) -> ParityReading:
    """Compare a launch's arrays after `units` units of work with the reference; describe the worst array.

    If they agree, but wrong outputs would agree too, `compared` of the result is False, and `detail` has the reason.
    `outputs` are in the form in which the reference is compared (`Reference.to_compared_form`).
    """
    problem = describe_layout(outputs, {name: value.shape for name, value in reference.values.items()})
    if problem:
        return mismatch(units, f"after {CANONICAL}: {problem}" if reference.form else problem)
    if not any(value.size for value in reference.values.values()):
        return mismatch(units, "nothing is exported: there is no number to compare")
    after = f" after {figures.count(units, reference.unit)}" if reference.unit else ""
    comparisons = {
        name: compare_array(name, np.asarray(outputs[name]), expected, after, non_finite=reference.non_finite)
        for name, expected in reference.expected.items()
    }
    worst_name, worst = max(comparisons.items(), key=lambda item: item[1].severity)
    beyond_tolerance = [comparison for comparison in comparisons.values() if comparison.ratio > 1]
    seen_in_half, seen_in_most = _resolution(reference)  # smallest errors detected in half and in most floats
    reading = ParityReading(
        units=units,
        finite=worst.finite,
        worst_ratio=worst.ratio,
        worst_array=worst_name,
        detail=worst.detail,
        compared=worst.compared,
        off=sum(comparison.off for comparison in comparisons.values()),
        off_or_in_class=sum(comparison.off_or_in_class for comparison in comparisons.values()),
        elements=sum(expected.value.size for expected in reference.expected.values()),
        relative_error=max(comparison.relative_error for comparison in comparisons.values()),
        worst_scales=max(comparison.scales for comparison in comparisons.values()),
        less_exact=worst.ratio > 1 and all(comparison.less_exact for comparison in beyond_tolerance),
        rounds_more=worst.ratio > 1 and all(comparison.rounds_more for comparison in beyond_tolerance),
        sees_in_half=seen_in_half,
        sees_in_most=seen_in_most,
        reference_frameworks=reference.frameworks,
        own_program=reference.own_program,
        counts_units=reference.counts_units,
        canonical=reference.form.function if reference.form else "",
        hidden_errors=reference.hidden_errors.single,
    )
    if worst.ratio > 1:  # the outputs are wrong, however little the comparison can detect
        return reading
    unclear = next((comparison.detail for comparison in comparisons.values() if comparison.unclear), "")
    doubt = unclear or _reason_to_doubt(reference, units, seen_in_half, after)
    return reading.model_copy(update={"compared": False, "detail": doubt}) if doubt else reading


def _reason_to_doubt(reference: Reference, units: int, seen_in_half: float | None, after: str) -> str:
    """Return why a comparison with the reference cannot tell wrong outputs from right ones; empty if it can.

    `seen_in_half` is the relative error that is detected in half of the floats, None without floats. `after` is a text
    such as ` after 3 steps`, for `units`.
    """
    if reference.form and reference.hidden_errors.outputs:
        names = figures.join_names(reference.hidden_errors.outputs)
        return (
            f"{reference.form.function} gives the same for other numbers in {names}, so an error there is not seen: "
            "let it return everything that right outputs share, or leave out of the outputs what is not compared"
        )
    if reference.leaves_state_unchanged:
        return f"after {units} units the right state is the initial one: a step that does nothing would pass"
    if seen_in_half is not None and seen_in_half >= 1:
        return (
            f"half of the outputs are too sensitive{after}: an error below {seen_in_half:.2g} of their size looks like "
            "rounding; a higher precision can be compared"
        )
    return ""


def _resolution(reference: Reference) -> tuple[float | None, float | None]:
    """Return the relative errors that are detected in half and in nine tenths of all floats; None without floats."""
    resolutions = np.concatenate([expected.resolution() for expected in reference.expected.values()])
    if not resolutions.size:
        return None, None
    # An error is detected if it exceeds both the tolerance and the errors that `canonical` hides.
    beyond_tolerance = np.quantile(resolutions, [0.5, MOST_SHARE])
    seen_in_half, seen_in_most = np.maximum(beyond_tolerance, reference.hidden_errors.smallest_noticed)
    return min(float(seen_in_half), MISMATCH), min(float(seen_in_most), MISMATCH)


def is_within_tolerance(outputs: NamedArrays, reference: Reference) -> bool:
    """Return True if outputs are within their tolerances, and have NaN and infinity where the reference has them."""
    units = 0  # needed only for texts of the reading, which are not used here
    return compare(outputs, replace(reference, non_finite=True), units).worst_ratio <= 1


def agree(outputs: Sequence[NamedArrays], reference: Reference) -> bool:
    """Return True if there are several outputs and all agree with the first, whether or not the reference is right."""
    first, *others = outputs
    # If the reference is wrong, its tolerances may be wrong too. So tolerances for errors of one ulp are tried as well.
    ulp = EPSILON[reference.precision]
    with_ulp = {
        name: Expected(value, np.full(value.shape, ulp * root_mean_square(value)), reference.precision)
        for name, value in first.items()
    }
    with_tolerances_of_reference = dict(with_ulp)  # the reference may lack some outputs
    for name, right in reference.expected.items():
        if name in first and right.value.shape == first[name].shape:
            with_tolerances_of_reference[name] = replace(right, value=first[name])

    def agree_within(expected: dict[str, Expected]) -> bool:
        """Return True if all other outputs are within the tolerances of `expected`, which has the first as values."""
        return all(is_within_tolerance(other, replace(reference, expected=expected)) for other in others)

    return bool(others) and (agree_within(with_ulp) or agree_within(with_tolerances_of_reference))

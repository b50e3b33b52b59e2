"""Check parity: compare the outputs of launches with the float64 reference, number by number."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.catalogue import script
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import MISMATCH, LaunchRecord, ParityReading, UnseenReading
from accelbench.workload import Array, NamedArrays
from accelbench_runner.judge.reference import EPSILON, REMEDY, Reference, reference_for, root_mean_square
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import UNSEEN, as_real

FLOAT16_HINT = "; float16 ends at 65,504: use bfloat16, or smaller numbers"


def read_parity(request: JudgeRequest) -> dict[str, ParityReading]:
    """Compare the outputs of each launch with the reference, by `ROUND/VARIANT`."""
    launches = {f"{launch.round}/{launch.variant}": launch for launch in request.launches}
    readings: dict[str, ParityReading] = {}
    for key, directory in request.outputs.items():
        launch = launches.get(key)
        if launch and launch.observes:
            continue
        units = launch.facts.parity_units if launch else Unreadable(why=f"there is no launch {key}")
        if isinstance(units, Unreadable):
            readings[key] = mismatch(0, units.why)
            continue
        try:
            outputs = read_outputs(Path(directory))
        except Exception as error:  # noqa: BLE001 - a launch may write any file, or none
            readings[key] = mismatch(units, f"its outputs cannot be read: {error!r}")
            continue
        try:
            reading = compare(outputs, reference_for(request.case, units, Path(request.directory)), units)
            readings[key] = _add_remedy(reading, launch)
        except Exception as error:  # noqa: BLE001 - the reference is a workload author's code
            readings[key] = mismatch(units, f"the reference cannot be computed: {script.format_error(error)}")
        unseen = compare_unseen(request, launch, Path(directory)) if launch else None
        if unseen is not None:
            readings[key] = readings[key].model_copy(update={"unseen": unseen})
    return _add_agreement_hint(request, readings)


def _add_remedy(reading: ParityReading, launch: LaunchRecord | None) -> ParityReading:
    """Add advice if a baseline differs from its own program in float64."""
    is_own_reference = launch is not None and reading.own_program == launch.variant
    if not is_own_reference or reading.worst_ratio <= 1:
        return reading
    return reading.model_copy(update={"detail": f"in float64 it computes something else: {REMEDY}; {reading.detail}"})


def _add_agreement_hint(request: JudgeRequest, readings: dict[str, ParityReading]) -> dict[str, ParityReading]:
    """Add a hint if all outputs agree with each other and differ from the reference."""
    unit_counts = {reading.units for reading in readings.values()}
    # If all variants overflow alike, that says nothing about the reference.
    all_differ = all(reading.finite and reading.worst_ratio > 1 for reading in readings.values())
    # Outputs of different numbers of units cannot be compared.
    if len(readings) < 2 or len(unit_counts) > 1 or not all_differ:  # noqa: PLR2004 - one output cannot agree
        return readings
    [units] = unit_counts
    try:
        reference = reference_for(request.case, units, Path(request.directory))
        if not agree([read_outputs(Path(request.outputs[key])) for key in readings], reference):
            return readings
    except Exception:  # noqa: BLE001 - the readings already describe the error
        return readings
    variants = "both variants agree" if len(readings) == 2 else "all variants agree"  # noqa: PLR2004
    hint = f"{variants} with each other and differ from the reference"
    return {
        key: reading.model_copy(update={"detail": f"{reading.detail}; {hint}"}) for key, reading in readings.items()
    }


def compare_unseen(request: JudgeRequest, launch: LaunchRecord, outputs: Path) -> UnseenReading | None:
    """Compare a launch's outputs for unseen inputs with their reference.

    `changes` is True if the unseen inputs change the right outputs.
    """
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable) or dependence.units is None:
        return None
    units, directory = dependence.units, Path(request.directory)
    try:
        unseen_reference = reference_for(request.case, units, directory, unseen_seed=request.unseen_seed)
        original_reference = reference_for(request.case, units, directory)
        reading = compare(read_outputs(outputs, UNSEEN), unseen_reference, units)
        changes = not is_within_tolerance(original_reference.values, unseen_reference)
        return UnseenReading(reading=reading, changes=changes)
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code, the outputs a launch's
        return UnseenReading(reading=mismatch(units, f"cannot be compared: {script.format_error(error)}"), changes=True)


def compare(outputs: NamedArrays, reference: Reference, units: int) -> ParityReading:
    """Compare a launch's arrays with the reference; return the result of the worst array."""
    problem = _shape_problem(outputs, reference.values)
    if problem:
        return mismatch(units, problem)
    if not any(np.size(value) for value in reference.values.values()):
        return mismatch(units, "nothing is exported: there is no number to compare")
    worst = ParityReading(
        units=units, finite=True, worst_ratio=0.0, worst_array="", detail="nothing to compare", compared=False
    )
    for name, value in reference.values.items():
        reading = _compare_array(name, np.asarray(outputs[name]), value, reference, units)
        severity = (not reading.finite, reading.worst_ratio, reading.compared)
        if severity >= (not worst.finite, worst.worst_ratio, worst.compared):
            worst = reading
    worst = worst.model_copy(
        update={
            "reference_frameworks": reference.frameworks,
            "own_program": reference.own_program,
            "counts_units": reference.counts_units,
        }
    )
    if worst.worst_ratio <= 1 and reference.leaves_state_unchanged:
        detail = f"after {units} units the right state is the initial one: a step that does nothing would pass"
        return worst.model_copy(update={"compared": False, "detail": detail})
    if worst.worst_ratio <= 1 and reference.accepts_anything():
        return mismatch(
            units,
            f"one ulp of the inputs moves every output by about its own size after {units} units: nothing can be "
            f"compared; a higher precision can be",
        )
    return worst


def is_within_tolerance(outputs: NamedArrays, reference: Reference) -> bool:
    """Return True if outputs are within the tolerance of the reference."""
    return compare(outputs, replace(reference, non_finite=True), 0).worst_ratio <= 1


def agree(outputs: Sequence[NamedArrays], reference: Reference) -> bool:
    """Return True if all outputs agree with the first, even if the reference is wrong."""
    first, *others = outputs
    ulp = EPSILON[reference.precision]
    ulp_spreads = {name: np.full(value.shape, ulp * root_mean_square(value)) for name, value in first.items()}
    reference_spreads = {}
    for name, ulp_spread in ulp_spreads.items():
        spread = reference.spreads.get(name, ulp_spread)
        reference_spreads[name] = spread if spread.shape == ulp_spread.shape else ulp_spread
    # If the reference is wrong, its spreads may be wrong too. So one ulp serves as another spread.
    for spreads in (ulp_spreads, reference_spreads):
        expected = replace(reference, values=first, spreads=spreads)
        if others and all(is_within_tolerance(other, expected) for other in others):
            return True
    return False


def read_outputs(directory: Path, name: str = "outputs.npz") -> NamedArrays:
    """Return a launch's exported arrays as real numbers."""
    with (directory / name).open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return as_real({name: archive[name] for name in archive.files})


def _shape_problem(outputs: NamedArrays, values: NamedArrays) -> str:
    """Describe a difference in names, shapes or types; empty if there is none."""
    if outputs.keys() != values.keys():
        return f"it exports {_list_names(outputs)}, the reference has {_list_names(values)}"
    for name, value in values.items():
        output = np.asarray(outputs[name])
        if output.shape != value.shape:
            return f"{name} has shape {output.shape}, the reference {value.shape}"
        if not (np.issubdtype(output.dtype, np.number) or output.dtype == np.bool_):
            return f"{name} holds {output.dtype}, not numbers"
    return ""


def _list_names(arrays: NamedArrays) -> str:
    return ", ".join(sorted(arrays)) or "nothing"


def mismatch(units: int, detail: str) -> ParityReading:
    """Return the result for outputs that cannot be compared at all."""
    return ParityReading(units=units, finite=True, worst_ratio=MISMATCH, worst_array="", detail=detail)


def _compare_array(name: str, output: Array, value: Array, reference: Reference, units: int) -> ParityReading:
    """Return the largest error of one array, divided by the tolerance there."""
    finite = np.isfinite(output)
    unexpected = (finite != np.isfinite(value)) if reference.non_finite else ~finite
    if unexpected.any():
        problem = "NaN or infinity elsewhere than the reference" if reference.non_finite else "NaN or infinity"
        first_index = _format_index(unexpected.argmax(), value)
        hint = FLOAT16_HINT if reference.precision == "float16" else ""
        return ParityReading(
            units=units,
            finite=False,
            worst_ratio=MISMATCH,
            worst_array=name,
            detail=f"{name}{first_index}: {problem} in {int(unexpected.sum())} of {value.size}{hint}",
        )
    if value.size and not finite.any():
        detail = f"{name}: nothing finite to compare; NaN and infinity stand where the reference has them"
        return ParityReading(units=units, finite=True, worst_ratio=0.0, worst_array=name, detail=detail, compared=False)
    with np.errstate(all="ignore"):
        error = np.where(finite, np.abs(output.astype(np.float64) - value.astype(np.float64)), 0.0)
        tolerance = np.where(finite, reference.tolerance(name), 0.0)
        ratio = np.where(error > 0, np.minimum(error / tolerance, MISMATCH), 0.0)
    ratio = np.nan_to_num(ratio, nan=MISMATCH, posinf=MISMATCH)
    if not ratio.size:
        return ParityReading(units=units, finite=True, worst_ratio=0.0, worst_array=name, detail=f"{name} is empty")
    worst = int(ratio.argmax())
    steps = "1 step" if units == 1 else f"{units:,} steps"
    where = f"{name}{_format_index(worst, value)}"
    return ParityReading(
        units=units,
        finite=True,
        worst_ratio=float(ratio.flat[worst]),
        worst_array=name,
        detail=f"{where} differs from the reference by {error.flat[worst]:.2g} after {steps}",
    )


def _format_index(flat_index: Any, value: Array) -> str:
    """Format an index of the flattened array, such as `[2, 0]`."""
    if not value.ndim:
        return ""
    return str([int(position) for position in np.unravel_index(int(flat_index), value.shape)])

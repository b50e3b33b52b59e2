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
    """Return a reading for each of the request's outputs, by `ROUND/VARIANT`; an error is a reading too."""
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
        if launch and (unseen := read_unseen(request, launch, Path(directory))):
            readings[key] = readings[key].model_copy(update={"unseen": unseen})
    return _add_agreement_hint(request, readings)


def _add_remedy(reading: ParityReading, launch: LaunchRecord | None) -> ParityReading:
    """Add advice to the reading of a baseline that differs from its own program in float64."""
    if launch is None or reading.own_program != launch.variant or reading.worst_ratio <= 1:
        return reading
    return reading.model_copy(update={"detail": f"in float64 it computes something else: {REMEDY}; {reading.detail}"})


def _add_agreement_hint(request: JudgeRequest, readings: dict[str, ParityReading]) -> dict[str, ParityReading]:
    """Add a hint if all variants differ from the reference, but not from each other."""
    units, *other_units = {reading.units for reading in readings.values()} or {0}
    # Numbers that overflow in all variants alike prove nothing against the reference.
    all_wrong = all(reading.finite and reading.worst_ratio > 1 for reading in readings.values())
    if len(readings) < 2 or other_units or not all_wrong:  # noqa: PLR2004
        return readings
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


def read_unseen(request: JudgeRequest, launch: LaunchRecord, outputs: Path) -> UnseenReading | None:
    """Compare the outputs for inputs that the launch had not seen; None if it got no such inputs."""
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable) or dependence.units is None:
        return None
    units, directory = dependence.units, Path(request.directory)
    try:
        expected = reference_for(request.case, units, directory, unseen_seed=request.unseen_seed)
        expected_for_own_inputs = reference_for(request.case, units, directory)
        reading = compare(read_outputs(outputs, UNSEEN), expected, units)
        return UnseenReading(reading=reading, changes=not is_within_tolerance(expected_for_own_inputs.values, expected))
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code, the outputs a launch's
        return UnseenReading(reading=mismatch(units, f"cannot be compared: {script.format_error(error)}"), changes=True)


def compare(outputs: NamedArrays, reference: Reference, units: int) -> ParityReading:
    """Compare a launch's exported arrays with the reference after `units` units.

    Returns the largest error divided by its tolerance, and where it is.
    """
    if problem := _shape_problem(outputs, reference.values):
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
    """Return True if outputs of several variants agree with each other, even if all differ from the reference.

    They may differ by roundings of their own size, or by the spreads of the reference, which may be wrong as well.
    """
    first, *others = outputs
    ulp = EPSILON[reference.precision]
    rounded = {name: np.full(value.shape, ulp * root_mean_square(value)) for name, value in first.items()}
    own_spreads = {
        name: own if (own := reference.spreads.get(name, spread)).shape == spread.shape else spread
        for name, spread in rounded.items()
    }
    return bool(others) and any(
        all(is_within_tolerance(other, replace(reference, values=first, spreads=spreads)) for other in others)
        for spreads in (rounded, own_spreads)
    )


def read_outputs(directory: Path, name: str = "outputs.npz") -> NamedArrays:
    """Return the arrays that a launch exported; raise OSError, ValueError, zipfile.BadZipFile or another error."""
    with (directory / name).open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return as_real({name: archive[name] for name in archive.files})


def _shape_problem(outputs: NamedArrays, values: NamedArrays) -> str:
    """Describe the first difference of names or shapes, or an array without numbers; empty if there is none."""
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
    """Return the reading of outputs that cannot be compared at all."""
    return ParityReading(units=units, finite=True, worst_ratio=MISMATCH, worst_array="", detail=detail)


def _compare_array(name: str, output: Array, value: Array, reference: Reference, units: int) -> ParityReading:
    """Return the largest error of one array over its tolerance.

    NaN and infinity are a mismatch, unless the workload declares them and the reference has them in the same places.
    """
    finite = np.isfinite(output)
    unexpected = finite != np.isfinite(value) if reference.non_finite else ~finite
    if unexpected.any():
        problem = "NaN or infinity elsewhere than the reference" if reference.non_finite else "NaN or infinity"
        return ParityReading(
            units=units,
            finite=False,
            worst_ratio=MISMATCH,
            worst_array=name,
            detail=(
                f"{name}{_format_index(unexpected.argmax(), value)}: {problem} in {int(unexpected.sum())} of "
                f"{value.size}"
                f"{FLOAT16_HINT if reference.precision == 'float16' else ''}"
            ),
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
    index = int(ratio.argmax())
    return ParityReading(
        units=units,
        finite=True,
        worst_ratio=float(ratio.flat[index]),
        worst_array=name,
        detail=(
            f"{name}{_format_index(index, value)} differs from the reference by {error.flat[index]:.2g} after "
            f"{'1 step' if units == 1 else f'{units:,} steps'}"
        ),
    )


def _format_index(index: Any, value: Array) -> str:
    """Format a flat index as `[2, 0]`; empty for a scalar."""
    return str([int(part) for part in np.unravel_index(int(index), value.shape)]) if value.ndim else ""

"""Parity: a launch's outputs against the float64 reference, number by number."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.launch.record import MISMATCH, ParityReading
from accelbench.workload import Array, NamedArrays
from accelbench_runner.judge.reference import EPSILON, Reference, root_mean_square
from accelbench_runner.outputs import as_real

NARROW = "; float16 ends at 65,504: use bfloat16, or smaller numbers"


def compare(outputs: NamedArrays, reference: Reference, units: int) -> ParityReading:
    """A launch's exported arrays against the reference: the worst error over its tolerance, and where."""
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
    told = {
        "reference_frameworks": reference.frameworks,
        "own_program": reference.own_program,
        "counts_units": reference.counts_units,
    }
    worst = worst.model_copy(update=told)
    if worst.worst_ratio <= 1 and reference.stands_still:
        detail = f"after {units} units what is right is what the state held before: a step that does nothing would pass"
        return worst.model_copy(update={"compared": False, "detail": detail})
    if worst.worst_ratio <= 1 and reference.sees_nothing():
        return mismatch(
            units,
            f"one ulp of the inputs moves every output by about its own size after {units} units: nothing can be "
            f"compared; a higher precision can be",
        )
    return worst


def within(outputs: NamedArrays, reference: Reference) -> bool:
    """Whether outputs are those of the reference as far as its tolerance tells."""
    return compare(outputs, replace(reference, non_finite=True), 0).worst_ratio <= 1


def agree(outputs: Sequence[NamedArrays], reference: Reference) -> bool:
    """Whether outputs of several variants are alike, whatever the reference says is right.

    They may differ by roundings of their own size, or by as much as the reference says that inputs move them: it may be
    wrong about that, too.
    """
    first, *others = outputs
    ulp = EPSILON[reference.precision]
    rounded = {name: np.full(value.shape, ulp * root_mean_square(value)) for name, value in first.items()}
    moved = {
        name: known if (known := reference.spreads.get(name, spread)).shape == spread.shape else spread
        for name, spread in rounded.items()
    }
    return bool(others) and any(
        all(within(other, replace(reference, values=first, spreads=spreads)) for other in others)
        for spreads in (rounded, moved)
    )


def read_outputs(directory: Path, name: str = "outputs.npz") -> NamedArrays:
    """The arrays of a launch's outputs; raises OSError, ValueError, zipfile.BadZipFile and the like."""
    with (directory / name).open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return as_real({name: archive[name] for name in archive.files})


def _shape_problem(outputs: NamedArrays, values: NamedArrays) -> str:
    if outputs.keys() != values.keys():
        return f"it exports {_listed(outputs)}, the reference has {_listed(values)}"
    for name, value in values.items():
        output = np.asarray(outputs[name])
        if output.shape != value.shape:
            return f"{name} has shape {output.shape}, the reference {value.shape}"
        if not (np.issubdtype(output.dtype, np.number) or output.dtype == np.bool_):
            return f"{name} holds {output.dtype}, not numbers"
    return ""


def _listed(arrays: NamedArrays) -> str:
    return ", ".join(sorted(arrays)) or "nothing"


def mismatch(units: int, detail: str) -> ParityReading:
    """The reading of outputs that cannot be compared at all."""
    return ParityReading(units=units, finite=True, worst_ratio=MISMATCH, worst_array="", detail=detail)


def _compare_array(name: str, output: Array, value: Array, reference: Reference, units: int) -> ParityReading:
    finite = np.isfinite(output)
    unexpected = finite != np.isfinite(value) if reference.non_finite else ~finite
    if unexpected.any():
        what = "NaN or infinity elsewhere than the reference" if reference.non_finite else "NaN or infinity"
        return ParityReading(
            units=units,
            finite=False,
            worst_ratio=MISMATCH,
            worst_array=name,
            detail=(
                f"{name}{_place(unexpected.argmax(), value)}: {what} in {int(unexpected.sum())} of {value.size}"
                f"{NARROW if reference.precision == 'float16' else ''}"
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
            f"{name}{_place(index, value)} differs from the reference by {error.flat[index]:.2g} after "
            f"{'1 step' if units == 1 else f'{units:,} steps'}"
        ),
    )


def _place(index: Any, value: Array) -> str:
    return str([int(part) for part in np.unravel_index(int(index), value.shape)]) if value.ndim else ""

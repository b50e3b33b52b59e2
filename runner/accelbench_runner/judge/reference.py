"""Compute the float64 reference, and the tolerance of a correct result: the effect of one ulp on the outputs.

The reference starts from the same numbers as the variants: the workload's arrays, rounded to the policy's type. How far
a correct result may differ depends on the computation. So the reference runs again, with every number of its inputs
moved up or down at random by one ulp (unit in the last place) of the policy's type. The state is rounded once in each
unit of work; n roundings add up like a random walk, so the state is moved by sqrt(n) ulp for n units. The distance by
which an output moves is its spread, and an output may be off by at most `FACTORS` spreads. A computation that amplifies
errors, such as a long training, therefore has a wide tolerance. Integers must be exact unless the reference's integers
move too.

Parker, "Monte Carlo Arithmetic" (1997), for rounding as a random perturbation; Higham, "Accuracy and Stability of
Numerical Algorithms" (2002), chapters 1 to 3, for how roundings add up.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accelbench import catalogue, frameworks
from accelbench.api.case import Case, Precision
from accelbench.catalogue import script, workload_checks
from accelbench.catalogue.inputs import generate, generate_unseen
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Array, Arrays, NamedArrays, Program, Workload
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings
from accelbench_runner.outputs import as_real, save

EPSILON: Mapping[Precision, float] = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "tf32": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
}
"""The distance from 1 to the next number of the policy's type; for TF32 that of a product's operands."""

SMALLEST: Mapping[Precision, float] = {
    "float64": 2.0**-1022,
    "float32": 2.0**-126,
    "tf32": 2.0**-126,
    "bfloat16": 2.0**-126,
    "float16": 2.0**-14,
}
"""The smallest normal number; smaller numbers may be flushed to zero."""

FACTORS: Mapping[Precision, float] = {"float64": 64, "float32": 64, "tf32": 16, "bfloat16": 4, "float16": 16}
"""Maximum error in spreads; docs/results/parity.md has the measured errors of correct programs.

float64 and float32 round at every addition: the worst of 260,000 sums of 512 terms is 25 spreads off (matmul-chain in
JAX; 20 for sums of 2048), and 10,000 epochs of xor are 10 off. With narrow types, products are summed in float32 and
only results are rounded: 0.7 for products. Updates below half an ulp vanish, all in the same direction: 3 in bfloat16
and 5 in float16 over 100 epochs of xor. Wrong outputs are off by their own size: by 20,000 spreads or more in float32,
by 5,000 if it was computed in TF32, and by 8 after 100 products in bfloat16. So the factor of bfloat16 must be well
below 8.
"""

OUTPUT_ULPS: Mapping[Precision, float] = {"float64": 16, "float32": 16, "tf32": 1, "bfloat16": 1, "float16": 1}
"""Additional maximum error, in units in the last place of the output itself.

If every addition rounds, a sum of many terms is rounded at its own size, which the moved inputs do not show, because
their moves cancel: for 260,000 squares they move the mean by 0.01 ulp, and one kernel of Inductor is 5 ulp off
(docs/results/parity.md). Narrow types are summed in float32 and rounded once.
"""

PERTURBATIONS = 4
"""Number of runs with moved inputs."""
MAXIMUM_RERUN_DIFFERENCE = 1e-9
"""Maximum difference of two runs of the reference, relative to the array: sums may run in another order."""
FLOAT64_STEP_ULPS = 2.0**12
"""Number of ulp by which inputs are moved for float64; spreads are divided by it. The reference itself rounds in
float64, which would hide the effect of one ulp. Outputs are still linear in so small a step."""
OWN_PROGRAM_PLATFORM = "cpu"
REMEDY = "write a reference() in NumPy, or make arrays with dtype=x.dtype"
"""Advice if a baseline's own program fails in float64, or differs there from its outputs in the requested precision."""


@dataclass(frozen=True)
class Reference:
    """Hold the right outputs after some units of work, and the distance that each moves if the inputs move by one ulp.

    `values` and `spreads` have the same names and shapes. Values have the workload's types; spreads are float64.
    """

    values: NamedArrays
    spreads: NamedArrays
    precision: Precision
    non_finite: bool = False
    """True if the workload declares NaN and infinity: then outputs must have them in the same places."""
    frameworks: tuple[str, ...] = ()
    """The frameworks that the reference imported. The reference may share an error with their variants."""
    own_program: str = ""
    """The variant whose own program is the reference; empty if the workload has a reference."""
    leaves_state_unchanged: bool = False
    """True if the right state equals the initial one within the tolerance: a step that does nothing would pass."""
    counts_units: bool = True
    """False if half as many units give the same outputs: then outputs do not show how many units a program ran."""

    def tolerance(self, name: str) -> Array:
        """Return the maximum absolute error of each element, in float64."""
        value, spread = self.values[name], self.spreads[name]
        if not is_float(value):
            return spread
        finite = np.isfinite(value) & np.isfinite(spread)
        typical_spread = np.sqrt(np.mean(np.square(spread[finite]))) if finite.any() else 0.0
        effect_of_inputs = FACTORS[self.precision] * np.maximum(spread, typical_spread)
        output_rounding = OUTPUT_ULPS[self.precision] * EPSILON[self.precision] * np.abs(value)
        return effect_of_inputs + output_rounding + SMALLEST[self.precision]

    def accepts_anything(self) -> bool:
        """Return True if the tolerance is larger than the outputs: any output would pass."""
        names = [name for name, value in self.values.items() if is_float(value) and np.isfinite(value).any()]
        return bool(names) and all(
            np.nanmedian(self.tolerance(name)) > root_mean_square(self.values[name]) > 0 for name in names
        )


def reference_for(case: Case, units: int, directory: Path, *, unseen_seed: int | None = None) -> Reference:
    """Return the right outputs of `case` after `units` units of work.

    With `unseen_seed`, they start from other inputs.
    """
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    precision = case.measurement.precision
    file = directory / f"reference-{units}{'' if unseen_seed is None else '-unseen'}.npz"
    properties_file = file.with_suffix(".json")
    non_finite = workload.measure(parameters).non_finite is not None
    if file.exists():
        properties = json.loads(properties_file.read_text())
        values, spreads = _load(file)
    else:
        # Note which frameworks the reference imports: it may share an error with their variants.
        packages = {package: framework.name for framework in frameworks.every() for package in framework.own}
        imported_before = sys.modules.keys() & packages.keys()
        arrays = generate(workload, parameters, case.measurement.seed)
        if unseen_seed is not None:
            arrays = generate_unseen(workload, parameters, arrays, unseen_seed)
        start = round_arrays(arrays, precision)
        del arrays  # gigabytes for a large network
        own_program = None if workload.has_reference() else OwnProgram(case, workload, parameters)
        run = own_program.run if own_program else partial(workload.reference, parameters)
        try:
            values, spreads = compute(run, start, units, precision)
        except Exception as error:
            if own_program is None:
                raise
            message = f"{case.baseline}'s own program fails in float64 ({REMEDY}): {script.format_error(error)}"
            raise InvalidWorkloadError(message) from error
        imported_by_reference = (sys.modules.keys() & packages.keys()) - imported_before
        computed = Reference(values, spreads, precision, non_finite)
        properties = {
            "frameworks": sorted({packages[package] for package in imported_by_reference}),
            "leaves_state_unchanged": leaves_state_unchanged(start.state, computed),
            "counts_units": counts_units(run, start, units, computed),
        }
        properties_file.write_text(json.dumps(properties))
        _save(file, values, spreads)  # last, because the next call takes the reference as complete if this file exists
    return Reference(
        values=values,
        spreads=spreads,
        precision=precision,
        non_finite=non_finite,
        frameworks=tuple(properties["frameworks"]),
        own_program="" if workload.has_reference() else case.baseline,
        leaves_state_unchanged=properties["leaves_state_unchanged"],
        counts_units=properties["counts_units"],
    )


def leaves_state_unchanged(state: NamedArrays, computed: Reference) -> bool:
    """Return True if the state's arrays in the outputs still have their initial values."""
    names = [name for name, value in computed.values.items() if name in state and np.shape(state[name]) == value.shape]
    return bool(names) and all(
        bool(np.all(np.abs(state[name] - computed.values[name]) <= computed.tolerance(name))) for name in names
    )


def counts_units(run: Callable[[Arrays, int], NamedArrays], start: Arrays, units: int, computed: Reference) -> bool:
    """Return True if half of the units give other outputs than all units."""
    if units < 2:  # noqa: PLR2004 - a half needs two
        return True
    with np.errstate(all="ignore"):
        halfway = as_real({name: np.asarray(value) for name, value in run(start, units // 2).items()})
    return any(
        not np.all(np.abs(halfway[name] - value) <= computed.tolerance(name)) for name, value in computed.values.items()
    )


def compute(
    run: Callable[[Arrays, int], NamedArrays], start: Arrays, units: int, precision: Precision
) -> tuple[NamedArrays, NamedArrays]:
    """Return the reference's outputs, and how far they move if inputs move by one ulp.

    `start` must be rounded to `precision`.
    """
    rng = np.random.default_rng(0)  # a fixed seed, so that the tolerance can be reproduced
    step_ulps = FLOAT64_STEP_ULPS if precision == "float64" else 1.0
    step = EPSILON[precision] * step_ulps

    def perturbed_inputs() -> Arrays:
        """Return `start` with each float moved by a small step."""
        return Arrays(
            # Each unit of work rounds the state once, so the state moves more.
            state={name: _perturb(array, step * math.sqrt(units), rng) for name, array in start.state.items()},
            batches=tuple(
                {name: _perturb(array, step, rng) for name, array in batch.items()} for batch in start.batches
            ),
        )

    def run_once(arrays: Arrays) -> NamedArrays:
        return as_real({name: np.asarray(value) for name, value in run(arrays, units).items()})

    with np.errstate(all="ignore"):
        values = run_once(start)
        _check_repeatable(values, run_once(start))
        spreads = {name: np.zeros(value.shape) for name, value in values.items()}
        for _ in range(PERTURBATIONS):  # one run at a time, because a large network fills the memory
            for name, value in run_once(perturbed_inputs()).items():
                spreads[name] = _accumulate(spreads[name], value, values[name])
    for name, value in values.items():
        spreads[name] = _finish_spread(spreads[name], value, step_ulps)
    return values, spreads


def _check_repeatable(values: NamedArrays, rerun_values: NamedArrays) -> None:
    """Raise ValueError if two runs from the same inputs differ."""
    for name, value in values.items():
        difference = np.abs(np.asarray(rerun_values[name]).astype(np.float64) - value.astype(np.float64))
        # Random numbers in the reference would widen the tolerance.
        if np.any(difference > MAXIMUM_RERUN_DIFFERENCE * root_mean_square(value)):
            raise ValueError(f"{name} comes out different when it is computed again from the same inputs")


def _perturb(array: Array, step: float, rng: np.random.Generator) -> Array:
    """Move each float up or down at random by the fraction `step` of its size."""
    if np.iscomplexobj(array):
        return _perturb(array.real, step, rng) + 1j * _perturb(array.imag, step, rng)
    signs = rng.integers(0, 2, size=array.shape) * 2.0 - 1.0
    return array * (1 + step * signs) if is_float(array) else array


def _load(file: Path) -> tuple[NamedArrays, NamedArrays]:
    """Return the values and the spreads that `_save` wrote."""
    values: dict[str, Array] = {}
    spreads: dict[str, Array] = {}
    with np.load(file, allow_pickle=False) as archive:
        for key in archive.files:
            kind, _, name = key.partition(":")
            arrays = values if kind == "value" else spreads
            arrays[name] = archive[key]
    return values, spreads


def _save(file: Path, values: NamedArrays, spreads: NamedArrays) -> None:
    """Write values and spreads to one archive."""
    partial_file = file.with_suffix(".partial.npz")
    value_entries = {f"value:{name}": array for name, array in values.items()}
    spread_entries = {f"spread:{name}": array for name, array in spreads.items()}
    save(partial_file, value_entries | spread_entries)
    partial_file.replace(file)  # only a complete file gets the name


def round_arrays(arrays: Arrays, precision: Precision) -> Arrays:
    """Round all arrays to `precision`, as programs get them."""
    return Arrays(
        state={name: round_array(array, precision) for name, array in arrays.state.items()},
        batches=tuple(
            {name: round_array(array, precision) for name, array in batch.items()} for batch in arrays.batches
        ),
    )


def round_array(array: Array, precision: Precision) -> Array:
    """Round each float to `precision` (half to even), and return it as float64."""
    if np.iscomplexobj(array):
        # Frameworks have no complex types narrower than complex64.
        part_precision: Precision = "float64" if precision == "float64" else "float32"
        return round_array(array.real, part_precision) + 1j * round_array(array.imag, part_precision)
    if not is_float(array) or precision == "float64":
        return array
    with np.errstate(over="ignore"):
        if precision == "float16":
            return array.astype(np.float16).astype(np.float64)
        single = array.astype(np.float32)
        if precision == "bfloat16":
            # A bfloat16 has the upper 16 bits of a float32. Adding almost half of its last bit, or exactly half if
            # that bit is set, and then cutting off the lower bits rounds half to even.
            bits = single.view(np.uint32)
            last_bit = (bits >> 16) & 1
            rounded_bits = (bits + 0x7FFF + last_bit) & 0xFFFF0000
            single = np.where(np.isfinite(single), rounded_bits, bits).astype(np.uint32).view(np.float32)
        return single.astype(np.float64)


def _accumulate(total: Array, output: Array, value: Array) -> Array:
    """Add the differences between two outputs to `total`."""
    differences = np.abs(output.astype(np.float64) - value.astype(np.float64))
    if is_float(value):
        return np.asarray(total + np.square(differences))
    return np.asarray(np.maximum(total, differences))


def _finish_spread(total: Array, value: Array, step_ulps: float) -> Array:
    """Return the spread of an output from the `total` of all runs."""
    if is_float(value):
        return np.asarray(np.sqrt(total / PERTURBATIONS) / step_ulps)
    return total


def is_float(array: Array) -> bool:
    """Return True for an array of real floating-point numbers."""
    return bool(np.issubdtype(array.dtype, np.floating))


def root_mean_square(value: Array) -> float:
    """Return the root mean square of the finite elements."""
    finite = value[np.isfinite(value)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


class OwnProgram:
    """Run a baseline's own program in float64 on the CPU, step by step, without jit or compile."""

    def __init__(self, case: Case, workload: Workload, parameters: Any) -> None:
        """Import the baseline's framework, and initialise it on the CPU in float64."""
        variant = next(variant for variant in case.variants if variant.name == case.baseline)
        self._kind = workload.variants()[variant.use]
        framework = frameworks.find(self._kind.framework)
        self._workload, self._parameters = workload, parameters
        self._adapter: Adapter = framework.load_adapter()(
            AdapterSettings(
                mode=self._kind.mode,
                options=catalogue.parse_options(self._kind, variant.options),
                platform=OWN_PROGRAM_PLATFORM,
                precision="float64",
                threads=len(os.sched_getaffinity(0)),
                differentiates=workload.measure(parameters).differentiates,
                backend=framework.backend(OWN_PROGRAM_PLATFORM, {}),
            )
        )
        self._adapter.initialise()

    def run(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the arrays that the program exports after `units` units of work."""
        build = getattr(self._workload, self._kind.method)
        program = workload_checks.call_method(build, Program, self._parameters, arrays, self._adapter)
        state, out = program.state, None
        for index in range(units // program.units):
            step_in_call = index % program.inner  # every call starts again with the first batch
            state, out = program.step(state, program.batches[step_in_call % len(program.batches)])
        return self._adapter.to_numpy(workload_checks.call_export(program, state, out))

"""The float64 reference, and how far a correct result may lie from it: what the computation makes of one ulp.

The reference starts from the bits that the variants start from: the workload's arrays, rounded to the policy's type.
How far a correct result may lie from it depends on the computation, so the computation is asked: the reference runs
again with every number of its inputs moved up or down at random by one unit in the last place of the policy's type.
What a unit of work hands to the next is rounded once in each: n roundings add up like a random walk, so the state is
moved by sqrt(n) ulp for n units. How far the outputs move is their spread; `FACTORS` says how many spreads an output
may be off. A computation that amplifies, a long training say, widens its tolerance by itself; integers are exact unless
the reference's own integers move.

Parker, "Monte Carlo Arithmetic" (1997), for rounding as a random perturbation; Higham, "Accuracy and Stability of
Numerical Algorithms" (2002), chapters 1 to 3, for how roundings add up.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from accelbench import catalogue, frameworks
from accelbench.api.case import Case, Precision
from accelbench.catalogue import script
from accelbench.catalogue.inputs import generate, unseen
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Array, Arrays, NamedArrays
from accelbench_runner.judge.own_program import REMEDY, OwnProgram
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
"""The smallest normal number: what is smaller may be flushed to zero."""

FACTORS: Mapping[Precision, float] = {"float64": 64, "float32": 64, "tf32": 16, "bfloat16": 4, "float16": 16}
"""Error allowed, in spreads; what was measured of correct programs stands in docs/results/parity.md.

float64 and float32 round at every addition: the worst of 260,000 sums of 512 terms is 25 spreads off (matmul-chain in
JAX; 20 for sums of 2048), 10,000 epochs of xor are 10 off. In the narrow types products are summed in float32 and only
results are rounded: 0.7 for products, but updates below half an ulp are lost, all in the same direction: 3 in bfloat16
and 5 in float16 over 100 epochs of xor. What is wrong is off by the size of the output: by 20,000 spreads or more in
float32, by 5,000 where arithmetic of TF32's ten bits took its place, and by 8 after 100 products in bfloat16, which
leaves no room for more than 4.
"""

ROUNDED: Mapping[Precision, float] = {"float64": 16, "float32": 16, "tf32": 1, "bfloat16": 1, "float16": 1}
"""Error allowed beside that, in units in the last place of the output itself.

Where every addition rounds, a sum of many terms rounds at its own size, and its inputs do not tell: their moves cancel.
Of 260,000 squares the moves are 0.01 ulp of the mean, and one kernel of Inductor's is 5 off (docs/results/parity.md).
Narrow types are summed in float32 and rounded once.
"""

PERTURBATIONS = 4
REPEATS = 1e-9
"""The reference's own two answers may be so far apart, as a share of their size: sums in another order."""
COARSER = 2.0**12
"""In float64 inputs are moved by so many ulp and spreads divided by it: the reference computes in float64 itself, and
what one of its own ulps does is lost among its roundings. So small a step is still one to which outputs are linear."""


@dataclass(frozen=True)
class Reference:
    """What is right after some number of units, and how far it moves when the inputs move by one ulp.

    `values` and `spreads` have the same names and shapes: values as the workload returns them, spreads in float64.
    """

    values: NamedArrays
    spreads: NamedArrays
    precision: Precision
    non_finite: bool = False
    """The workload declares NaN and infinity: where they stand is compared, not that there are none."""
    frameworks: tuple[str, ...] = ()
    """That the reference imported when it was computed: where one of its variants is wrong, it may be as wrong."""
    own_program: str = ""
    """The variant whose own program it is, where the workload has no reference."""
    stands_still: bool = False
    """What is right is what the state held at the start, within the tolerance: a step that does nothing would pass."""
    counts_units: bool = True
    """False: after half as many units the same is right, so that outputs do not tell how many a program did."""

    def tolerance(self, name: str) -> Array:
        """Allowed absolute error of each element, float64."""
        value, spread = self.values[name], self.spreads[name]
        if not is_float(value):
            return spread
        finite = np.isfinite(value) & np.isfinite(spread)
        typical = np.sqrt(np.mean(np.square(spread[finite]))) if finite.any() else 0.0
        moved = FACTORS[self.precision] * np.maximum(spread, typical)
        rounded_itself = ROUNDED[self.precision] * EPSILON[self.precision] * np.abs(value)
        return moved + rounded_itself + SMALLEST[self.precision]

    def sees_nothing(self) -> bool:
        """Whether the tolerance of every floating-point array is above its own size: anything would pass."""
        floats = [name for name, value in self.values.items() if is_float(value) and np.isfinite(value).any()]
        return bool(floats) and all(
            np.nanmedian(self.tolerance(name)) > root_mean_square(self.values[name]) > 0 for name in floats
        )


def reference(case: Case, units: int, directory: Path, *, unseen_seed: int | None = None) -> Reference:
    """The reference of `case` after `units` units, computed once and kept in `directory` for the next judge.

    With `unseen_seed` that of inputs which no program was built from. Where the workload has none it is what the
    baseline's own program computes. Raises what either raises, and ValueError where it gives other numbers each time.
    """
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    precision = case.measurement.precision
    kept = directory / f"reference-{units}{'' if unseen_seed is None else '-unseen'}.npz"
    told = kept.with_suffix(".json")
    non_finite = workload.measure(parameters).non_finite is not None
    if kept.exists():
        about = json.loads(told.read_text())
        values, spreads = _load(kept)
    else:
        packages = {package: framework.name for framework in frameworks.every() for package in framework.own}
        before = sys.modules.keys() & packages.keys()
        arrays = generate(workload, parameters, case.measurement.seed)
        if unseen_seed is not None:
            arrays = unseen(workload, parameters, arrays, unseen_seed)
        start = rounded_arrays(arrays, precision)
        del arrays  # of a large network, gigabytes
        own = None if workload.has_reference() else OwnProgram(case, workload, parameters)
        run = own.run if own else partial(workload.reference, parameters)
        try:
            values, spreads = compute(run, start, units, precision)
        except Exception as error:
            if own is None:
                raise
            said = f"{case.baseline}'s own program fails in float64 ({REMEDY}): {script.in_one_line(error)}"
            raise InvalidWorkloadError(said) from error
        imported = (sys.modules.keys() & packages.keys()) - before
        computed = Reference(values, spreads, precision, non_finite)
        about = {
            "frameworks": sorted({packages[package] for package in imported}),
            "stands_still": stands_still(start.state, computed),
            "counts_units": counts_units(run, start, units, computed),
        }
        told.write_text(json.dumps(about))
        _save(kept, values, spreads)
    return Reference(
        values=values,
        spreads=spreads,
        precision=precision,
        non_finite=non_finite,
        frameworks=tuple(about["frameworks"]),
        own_program="" if workload.has_reference() else case.baseline,
        stands_still=about["stands_still"],
        counts_units=about["counts_units"],
    )


def stands_still(state: NamedArrays, computed: Reference) -> bool:
    """Whether outputs that are the state's arrays are all what they were, as far as the tolerance tells."""
    kept = [name for name, value in computed.values.items() if name in state and np.shape(state[name]) == value.shape]
    return bool(kept) and all(
        bool(np.all(np.abs(state[name] - computed.values[name]) <= computed.tolerance(name))) for name in kept
    )


def counts_units(run: Callable[[Arrays, int], NamedArrays], start: Arrays, units: int, computed: Reference) -> bool:
    """Whether the reference `run` gives something else after half of the units, as far as the tolerance tells."""
    if not units // 2:
        return True
    with np.errstate(all="ignore"):
        halfway = as_real({name: np.asarray(value) for name, value in run(start, units // 2).items()})
    return any(
        not np.all(np.abs(halfway[name] - value) <= computed.tolerance(name)) for name, value in computed.values.items()
    )


def compute(
    run: Callable[[Arrays, int], NamedArrays], start: Arrays, units: int, precision: Precision
) -> tuple[NamedArrays, NamedArrays]:
    """Values of the reference `run` and their spreads, in float64: 2 + `PERTURBATIONS` runs.

    `start` is rounded to `precision`. Little is held at a time: the weights of a large network fill a machine's memory
    a few times over.
    """
    rng = np.random.default_rng(0)
    coarser = COARSER if precision == "float64" else 1.0
    step = EPSILON[precision] * coarser

    def moved() -> Arrays:
        return Arrays(
            state={name: _moved(array, step * math.sqrt(units), rng) for name, array in start.state.items()},
            batches=tuple({name: _moved(array, step, rng) for name, array in batch.items()} for batch in start.batches),
        )

    def computed(arrays: Arrays) -> NamedArrays:
        return as_real({name: np.asarray(value) for name, value in run(arrays, units).items()})

    with np.errstate(all="ignore"):
        values = computed(start)
        _must_repeat(values, computed(start))
        spreads = {name: np.zeros(value.shape) for name, value in values.items()}
        for _ in range(PERTURBATIONS):
            for name, value in computed(moved()).items():
                spreads[name] = _wider(spreads[name], value, values[name])
    for name, value in values.items():
        spreads[name] = _spread(spreads[name], value, coarser)
    return values, spreads


def _must_repeat(values: NamedArrays, again: NamedArrays) -> None:
    """What draws its own numbers would take their spread for its own, and let anything pass."""
    for name, value in values.items():
        apart = np.abs(np.asarray(again[name]).astype(np.float64) - value.astype(np.float64))
        if np.any(apart > REPEATS * root_mean_square(value)):
            raise ValueError(f"{name} comes out different when it is computed again from the same inputs")


def _moved(array: Array, step: float, rng: np.random.Generator) -> Array:
    """Every real number up or down by `step` of its size; of a complex one both parts."""
    if np.iscomplexobj(array):
        return _moved(array.real, step, rng) + 1j * _moved(array.imag, step, rng)
    signs = rng.integers(0, 2, size=array.shape) * 2.0 - 1.0
    return array * (1 + step * signs) if is_float(array) else array


def _load(kept: Path) -> tuple[NamedArrays, NamedArrays]:
    with np.load(kept, allow_pickle=False) as archive:
        parts = {name: archive[name] for name in archive.files}
    values, spreads = (
        {name.removeprefix(part): array for name, array in parts.items() if name.startswith(part)}
        for part in ("value:", "spread:")
    )
    return values, spreads


def _save(kept: Path, values: NamedArrays, spreads: NamedArrays) -> None:
    parts = {"value:": values, "spread:": spreads}
    partial_file = kept.with_suffix(".partial.npz")
    save(partial_file, {part + name: array for part, arrays in parts.items() for name, array in arrays.items()})
    partial_file.replace(kept)


def rounded_arrays(arrays: Arrays, precision: Precision) -> Arrays:
    """Every array rounded, as programs are given them."""
    return Arrays(
        state={name: rounded(array, precision) for name, array in arrays.state.items()},
        batches=tuple({name: rounded(array, precision) for name, array in batch.items()} for batch in arrays.batches),
    )


def rounded(array: Array, precision: Precision) -> Array:
    """`array` with each float rounded to the policy's type, half to even, and kept as float64.

    Parts of complex numbers have at least the bits of float32: frameworks have no narrower ones.
    """
    if np.iscomplexobj(array):
        parts: Precision = "float64" if precision == "float64" else "float32"
        return rounded(array.real, parts) + 1j * rounded(array.imag, parts)
    if not is_float(array) or precision == "float64":
        return array
    with np.errstate(over="ignore"):
        if precision == "float16":
            return array.astype(np.float16).astype(np.float64)
        single = array.astype(np.float32)
        if precision == "bfloat16":
            bits = single.view(np.uint32)
            even = (bits >> 16) & 1
            bits = np.where(np.isfinite(single), (bits + 0x7FFF + even) & 0xFFFF0000, bits).astype(np.uint32)
            single = bits.view(np.float32)
        return single.astype(np.float64)


def _wider(wide: Array, moved: Array, value: Array) -> Array:
    """With one more run: the sum of squared moves, or of what is no float the largest move."""
    moves = np.abs(moved.astype(np.float64) - value.astype(np.float64))
    return np.asarray(wide + np.square(moves) if is_float(value) else np.maximum(wide, moves))


def _spread(wide: Array, value: Array, coarser: float) -> Array:
    return np.asarray(np.sqrt(wide / PERTURBATIONS) / coarser) if is_float(value) else wide


def is_float(array: Array) -> bool:
    """Whether an array holds floating-point numbers, which are rounded; others are exact."""
    return bool(np.issubdtype(array.dtype, np.floating))


def root_mean_square(value: Array) -> float:
    """Of what is finite; 0 of nothing."""
    finite = value[np.isfinite(value)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0

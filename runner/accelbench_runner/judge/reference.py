"""Compute the float64 reference of a case, and keep it in a file for later rounds.

The reference starts from the same numbers as the variants: the workload's arrays, rounded to the policy's type. It runs
several times, and `accelbench_runner.judge.expected` turns its runs into tolerances.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from accelbench import catalogue, frameworks
from accelbench.api.case import Case, Precision
from accelbench.launch.record import CANONICAL
from accelbench.workload import Array, Arrays, NamedArrays
from accelbench_runner.judge.arithmetic import EPSILON, is_float, map_arrays, round_arrays
from accelbench_runner.judge.canonical import CanonicalError, CanonicalForm, CanonicalProgram, canonical_form
from accelbench_runner.judge.expected import Choices, DeviationStatistics, Expected
from accelbench_runner.judge.hidden_errors import HiddenErrors, find_hidden_errors
from accelbench_runner.judge.layout import describe_layout
from accelbench_runner.judge.no_reference import RandomOutputsError
from accelbench_runner.judge.reference_program import ReferenceProgram, program_of, start_arrays
from accelbench_runner.judge.repeatability import require_same, require_stateless
from accelbench_runner.outputs import as_real, save

RUNS = 8
"""Number of runs with perturbed inputs, and of runs in the policy's arithmetic. With four, 3 of 92 correct programs
were refused."""
RUNS_BY_SECONDS = ((1.0, RUNS), (5.0, 4))
"""Maximum number of runs of a reference that takes up to so many seconds; slower ones get `MINIMUM_RUNS`."""
MINIMUM_RUNS = 2
WIDENING = {4: 1.5, MINIMUM_RUNS: 2.5}
"""Factor by which rounding errors are increased after fewer than `RUNS` runs, because few runs underestimate them."""
FORMULA_RUNS = 4
"""Number of runs, as `RUNS`, for outputs in float64. Fewer are enough, because their errors may be many tolerances."""
FLOAT64_STEP_ULPS = 2.0**14
"""Number of ulp by which numbers are moved for float64; the deviations of outputs are divided by it. The reference
itself rounds in float64, which would hide the effect of one ulp. Outputs are still linear in so small a step.

The check `formula` allows 4096 scales. So the step has to be larger than that by more than `WIDENING`: if a moved
number reverses a comparison with an equal one, the output leaps as far in a step of any size, and a program that has
`<` for `<=` leaps as far too."""
FIRST_SALT = 0x5DEECE66D
"""Odd number from which the salts of noise are made."""


class IncomparableOutputsError(Exception):
    """Report outputs of a launch that cannot be brought into the form in which they are compared."""

    def __init__(self, detail: str, *, finite: bool = True) -> None:
        """Create the error; `finite` is False if NaN or infinity is the reason."""
        super().__init__(detail)
        self.finite = finite


@dataclass(frozen=True)
class RawOutputs:
    """Describe the reference's outputs before they were brought into their canonical form."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    finite: frozenset[str] = frozenset()
    """Names of the outputs without NaN and infinity."""


@dataclass(frozen=True)
class Reference:
    """Hold the right outputs after some units of work, and their tolerances."""

    expected: Mapping[str, Expected]
    precision: Precision
    non_finite: bool = False
    """True if the workload declares NaN and infinity: then outputs must have them in the same places."""
    frameworks: tuple[str, ...] = ()
    """The frameworks that the reference imported. The reference may share an error with their variants."""
    unit: str = "step"
    """Name of a unit of work; empty for a function, which has no steps."""
    own_program: str = ""
    """The variant whose own program is the reference; empty if the workload has a reference."""
    leaves_state_unchanged: bool = False
    """True if the right state equals the initial one within the tolerance: a step that does nothing would pass."""
    counts_units: bool = True
    """False if half as many units give the same outputs: then outputs do not show how many units a program ran."""
    form: CanonicalForm | None = None
    """Canonical form in which outputs are compared with `expected`; None if they are compared as they are."""
    raw: RawOutputs = field(default_factory=RawOutputs)
    """The reference's outputs before `canonical` was applied to them."""
    hidden_errors: HiddenErrors = field(default_factory=HiddenErrors)
    """Errors that the form hides."""

    def to_compared_form(self, outputs: NamedArrays) -> NamedArrays:
        """Return a launch's outputs in the form in which they are compared: canonical if the workload defines that.

        With a canonical form, raises IncomparableOutputsError if the outputs have other names than the reference's, if
        `canonical` cannot be applied, or if an output has NaN or infinity before that, and the reference's has none.
        """
        if self.form is None:
            return as_real(outputs)
        if outputs.keys() != self.raw.shapes.keys():
            raise IncomparableOutputsError(describe_layout(outputs, self.raw.shapes))
        try:
            compared = self.form.apply(outputs)
        except CanonicalError as error:
            problem = describe_layout(outputs, self.raw.shapes) or f"its outputs have no canonical form: {error}"
            raise IncomparableOutputsError(problem) from error
        for name in self.raw.finite:  # `canonical` may have replaced NaN by numbers
            if not np.isfinite(outputs[name]).all():
                raise IncomparableOutputsError(f"{name}: NaN or infinity, before {CANONICAL}", finite=False)
        return compared

    @property
    def values(self) -> NamedArrays:
        """Return the right outputs by name."""
        return {name: expected.value for name, expected in self.expected.items()}


def reference_for(
    case: Case, units: int, directory: Path, *, unseen_seed: int | None = None, runs: int = RUNS
) -> Reference:
    """Return the right outputs of `case` after `units` units of work, computed or read from a file in `directory`.

    The first call computes them and writes the file. `unseen_seed` is the seed of other inputs to start from; None for
    the case's own. `runs` is the maximum number of runs, as in `compute`. Raises an UnrepeatableError if the outputs
    depend on more than the inputs.
    """
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    form = canonical_form(case, workload, parameters, unseen_seed)
    precision, measure = case.arithmetic, workload.measure(parameters)
    file = directory / f"reference-{precision}-{units}{'' if unseen_seed is None else '-unseen'}.npz"
    known = Reference(
        expected={},
        precision=precision,
        non_finite=measure.non_finite is not None,
        unit=measure.unit if workload.hand_written else "",
        own_program="" if workload.has_reference() else case.baseline,
        form=form,
    )
    if file.exists():
        return _load(file, known)
    # Find out which frameworks the reference imports: it may share an error with their variants.
    framework_of_package = _framework_of_package()
    imported_before = sys.modules.keys() & framework_of_package.keys()
    start = start_arrays(case, workload, parameters, unseen_seed)
    raw_program = program_of(case, workload, parameters)
    program = raw_program if form is None else CanonicalProgram(raw_program, form)
    expected = compute(program, start, units, precision, runs)
    if not workload.has_reference():
        require_stateless(case, raw_program, units)
    imported_by_reference = (sys.modules.keys() & framework_of_package.keys()) - imported_before
    computed = replace(
        known,
        expected=expected,
        frameworks=tuple(sorted({framework_of_package[package] for package in imported_by_reference})),
        leaves_state_unchanged=leaves_state_unchanged(start.state, expected),
        counts_units=counts_units(program, start, units, expected),
    )
    if form is not None:
        with np.errstate(all="ignore"):
            outputs = raw_program.exact(start, units)
        computed = _add_raw_outputs(computed, form, outputs, start.state)
    _save(file, computed)
    return computed


def _framework_of_package() -> dict[str, str]:
    """Return the name of each framework by the name of each Python package that is its own."""
    names: dict[str, str] = {}
    for framework in frameworks.every():
        names |= dict.fromkeys(framework.own, framework.name)
    return names


def _add_raw_outputs(reference: Reference, form: CanonicalForm, outputs: NamedArrays, state: NamedArrays) -> Reference:
    """Return the reference with what its raw outputs show.

    These are their shapes, which of them are finite, the errors that the form hides, and `leaves_state_unchanged`.

    Raw `outputs` are the reference's outputs before `form` is applied to them, and `state` is the initial state.
    """
    shapes = {name: np.shape(output) for name, output in outputs.items()}
    finite = frozenset(name for name, output in outputs.items() if np.isfinite(output).all())
    # A step that does nothing returns the initial state as those outputs that have its names and shapes.
    initial = {name: state[name] for name, shape in shapes.items() if name in state and np.shape(state[name]) == shape}
    outputs_without_work = _attempt(lambda: form.apply({**outputs, **initial})) if initial else {}
    return replace(
        reference,
        raw=RawOutputs(shapes, finite),
        hidden_errors=find_hidden_errors(outputs, form, reference.expected, reference.precision),
        leaves_state_unchanged=leaves_state_unchanged(outputs_without_work, reference.expected),
    )


def leaves_state_unchanged(state: NamedArrays, expected: Mapping[str, Expected]) -> bool:
    """Return True if arrays of the initial `state` are among the outputs, and all of them have their initial values."""
    names = [name for name, right in expected.items() if name in state and np.shape(state[name]) == right.value.shape]
    return bool(names) and all(_is_within_tolerance(state[name], expected[name]) for name in names)


def counts_units(program: ReferenceProgram, start: Arrays, units: int, expected: Mapping[str, Expected]) -> bool:
    """Return True if half as many units of work give other outputs than `expected`.

    If the outputs do not depend on the number of units, they cannot show that a program did less work than it claims.
    """
    if units < 2:  # noqa: PLR2004 - one unit has no half
        return True
    with np.errstate(all="ignore"):
        halfway = _as_arrays(program.exact(start, units // 2))
    return not all(
        halfway[name].shape == right.value.shape and _is_within_tolerance(halfway[name], right)
        for name, right in expected.items()
    )


def _is_within_tolerance(output: Array, expected: Expected) -> bool:
    """Return True if each element is within its tolerance, or the output or the reference is not finite there."""
    with np.errstate(all="ignore"):
        error = np.abs(np.asarray(output).astype(np.float64) - expected.value.astype(np.float64))
        return bool(np.all((error <= expected.tolerance()) | ~np.isfinite(error)))


def compute(
    program: ReferenceProgram, start: Arrays, units: int, precision: Precision, runs: int = RUNS
) -> dict[str, Expected]:
    """Return the reference's outputs after `units` units of work, with the tolerances for programs in `precision`.

    `start` must be rounded to `precision`. There are at most `runs` runs with perturbed inputs, and as many in the
    policy's arithmetic, half of them with noise in every operation. A slow reference runs less often, and its
    tolerances widen.
    """
    ulps = FLOAT64_STEP_ULPS if precision == "float64" else 1.0
    step = EPSILON[precision] * ulps  # inputs move by this fraction of their size
    rng = np.random.default_rng(0)  # a fixed seed, so that tolerances can be reproduced
    with np.errstate(all="ignore"):
        values, seconds = _time_exact(program, start, units)
        runs = min(runs, _affordable_runs(seconds))
        # Refuse a reference with random numbers: they would widen the tolerance.
        require_same(values, _as_arrays(program.exact(start, units)), RandomOutputsError)
        statistics = {name: DeviationStatistics(value, precision) for name, value in values.items()}

        # The first series: in the policy's type, from the given inputs and then from perturbed ones.
        is_rounded = _add_run(statistics, _attempt(partial(program.rounded, start, units, precision)))
        perturb = _find_accepted_perturbation(partial(program.exact, units=units), start, step)
        # The run from the given inputs is one of `runs // 2`. If it returned no outputs, further runs would not either.
        perturbed_runs = (runs // 2 - 1) if is_rounded else 0
        for _ in range(perturbed_runs):
            perturbed = round_arrays(perturb(start, step, step, rng), precision)
            _add_run(statistics, _attempt(partial(program.rounded, perturbed, units, precision)))
            del perturbed  # so that only one is in memory
        _end_series(statistics)

        # The second series: in float64, from perturbed inputs. In the policy's type, each unit of work rounds the state
        # once. If no run has done so, the state is perturbed more in place of these roundings.
        state_step = step if is_rounded else step * float(np.sqrt(units))
        for _ in range(runs):
            _add_run(statistics, program.exact(perturb(start, state_step, step, rng), units), ulps)
        _widen_for_sums(statistics, program, start, units, step, ulps)
        _end_series(statistics)

        # The third series: with noise in every operation.
        for index in range(runs // 2):
            perturbed = perturb(start, step, step, rng)
            salt = FIRST_SALT * (2 * index + 1)  # odd, because imaginary parts use salt + 1
            outputs = _attempt(partial(program.noisy, perturbed, units, precision, salt, ulps))
            _add_run(statistics, outputs, ulps)
            del perturbed, outputs
        _end_series(statistics)
        if precision == "float64" and _has_whole_numbers(start):
            _find_choices_by_whole_numbers(statistics, program, start, units, runs)
    widening = WIDENING.get(runs, 1.0)
    return {name: deviations.expected(widening) for name, deviations in statistics.items()}


def _has_whole_numbers(arrays: Arrays) -> bool:
    """Return True if a float that `_perturb` moves is a whole number; it does not move 0."""
    floats = [array for group in (arrays.state, *arrays.batches) for array in group.values() if is_float(array)]
    return any(bool(np.any((array == np.rint(array)) & (array != 0))) for array in floats)


def _find_choices_by_whole_numbers(
    statistics: Mapping[str, DeviationStatistics], program: ReferenceProgram, start: Arrays, units: int, runs: int
) -> None:
    """Note which outputs have integers that change only if whole numbers among the inputs move.

    float64 holds whole numbers exactly, so a program that differs there may have `<` for `<=`.
    """
    candidates = {name: deviations for name, deviations in statistics.items() if deviations.has_changed_integers}
    step, rng = EPSILON["float64"] * FLOAT64_STEP_ULPS, np.random.default_rng(0)
    for index in range(runs if candidates else 0):
        perturbed = _perturb(start, step, step, rng, keeps_whole_numbers=True)
        salt = FIRST_SALT * (2 * index + 1)
        for run in (program.exact, partial(program.noisy, precision="float64", salt=salt, ulps=FLOAT64_STEP_ULPS)):
            for name, output in _as_arrays(_attempt(partial(run, perturbed, units))).items():
                if name in candidates and not np.array_equal(output, candidates[name].value):
                    del candidates[name]
    for deviations in candidates.values():
        deviations.only_by_whole_numbers = True


def _time_exact(program: ReferenceProgram, start: Arrays, units: int) -> tuple[dict[str, Array], float]:
    """Return the program's outputs in float64 and the seconds of the run, the smaller of its wall time and CPU time.

    CPU time alone would grow with the number of threads, and wall time alone with other load on the machine.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
    values = _as_arrays(program.exact(start, units))
    return values, min(time.perf_counter() - began, time.process_time() - cpu_began)


def _widen_for_sums(
    statistics: Mapping[str, DeviationStatistics],
    program: ReferenceProgram,
    start: Arrays,
    units: int,
    step: float,
    ulps: float,
) -> None:
    """Run the program on inputs that all grow together, and increase the deviations of outputs that are long sums.

    Inputs grow by the fraction `step` of their size, which is `ulps` units in the last place.
    """
    elements = sum(array.size for group in (start.state, *start.batches) for array in group.values())

    def grow(array: Array) -> Array:
        """Return an array of floats or complex numbers with each increased by `step` of its size; others unchanged."""
        return array * (1 + step) if array.dtype.kind in "fc" else array

    grown = map_arrays(start, grow)
    for name, output in _as_arrays(_attempt(partial(program.exact, grown, units))).items():
        if output.shape == statistics[name].value.shape and is_float(output):
            statistics[name].widen_for_sums(output, ulps, maximum_terms=elements)


def _affordable_runs(seconds: float) -> int:
    """Return how often a reference that takes `seconds` may run with perturbed inputs."""
    return next((runs for limit, runs in RUNS_BY_SECONDS if seconds <= limit), MINIMUM_RUNS)


def _add_run(statistics: Mapping[str, DeviationStatistics], outputs: NamedArrays, ulps: float = 1.0) -> bool:
    """Add a run that was perturbed by `ulps` units in the last place; return False if it returned no outputs."""
    for name, output in _as_arrays(outputs).items():
        # Perturbed inputs may select another number of elements; such outputs cannot be compared.
        if output.shape == statistics[name].value.shape:
            statistics[name].add(output, ulps)
    return bool(outputs)


def _end_series(statistics: Mapping[str, DeviationStatistics]) -> None:
    """End the current series, whose runs were perturbed in the same way, in the statistics of each output."""
    for deviations in statistics.values():
        deviations.end_series()


def _as_arrays(outputs: NamedArrays) -> dict[str, Array]:
    """Return the outputs as arrays of real numbers."""
    return dict(as_real({name: np.asarray(value) for name, value in outputs.items()}))


def _attempt(run: Callable[[], NamedArrays]) -> NamedArrays:
    """Return the outputs of a run; empty if it fails, because the program may not support its inputs or arithmetic."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern arithmetic that the program's author did not choose
        try:
            return run()
        except Exception:  # noqa: BLE001 - the program was written for other inputs and for float64
            return {}


Perturbation = Callable[[Arrays, float, float, np.random.Generator], Arrays]
"""Function that moves floats by a fraction of their size, at random. Its arguments are the arrays, the fraction for the
state, the fraction for the batches, and the random generator."""


def _find_accepted_perturbation(run: Callable[[Arrays], NamedArrays], start: Arrays, step: float) -> Perturbation:
    """Return the function that perturbs as many inputs as `run` accepts: all floats, those with a fraction, or none.

    Some programs check their inputs: SciPy's `sosfilt` requires a column of ones. State and batches are both moved by
    `step`, a fraction of their size.
    """
    rng = np.random.default_rng(0)
    for perturb in (_perturb, partial(_perturb, keeps_whole_numbers=True)):
        if _attempt(partial(run, perturb(start, step, step, rng))):
            return perturb
    return _leave_unperturbed


def _leave_unperturbed(arrays: Arrays, _state_step: float, _step: float, _rng: np.random.Generator) -> Arrays:
    """Return the arrays as they are, for programs that accept no other inputs."""
    return arrays


def _perturb(
    arrays: Arrays, state_step: float, step: float, rng: np.random.Generator, *, keeps_whole_numbers: bool = False
) -> Arrays:
    """Move each float up or down at random, by a fraction of its size: `state_step` in the state, `step` in batches.

    At random, some move by only half of the fraction. With `keeps_whole_numbers`, floats without a fractional part are
    not moved; integers never are.
    """

    def perturb_array(array: Array, fraction: float) -> Array:
        """Return the array with each float moved by `fraction` of its size, or by half of the fraction."""
        if array.dtype.kind == "c":
            return np.asarray(perturb_array(array.real, fraction) + 1j * perturb_array(array.imag, fraction))
        if not is_float(array):
            return array
        # Steps have two sizes, so that two equal numbers may become unequal even if both are moved up.
        perturbed = array * (1 + fraction * rng.choice([-1.0, -0.5, 0.5, 1.0], array.shape))
        return np.where(array == np.rint(array), array, perturbed) if keeps_whole_numbers else perturbed

    return Arrays(
        state={name: perturb_array(array, state_step) for name, array in arrays.state.items()},
        batches=tuple({name: perturb_array(array, step) for name, array in batch.items()} for batch in arrays.batches),
    )


def _load(file: Path, known: Reference) -> Reference:
    """Return the reference that `_save` wrote; `known` has the fields that are not in the file."""
    properties = json.loads(file.with_suffix(".json").read_text())
    hidden_errors = properties["hidden_errors"]
    hidden_errors["outputs"] = tuple(hidden_errors["outputs"])  # JSON has lists only
    with np.load(file, allow_pickle=False) as archive:
        expected = {
            name: Expected(
                value=archive[f"value:{name}"],
                rounding_error=archive[f"scale:{name}"],  # documents call the rounding error a scale
                precision=known.precision,
                choices=Choices(
                    **numbers, positions=archive[f"positions:{name}"], values=archive[f"alternatives:{name}"]
                ),
            )
            for name, numbers in properties["choices"].items()
        }
    return replace(
        known,
        expected=expected,
        frameworks=tuple(properties["frameworks"]),
        leaves_state_unchanged=properties["leaves_state_unchanged"],
        counts_units=properties["counts_units"],
        raw=RawOutputs(
            {name: tuple(shape) for name, shape in properties["raw_shapes"].items()},
            frozenset(properties["raw_finite"]),
        ),
        hidden_errors=HiddenErrors(**hidden_errors),
    )


def _save(file: Path, reference: Reference) -> None:
    """Write the reference's arrays to the archive `file`, and its other properties to a JSON file next to it."""
    arrays: dict[str, Array] = {}
    choices = {}
    for name, expected in reference.expected.items():
        arrays |= {
            f"value:{name}": expected.value,
            f"scale:{name}": expected.rounding_error,
            f"positions:{name}": expected.choices.positions,
            f"alternatives:{name}": expected.choices.values,
        }
        choices[name] = {
            "runs": expected.choices.runs,
            "changed_once": expected.choices.changed_once,
            "typical_share": expected.choices.typical_share,
            "most_changed": expected.choices.most_changed,
            "farthest": expected.choices.farthest,
            "only_by_whole_numbers": expected.choices.only_by_whole_numbers,
        }
    properties = {
        "choices": choices,
        "frameworks": reference.frameworks,
        "leaves_state_unchanged": reference.leaves_state_unchanged,
        "counts_units": reference.counts_units,
        "raw_shapes": reference.raw.shapes,
        "raw_finite": sorted(reference.raw.finite),
        "hidden_errors": asdict(reference.hidden_errors),
    }
    # The archive comes last: where it exists, `reference_for` reads both files.
    file.with_suffix(".json").write_text(json.dumps(properties))
    partial_file = file.with_suffix(".partial.npz")
    save(partial_file, arrays)
    partial_file.replace(file)  # only a complete file gets the name

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
from accelbench_runner.judge.expected import Choices, Expected, Observed
from accelbench_runner.judge.hidden_errors import HiddenErrors, find_hidden_errors
from accelbench_runner.judge.layout import describe_layout
from accelbench_runner.judge.no_reference import RandomOutputsError
from accelbench_runner.judge.reference_program import ReferenceProgram, program_of, start_arrays
from accelbench_runner.outputs import as_real, save

RUNS = 8
"""Number of runs with moved inputs, and of runs in the policy's arithmetic. With four, 3 of 92 correct programs were
refused."""
RUNS_BY_SECONDS = ((1.0, RUNS), (5.0, 4))
"""Maximum number of runs of a reference that takes up to so many seconds; slower ones get `MINIMUM_RUNS`."""
MINIMUM_RUNS = 2
WIDENING = {4: 1.5, MINIMUM_RUNS: 2.5}
"""Factor of the scales by the number of runs, if there are fewer than `RUNS`: fewer moves show less of their range."""
FORMULA_RUNS = 4
"""The same for programs in float64, whose errors may be many tolerances."""
MAXIMUM_RERUN_DIFFERENCE = 1e-9
"""Maximum difference of two runs of the reference, relative to the array: sums may run in another order."""
FLOAT64_STEP_ULPS = 2.0**12
"""Number of ulp by which numbers are moved for float64; moves are divided by it. The reference itself rounds in
float64, which would hide the effect of one ulp. Outputs are still linear in so small a step."""


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
    """Hold the right outputs after some units of work, and how exactly correct programs return them."""

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
    """The form in which outputs are compared, and `expected` is; None if it is the one which they have."""
    raw: RawOutputs = field(default_factory=RawOutputs)
    """The reference's outputs before they had that form."""
    hidden_errors: HiddenErrors = field(default_factory=HiddenErrors)
    """Errors that the form hides."""

    def in_form(self, outputs: NamedArrays) -> NamedArrays:
        """Return a launch's outputs in the form in which they are compared.

        Raises IncomparableOutputsError if they cannot have it, or have NaN or infinity where the reference has none.
        """
        if self.form is None:
            return as_real(outputs)
        if outputs.keys() != self.raw.shapes.keys():
            raise IncomparableOutputsError(describe_layout(outputs, self.raw.shapes))
        try:
            compared = self.form.of(outputs)
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
    """Return the right outputs of `case` after `units` units of work; compute them once, then read `directory`.

    `unseen_seed` is the seed of other inputs to start from; None for the case's own. `runs` is that of `compute`.
    """
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    form = canonical_form(case, workload, parameters, unseen_seed)
    precision, measure = case.measurement.precision, workload.measure(parameters)
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
    framework_of_package = {package: framework.name for framework in frameworks.every() for package in framework.own}
    imported_before = sys.modules.keys() & framework_of_package.keys()
    start = start_arrays(case, workload, parameters, unseen_seed)
    raw_program = program_of(case, workload, parameters)
    program = raw_program if form is None else CanonicalProgram(raw_program, form)
    expected = compute(program, start, units, precision, runs)
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


def _add_raw_outputs(reference: Reference, form: CanonicalForm, outputs: NamedArrays, state: NamedArrays) -> Reference:
    """Return the reference with what its `outputs` show before `form` is applied to them.

    `state` is the initial state: a step that does nothing would return its arrays.
    """
    shapes = {name: np.shape(output) for name, output in outputs.items()}
    initial = {name: state[name] for name, shape in shapes.items() if name in state and np.shape(state[name]) == shape}
    outputs_without_work = _attempt(lambda: form.of({**outputs, **initial})) if initial else {}
    return replace(
        reference,
        raw=RawOutputs(shapes, frozenset(name for name, output in outputs.items() if np.isfinite(output).all())),
        hidden_errors=find_hidden_errors(outputs, form, reference.expected, reference.precision),
        leaves_state_unchanged=leaves_state_unchanged(outputs_without_work, reference.expected),
    )


def leaves_state_unchanged(state: NamedArrays, expected: Mapping[str, Expected]) -> bool:
    """Return True if arrays of the initial `state` are among the outputs, and all of them have their initial values."""
    names = [name for name, each in expected.items() if name in state and np.shape(state[name]) == each.value.shape]
    return bool(names) and all(_is_near(state[name], expected[name]) for name in names)


def counts_units(program: ReferenceProgram, start: Arrays, units: int, expected: Mapping[str, Expected]) -> bool:
    """Return True if half of the units give other outputs than all `units` of them, which give `expected`."""
    if units < 2:  # noqa: PLR2004 - one unit has no half
        return True
    with np.errstate(all="ignore"):
        halfway = _as_arrays(program.exact(start, units // 2))
    return not all(
        halfway[name].shape == each.value.shape and _is_near(halfway[name], each) for name, each in expected.items()
    )


def _is_near(output: Array, expected: Expected) -> bool:
    """Return True if each element is within its tolerance, or the output or the reference is not finite there."""
    with np.errstate(all="ignore"):
        error = np.abs(np.asarray(output).astype(np.float64) - expected.value.astype(np.float64))
        return bool(np.all((error <= expected.tolerance()) | ~np.isfinite(error)))


def compute(
    program: ReferenceProgram, start: Arrays, units: int, precision: Precision, runs: int = RUNS
) -> dict[str, Expected]:
    """Return the reference's outputs after `units` units of work, and how far roundings in `precision` move each.

    `start` must be rounded to `precision`. There are at most `runs` runs with moved inputs, and as many in the policy's
    arithmetic, half of them with noise in every operation. A slow reference runs less often, and its tolerances widen.
    """
    ulps = FLOAT64_STEP_ULPS if precision == "float64" else 1.0
    step = EPSILON[precision] * ulps  # inputs move by this fraction of their size
    rng = np.random.default_rng(0)  # a fixed seed, so that tolerances can be reproduced
    with np.errstate(all="ignore"):
        values, seconds = _time_exact(program, start, units)
        runs = min(runs, _affordable_runs(seconds))
        _check_repeatable(values, _as_arrays(program.exact(start, units)))
        observed = {name: Observed(value, precision) for name, value in values.items()}

        # The first kind of run: in the policy's type, from the given inputs and then from moved ones.
        is_rounded = _add_run(observed, _attempt(partial(program.rounded, start, units, precision)))
        move = _find_accepted_move(partial(program.exact, units=units), start, step)
        for _ in range(runs // 2 - 1 if is_rounded else 0):
            moved = round_arrays(move(start, step, step, rng), precision)
            _add_run(observed, _attempt(partial(program.rounded, moved, units, precision)))
            del moved  # so that only one is in memory
        _end_kind(observed)

        # The second kind: in float64, from moved inputs. Each unit of work rounds the state once; if no run in the
        # policy's type has shown what that does, the state moves further.
        state_step = step if is_rounded else step * float(np.sqrt(units))
        for _ in range(runs):
            _add_run(observed, program.exact(move(start, state_step, step, rng), units), ulps)
        _widen_for_sums(observed, program, start, units, step, ulps)
        _end_kind(observed)

        # The third kind: with noise in every operation.
        for index in range(runs // 2):
            moved = move(start, step, step, rng)
            outputs = _attempt(partial(program.noisy, moved, units, precision, FIRST_SALT * (2 * index + 1), ulps))
            _add_run(observed, outputs, ulps)
            del moved, outputs
        _end_kind(observed)
    return {name: each.expected(WIDENING.get(runs, 1.0)) for name, each in observed.items()}


def _time_exact(program: ReferenceProgram, start: Arrays, units: int) -> tuple[dict[str, Array], float]:
    """Return the outputs in float64, and the seconds of the run: wall time or CPU time, whichever is less.

    So the seconds depend neither on the machine's other load nor on the number of threads.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
    values = _as_arrays(program.exact(start, units))
    return values, min(time.perf_counter() - began, time.process_time() - cpu_began)


def _widen_for_sums(
    observed: Mapping[str, Observed], program: ReferenceProgram, start: Arrays, units: int, step: float, ulps: float
) -> None:
    """Run the reference on inputs that all grow by the fraction `step`, and widen the moves by what that shows.

    `ulps` is that fraction in units in the last place.
    """
    elements = sum(array.size for group in (start.state, *start.batches) for array in group.values())
    grown = map_arrays(start, lambda array: array * (1 + step) if array.dtype.kind in "fc" else array)
    for name, output in _as_arrays(_attempt(partial(program.exact, grown, units))).items():
        if output.shape == observed[name].value.shape and is_float(output):
            observed[name].add_terms(output, ulps, elements)


def _affordable_runs(seconds: float) -> int:
    """Return the number of runs of each kind for a reference that takes `seconds`."""
    return next((runs for limit, runs in RUNS_BY_SECONDS if seconds <= limit), MINIMUM_RUNS)


def _add_run(observed: Mapping[str, Observed], outputs: NamedArrays, ulps: float = 1.0) -> bool:
    """Add the outputs of a run that was disturbed by `ulps` units in the last place; return True if there are any."""
    for name, output in _as_arrays(outputs).items():
        # Moved inputs may select another number of elements; such outputs cannot be compared.
        if output.shape == observed[name].value.shape:
            observed[name].add(output, ulps)
    return bool(outputs)


def _end_kind(observed: Mapping[str, Observed]) -> None:
    """End the runs of one kind, so that their moves widen the tolerances."""
    for each in observed.values():
        each.end_kind()


def _as_arrays(outputs: NamedArrays) -> dict[str, Array]:
    """Return the outputs as arrays of real numbers."""
    return dict(as_real({name: np.asarray(value) for name, value in outputs.items()}))


def _attempt(run: Callable[[], NamedArrays]) -> NamedArrays:
    """Run the program in other arithmetic; return no outputs if it cannot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern arithmetic that the program's author did not choose
        try:
            return run()
        except Exception:  # noqa: BLE001 - the program was written for arrays of float64
            return {}


def _check_repeatable(values: NamedArrays, rerun_values: NamedArrays) -> None:
    """Raise RandomOutputsError if two runs from the same inputs differ: random numbers would widen the tolerance."""
    for name, value in values.items():
        difference = np.abs(np.asarray(rerun_values[name]).astype(np.float64) - value.astype(np.float64))
        if np.any(difference > MAXIMUM_RERUN_DIFFERENCE * root_mean_square(value)):
            raise RandomOutputsError(name)


Move = Callable[[Arrays, float, float, np.random.Generator], Arrays]
"""Moves the floats of arrays by fractions of their size: first that for the state, then that for the batches."""


def _find_accepted_move(run: Callable[[Arrays], NamedArrays], start: Arrays, step: float) -> Move:
    """Return how to move the inputs of a program: all numbers, only fractions, or none if it refuses moved numbers.

    Some programs check their inputs: SciPy's `sosfilt` requires a column of ones.
    """
    rng = np.random.default_rng(0)
    for move in (_move, partial(_move, keeps_whole_numbers=True)):
        if _attempt(partial(run, move(start, step, step, rng))):
            return move
    return lambda arrays, _state_step, _step, _rng: arrays  # moves nothing


def _move(
    arrays: Arrays, state_step: float, step: float, rng: np.random.Generator, *, keeps_whole_numbers: bool = False
) -> Arrays:
    """Move each float at random by up to the fraction `state_step` (in the state) or `step` (in batches) of its size.

    With `keeps_whole_numbers`, floats without a fractional part stay, as integers always do.
    """

    def move(array: Array, fraction: float) -> Array:
        if array.dtype.kind == "c":
            return np.asarray(move(array.real, fraction) + 1j * move(array.imag, fraction))
        if not is_float(array):
            return array
        # With two sizes of steps, equal numbers may become smaller or larger than each other.
        moved = array * (1 + fraction * rng.choice([-1.0, -0.5, 0.5, 1.0], array.shape))
        return np.where(array == np.rint(array), array, moved) if keeps_whole_numbers else moved

    return Arrays(
        state={name: move(array, state_step) for name, array in arrays.state.items()},
        batches=tuple({name: move(array, step) for name, array in batch.items()} for batch in arrays.batches),
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
                scale=archive[f"scale:{name}"],
                precision=known.precision,
                choices=Choices(
                    **counts, positions=archive[f"positions:{name}"], values=archive[f"alternatives:{name}"]
                ),
            )
            for name, counts in properties["choices"].items()
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
            f"scale:{name}": expected.scale,
            f"positions:{name}": expected.choices.positions,
            f"alternatives:{name}": expected.choices.values,
        }
        counts = asdict(expected.choices)
        choices[name] = {key: counts[key] for key in ("runs", "once", "share", "most", "farthest")}
    properties = {
        "choices": choices,
        "frameworks": reference.frameworks,
        "leaves_state_unchanged": reference.leaves_state_unchanged,
        "counts_units": reference.counts_units,
        "raw_shapes": reference.raw.shapes,
        "raw_finite": sorted(reference.raw.finite),
        "hidden_errors": asdict(reference.hidden_errors),
    }
    file.with_suffix(".json").write_text(json.dumps(properties))
    partial_file = file.with_suffix(".partial.npz")
    save(partial_file, arrays)
    partial_file.replace(file)  # only a complete file gets the name


def root_mean_square(value: Array) -> float:
    """Return the root mean square of the finite elements; 0 without any."""
    finite = value[np.isfinite(value)].astype(np.float64)
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0

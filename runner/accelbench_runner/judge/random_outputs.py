"""Compare the outputs of a workload that declares them random, `Measure.random`, instead of element by element."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.launch.fact import value_or_none
from accelbench.launch.record import LaunchRecord, ParityReading, UnseenReading
from accelbench.workload import NamedArrays
from accelbench_runner.judge.layout import describe_layout, mismatch, read_outputs
from accelbench_runner.judge.moments import RUNS, Distribution, choose_elements, compare_moments, estimate_distribution
from accelbench_runner.judge.no_reference import without_reference
from accelbench_runner.judge.reference_program import program_of, start_arrays
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import UNSEEN, as_real, save

ONLY_SHAPES = "the values are random, as the workload declares: only names, shapes and types are compared"


def declared_random_comparison(case: Case) -> str:
    """Return how outputs that the workload declares random are compared, `moments` or `shapes`; empty if none are."""
    try:
        workload = catalogue.find(case.workload)
        return workload.measure(catalogue.parse_parameters(workload, case.parameters)).random or ""
    except Exception:  # noqa: BLE001 - a workload author's code; the error is reported with the reference
        return ""


def read_random(request: JudgeRequest, launch: LaunchRecord, outputs: NamedArrays, units: int) -> ParityReading:
    """Compare a launch's random `outputs`, and its outputs on unseen inputs, with the reference's distributions."""
    try:
        expected = distributions_for(request.case, units, Path(request.directory))
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code
        return without_reference(request.case, request.launches, units, error)
    reading = _compare(request.case, as_real(outputs), expected, units)
    # Random outputs in float64 would show nothing more, so they are not compared, and the reading says so.
    in_float64 = mismatch(units, "random outputs show no more in float64").model_copy(update={"compared": False})
    reading = reading.model_copy(update={"formula": in_float64})
    dependence = value_or_none(launch.facts.dependence)
    if dependence is None or dependence.units is None:
        return reading
    unseen = _read_unseen(request, launch, dependence.units)
    return reading.model_copy(update={"unseen": unseen})


def _read_unseen(request: JudgeRequest, launch: LaunchRecord, units: int) -> UnseenReading:
    """Compare a launch's random outputs on unseen inputs with the reference's distribution for these inputs.

    `changes` of the result is True if that distribution differs from the one for the case's own inputs.
    """
    directory = Path(request.directory)
    try:
        original = distributions_for(request.case, units, directory)
        expected = distributions_for(request.case, units, directory, unseen_seed=request.unseen_seed)
        outputs = as_real(read_outputs(Path(request.outputs[f"{launch.round}/{launch.variant}"]), UNSEEN))
        reading = _compare(request.case, outputs, expected, units)
        changes = any(  # one draw on the case's own inputs stands for their distribution
            compare_moments(name, distribution.draws[0], expected[name]).ratio > 1
            for name, distribution in original.items()
            if distribution.shape == expected[name].shape  # moments of different shapes are not compared
        )
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code, the outputs a launch's
        # A mismatch fails, and nothing reads `changes` then.
        return UnseenReading(reading=mismatch(units, f"cannot be compared: {error!r}"), changes=True)
    return UnseenReading(reading=reading, changes=changes)


def _compare(case: Case, outputs: NamedArrays, expected: Mapping[str, Distribution], units: int) -> ParityReading:
    """Compare a launch's outputs with the reference's distribution of each output; describe the worst output."""
    problem = describe_layout(outputs, {name: distribution.shape for name, distribution in expected.items()})
    if problem:
        return mismatch(units, problem)
    for name, output in outputs.items():
        if not np.isfinite(np.asarray(output)).all():
            reading = mismatch(units, f"{name}: NaN or infinity")
            return reading.model_copy(update={"finite": False, "worst_array": name})
    workload = catalogue.find(case.workload)
    reading_of_shapes = ParityReading(
        units=units,
        finite=True,
        worst_ratio=0.0,
        worst_array="",
        detail=ONLY_SHAPES,
        compared=False,
        own_program="" if workload.has_reference() else case.baseline,
    )
    if declared_random_comparison(case) == "shapes":
        return reading_of_shapes
    comparisons = {name: compare_moments(name, outputs[name], distribution) for name, distribution in expected.items()}
    # Of outputs with the same ratio, one that cannot be compared is the worst.
    worst_name = max(comparisons, key=lambda name: (comparisons[name].ratio, not comparisons[name].compared))
    worst = comparisons[worst_name]
    detail = f"random outputs, compared by moments: {worst.detail}"
    if worst.ratio <= 1 and worst.compared:
        shift = max(distribution.detected_shift for distribution in expected.values())
        detail += f"; detects a shift by {shift:.2g} standard deviations"
    return reading_of_shapes.model_copy(
        update={
            "worst_ratio": worst.ratio,
            "worst_array": worst_name,
            "detail": detail,
            "compared": worst.compared,
            "elements": sum(np.size(output) for output in outputs.values()),
        }
    )


def distributions_for(
    case: Case, units: int, directory: Path, *, unseen_seed: int | None = None
) -> dict[str, Distribution]:
    """Return the distribution of each output of the reference after `units` units of work.

    The first call runs the reference and keeps its outputs in `directory`. `unseen_seed` is the seed of other inputs to
    start from; None for the case's own.
    """
    file = directory / f"random-{units}{'' if unseen_seed is None else '-unseen'}.npz"
    if not file.exists():
        save(file.with_suffix(".partial.npz"), _draw(case, units, unseen_seed))
        file.with_suffix(".partial.npz").replace(file)  # only a complete file gets the name
    with np.load(file, allow_pickle=False) as archive:
        names = [key.removeprefix("draws:") for key in archive.files if key.startswith("draws:")]
        shapes = {name: tuple(archive[f"shape:{name}"].tolist()) for name in names}
        return {name: estimate_distribution(archive[f"draws:{name}"], shapes[name]) for name in names}


def _draw(case: Case, units: int, unseen_seed: int | None) -> dict[str, np.ndarray]:
    """Run the reference `RUNS` times, and return the arrays to store for each output.

    `draws:NAME` has the compared elements of each run; `shape:NAME` is the shape of the whole output.
    """
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    start = start_arrays(case, workload, parameters, unseen_seed)
    program = program_of(case, workload, parameters)
    draws: dict[str, list[np.ndarray]] = {}
    shapes: dict[str, np.ndarray] = {}
    for _ in range(RUNS):
        outputs = as_real({name: np.asarray(value) for name, value in program.exact(start, units).items()})
        for name, output in outputs.items():
            draws.setdefault(name, []).append(choose_elements(output))
            shapes[f"shape:{name}"] = np.array(np.shape(output), dtype=np.int64)
    return {f"draws:{name}": np.array(rows) for name, rows in draws.items()} | shapes

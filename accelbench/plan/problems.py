"""What is wrong with a run that its schema cannot say: what only the workload that it names can know."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from accelbench import catalogue, frameworks, platforms, targets
from accelbench.api.case import ParameterValue
from accelbench.api.numbers import TOLD_BY_COMPILING
from accelbench.api.profiles import Profile
from accelbench.api.run import MAXIMUM_CASES, BenchmarkRun, SweepAxis, Variant
from accelbench.catalogue import observations, script, workload_checks
from accelbench.plan.cases import count_cases, plan_cases
from accelbench.problem import Problem, unknown
from accelbench.workload import ProtocolName, Workload


def check_run(run: BenchmarkRun) -> tuple[Problem, ...]:
    """Everything about the run's workload, parameters, variants and sweep that cannot be run, whole.

    Of a script that is not at hand nothing is known: its runner will refuse what it cannot run.
    """
    return tuple(_unknown_targets(run)) or _checked(run, _check_with)


def check_variants(run: BenchmarkRun) -> tuple[Problem, ...]:
    """What is wrong with each variant by itself: that can be told where the rest of the run breaks rules."""
    return _checked(run, _check_variants)


def _checked(run: BenchmarkRun, check: Callable[[BenchmarkRun, Workload], Iterable[Problem]]) -> tuple[Problem, ...]:
    """What `check` finds with the run's workload, or what is wrong with that itself."""
    reference = run.spec.workload
    if reference.script and script.path() is None:
        return ()
    try:
        workload = catalogue.find(reference.label)
    except catalogue.UnknownWorkloadError as error:
        return (Problem("spec.workload.script" if reference.script else "spec.workload.name", str(error)),)
    try:
        return tuple(check(run, workload))
    except Exception as error:
        if catalogue.is_built_in(workload.name):
            raise
        return (
            Problem(
                "spec.workload",
                f"{workload.name}: {workload_checks.invalid(error, workload_checks.file_of(type(workload)))}",
            ),
        )


def _unknown_targets(run: BenchmarkRun) -> Iterator[Problem]:
    for index, name in enumerate(run.spec.accelerator.targets or ()):
        try:
            targets.find(name)
        except targets.UnknownTargetError as error:
            yield Problem(f"spec.accelerator.targets[{index}]", str(error))


def check_targets(run: BenchmarkRun, profile: Profile) -> tuple[Problem, ...]:
    """What is wrong with what the run is to be compiled for; `run` has its profile's target."""
    precision, named = run.spec.measurement.precision, run.spec.accelerator.targets or ()
    lacking = (platforms.find(targets.find(name).platform).lacks.get(precision) for name in named)
    problems = [
        Problem("spec.measurement.precision", f"{precision} is {lacks}") for lacks in dict.fromkeys(lacking) if lacks
    ]
    if named and (profile.platform != "cpu" or profile.resource or profile.device_class):
        what = f"compiling needs no device, but profile {profile.name} has one; use a profile with platform: cpu"
        problems.append(Problem("spec.accelerator.profile", what))
    for index, expectation in enumerate(run.spec.expectations):
        where = f"spec.expectations[{index}]"
        if expectation.target is not None and expectation.target not in named:
            known = f"{unknown('target', expectation.target, named)}" if named else "the run has no compile target"
            problems.append(Problem(f"{where}.target", known))
        if named and expectation.subject not in TOLD_BY_COMPILING:
            offered = ", ".join(sorted(TOLD_BY_COMPILING))
            what = (
                f"{expectation.subject} is not known for a case that is compiled for a target; expect one of: {offered}"
            )
            problems.append(Problem(f"{where}.{'metric' if expectation.metric else 'observation'}", what))
    return tuple(problems)


def check_platform(run: BenchmarkRun, platform: platforms.Platform) -> tuple[Problem, ...]:
    """What the run asks for that its profile's kind of device does not have."""
    if run.spec.accelerator.targets:
        return ()
    precision, problems = run.spec.measurement.precision, []
    if precision in platform.lacks:
        problems.append(Problem("spec.measurement.precision", f"{precision} is {platform.lacks[precision]}"))
    for index, variant in enumerate(run.spec.variants):
        try:
            frameworks.find(variant.use.partition("/")[0]).backend(platform.name, platform.backends)
        except frameworks.DoesNotComputeThereError as error:
            problems.append(Problem(f"spec.variants[{index}].use", str(error)))
        except frameworks.UnknownFrameworkError:
            continue  # a script's, which its runner may know
    return tuple(problems)


def _check_with(run: BenchmarkRun, workload: Workload) -> Sequence[Problem]:
    """What the workload's own code has a say in."""
    reference = run.spec.workload
    parameters = Fields("parameter", workload.name, workload.Parameters)
    problems = list(parameters.check("spec.workload.parameters", reference.parameters))
    problems += _check_variants(run, workload)
    for index, axis in enumerate(run.spec.sweep):
        problems += _check_axis(f"spec.sweep[{index}]", parameters, axis)
    if not problems and count_cases(run) <= MAXIMUM_CASES:
        problems += _check_cases(run, workload)
    return problems


def _check_variants(run: BenchmarkRun, workload: Workload) -> Iterator[Problem]:
    for index, variant in enumerate(run.spec.variants):
        yield from _check_variant(f"spec.variants[{index}]", workload, variant)


def _check_axis(path: str, parameters: "Fields", axis: SweepAxis) -> Iterator[Problem]:
    if axis.name not in parameters.model.model_fields:
        yield Problem(f"{path}.name", parameters.unknown(axis.name))
        return
    for place, value in enumerate(axis.values):
        for problem in parameters.check(f"{path}.values[{place}]", {axis.name: value}):
            # A rule about several fields is left to the cases, which have them all.
            if problem.path.endswith(f".{axis.name}"):
                yield Problem(f"{path}.values[{place}]", problem.message)


def _check_variant(path: str, workload: Workload, variant: Variant) -> Iterator[Problem]:
    kind = workload.variants().get(variant.use)
    if kind is None:
        yield Problem(f"{path}.use", _refusal(workload, variant.use))
    else:
        yield from Fields("option", variant.use, catalogue.options_model(kind)).check(
            f"{path}.options", variant.options
        )


def _refusal(workload: Workload, use: str) -> str:
    framework, _, mode = use.partition("/")
    offered = workload.variants().values()
    modes = {kind.mode for kind in offered if kind.framework == framework}
    try:
        known = frameworks.find(framework).modes
    except frameworks.UnknownFrameworkError as error:
        return f"{use}: {error}"
    if mode in known or not modes:
        return f"{workload.name} cannot run as {use}; it offers {', '.join(kind.use for kind in offered)}"
    if not mode:
        uses = ", ".join(kind.use for kind in offered)
        return f"{use}: a variant is a framework and a mode; {workload.name} offers {uses}"
    return f"{use}: {unknown('mode', mode, modes)}"


def _check_cases(run: BenchmarkRun, workload: Workload) -> Iterator[Problem]:
    """What parameters can only be wrong about together, and what no case can be expected to show."""
    for case in plan_cases(run):
        try:
            parameters = catalogue.parse_parameters(workload, case.parameters)
        except ValidationError as error:
            path = "spec.sweep" if case.swept else "spec.workload.parameters"
            where = ", ".join(f"{name} = {value}" for name, value in case.parameters.items())
            yield from (Problem(path, f"{where}: {_reason(detail)}") for detail in error.errors())
            continue
        if case.accelerator.target is not None:
            continue
        if problems := tuple(_check_expectations(run, workload, workload.measure(parameters).protocol)):
            yield from problems
            return


def _check_expectations(run: BenchmarkRun, workload: Workload, protocol: ProtocolName) -> Iterator[Problem]:
    """Times are expected of what is timed, observations of what is observed, by a name that it has."""
    known = observations.names(workload)
    for index, expectation in enumerate(run.spec.expectations):
        path = f"spec.expectations[{index}]"
        if expectation.observation is None and protocol == "observe":
            offered = ", ".join(known)
            yield Problem(f"{path}.metric", f"{workload.name} is observed, not timed; expect an observation: {offered}")
        elif expectation.observation is not None and protocol != "observe":
            yield Problem(f"{path}.observation", f"{workload.name} is timed ({protocol}); expect a metric")
        elif expectation.observation is not None and expectation.observation not in known:
            yield Problem(f"{path}.observation", unknown("observation", expectation.observation, known))


BOUNDS = {
    "greater_than_equal": "is too small: at least {ge}",
    "greater_than": "is too small: more than {gt}",
    "less_than_equal": "is too large: at most {le}",
    "less_than": "is too large: less than {lt}",
}
"""By pydantic's type of error."""


@dataclass(frozen=True)
class Fields:
    """The parameters or options of something, and how to say what is wrong with values for them."""

    what: str
    """`parameter` or `option`."""
    owner: str
    model: type[BaseModel]

    def check(self, path: str, values: Mapping[str, ParameterValue]) -> Iterator[Problem]:
        """Every field that is wrong, at `path.FIELD`; a rule about several fields at `path` itself."""
        try:
            self.model.model_validate(dict(values))
        except ValidationError as error:
            for detail in error.errors():
                if detail["loc"]:
                    name = str(detail["loc"][0])
                    yield Problem(f"{path}.{name}", self._sentence(name, detail))
                else:
                    yield Problem(path, _reason(detail))

    def unknown(self, name: str) -> str:
        """That there is no such field, and the nearest that there is."""
        if not self.model.model_fields:
            return f"{self.owner} takes no {self.what}s"
        return unknown(self.what, name, self.model.model_fields)

    def _sentence(self, name: str, detail: ErrorDetails) -> str:
        value, kind = detail["input"], detail["type"]
        if kind == "extra_forbidden":
            return self.unknown(name)
        if kind == "literal_error":
            return unknown("value", str(value), map(str, get_args(self.model.model_fields[name].annotation)))
        if kind in BOUNDS:
            return f"{value} {BOUNDS[kind].format(**detail['ctx'])}"
        return f'"{value}": {_reason(detail)}'


def _reason(detail: ErrorDetails) -> str:
    """Pydantic's own sentence, without what it puts before one that a model raised."""
    sentence = detail["msg"].removeprefix("Value error, ")
    return sentence[:1].lower() + sentence[1:]

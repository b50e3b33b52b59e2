"""Check what a run's schema cannot: whether its workload, parameters, variants and sweep fit each other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from accelbench import catalogue, frameworks, platforms, targets
from accelbench.api.case import ParameterValue
from accelbench.api.number_registry import KNOWN_AFTER_COMPILING
from accelbench.api.profiles import Profile
from accelbench.api.run import MAXIMUM_CASES, BenchmarkRun, SweepAxis, Variant
from accelbench.catalogue import observations, script, workload_checks
from accelbench.plan.cases import count_cases, plan_cases
from accelbench.problem import Problem, describe_unknown
from accelbench.workload import ProtocolName, Workload


def check_run(run: BenchmarkRun) -> tuple[Problem, ...]:
    """Return what in the run's workload, parameters, variants and sweep cannot be run.

    If a compile target is unknown, only that is returned. A script that is not on this machine is not checked here: its
    runner does that.
    """
    return tuple(_unknown_targets(run)) or _check_workload(run, _check_spec)


def check_variants(run: BenchmarkRun) -> tuple[Problem, ...]:
    """Check each variant by itself, which is possible even if the rest of the run is invalid."""
    return _check_workload(run, _check_variants)


def _check_workload(
    run: BenchmarkRun, check: Callable[[BenchmarkRun, Workload], Iterable[Problem]]
) -> tuple[Problem, ...]:
    """Run `check` with the run's workload, or return what is wrong with the workload itself.

    If a user's code raises, that is the only problem. A script that is not on this machine has none.
    """
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
    """Yield a problem for each compile target that does not exist."""
    for index, name in enumerate(run.spec.accelerator.targets or ()):
        try:
            targets.find(name)
        except targets.UnknownTargetError as error:
            yield Problem(f"spec.accelerator.targets[{index}]", str(error))


def check_targets(run: BenchmarkRun, profile: Profile) -> tuple[Problem, ...]:
    """Check precision, profile and expectations of a run against its compile targets.

    `run` has the target of its profile already, by `with_target`.
    """
    precision, names = run.spec.measurement.precision, run.spec.accelerator.targets or ()
    reasons = (platforms.find(targets.find(name).platform).lacks.get(precision) for name in names)
    problems = [
        Problem("spec.measurement.precision", f"{precision} is {reason}") for reason in dict.fromkeys(reasons) if reason
    ]
    if names and (profile.platform != "cpu" or profile.resource or profile.device_class):
        advice = f"compiling needs no device, but profile {profile.name} has one; use a profile with platform: cpu"
        problems.append(Problem("spec.accelerator.profile", advice))
    for index, expectation in enumerate(run.spec.expectations):
        where = f"spec.expectations[{index}]"
        if expectation.target is not None and expectation.target not in names:
            message = (
                describe_unknown("target", expectation.target, names) if names else "the run has no compile target"
            )
            problems.append(Problem(f"{where}.target", message))
        if names and expectation.subject not in KNOWN_AFTER_COMPILING:
            offered = ", ".join(sorted(KNOWN_AFTER_COMPILING))
            message = (
                f"{expectation.subject} is not known for a case that is compiled for a target; expect one of: {offered}"
            )
            problems.append(Problem(f"{where}.{'metric' if expectation.metric else 'observation'}", message))
    return tuple(problems)


def check_platform(run: BenchmarkRun, platform: platforms.Platform) -> tuple[Problem, ...]:
    """Check the run's precision and variants against what its profile's platform supports.

    Nothing is checked if the run has compile targets, and no variant whose framework is unknown here.
    """
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
            continue  # a framework of a script, which its runner may know
    return tuple(problems)


def _check_spec(run: BenchmarkRun, workload: Workload) -> Sequence[Problem]:
    """Run the checks that need the workload's code."""
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
    """Yield the problems of each variant."""
    for index, variant in enumerate(run.spec.variants):
        yield from _check_variant(f"spec.variants[{index}]", workload, variant)


def _check_axis(path: str, parameters: "Fields", axis: SweepAxis) -> Iterator[Problem]:
    """Check an axis' name and each of its values by itself."""
    if axis.name not in parameters.model.model_fields:
        yield Problem(f"{path}.name", parameters.unknown(axis.name))
        return
    for index, value in enumerate(axis.values):
        for problem in parameters.check(f"{path}.values[{index}]", {axis.name: value}):
            # A rule over several fields is checked on the cases, which have values for all of them.
            if problem.path.endswith(f".{axis.name}"):
                yield Problem(f"{path}.values[{index}]", problem.message)


def _check_variant(path: str, workload: Workload, variant: Variant) -> Iterator[Problem]:
    """Check that the workload offers the variant, and that its options are valid."""
    kind = workload.variants().get(variant.use)
    if kind is None:
        yield Problem(f"{path}.use", _why_no_variant(workload, variant.use))
    else:
        yield from Fields("option", variant.use, catalogue.options_model(kind)).check(
            f"{path}.options", variant.options
        )


def _why_no_variant(workload: Workload, use: str) -> str:
    """Describe why the workload has no variant `use`: unknown framework, unknown or missing mode, or not offered."""
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
    return f"{use}: {describe_unknown('mode', mode, modes)}"


def _check_cases(run: BenchmarkRun, workload: Workload) -> Iterator[Problem]:
    """Check each case's parameters together, and the run's expectations against its protocol.

    Expectations are checked up to the first case that cannot meet one, and never for a compile target.
    """
    for case in plan_cases(run):
        try:
            parameters = catalogue.parse_parameters(workload, case.parameters)
        except ValidationError as error:
            path = "spec.sweep" if case.swept else "spec.workload.parameters"
            where = ", ".join(f"{name} = {value}" for name, value in case.parameters.items())
            yield from (Problem(path, f"{where}: {_pydantic_message(detail)}") for detail in error.errors())
            continue
        if case.accelerator.target is not None:
            continue
        if problems := tuple(_check_expectations(run, workload, workload.measure(parameters).protocol)):
            yield from problems
            return


def _check_expectations(run: BenchmarkRun, workload: Workload, protocol: ProtocolName) -> Iterator[Problem]:
    """Yield expectations of a metric where nothing is timed, and of observations that are not made."""
    known = observations.names(workload)
    for index, expectation in enumerate(run.spec.expectations):
        path = f"spec.expectations[{index}]"
        if expectation.observation is None and protocol == "observe":
            offered = ", ".join(known)
            yield Problem(f"{path}.metric", f"{workload.name} is observed, not timed; expect an observation: {offered}")
        elif expectation.observation is not None and protocol != "observe":
            yield Problem(f"{path}.observation", f"{workload.name} is timed ({protocol}); expect a metric")
        elif expectation.observation is not None and expectation.observation not in known:
            yield Problem(f"{path}.observation", describe_unknown("observation", expectation.observation, known))


BOUNDS = {
    "greater_than_equal": "is too small: at least {ge}",
    "greater_than": "is too small: more than {gt}",
    "less_than_equal": "is too large: at most {le}",
    "less_than": "is too large: less than {lt}",
}
"""Sentences about a violated bound, by pydantic's type of error."""


@dataclass(frozen=True)
class Fields:
    """Check the parameters or options of a workload, and describe what is wrong with their values."""

    kind: str
    """`parameter` or `option`."""
    owner: str
    model: type[BaseModel]

    def check(self, path: str, values: Mapping[str, ParameterValue]) -> Iterator[Problem]:
        """Yield a problem for each invalid field at `path.FIELD`, and for a rule over several fields at `path`."""
        try:
            self.model.model_validate(dict(values))
        except ValidationError as error:
            for detail in error.errors():
                if detail["loc"]:
                    name = str(detail["loc"][0])
                    yield Problem(f"{path}.{name}", self._sentence(name, detail))
                else:
                    yield Problem(path, _pydantic_message(detail))

    def unknown(self, name: str) -> str:
        """Describe an unknown field, with the nearest known name."""
        if not self.model.model_fields:
            return f"{self.owner} takes no {self.kind}s"
        return describe_unknown(self.kind, name, self.model.model_fields)

    def _sentence(self, name: str, detail: ErrorDetails) -> str:
        """Describe what pydantic found wrong with the field `name`."""
        value, error = detail["input"], detail["type"]
        if error == "extra_forbidden":
            return self.unknown(name)
        if error == "literal_error":
            return describe_unknown("value", str(value), map(str, get_args(self.model.model_fields[name].annotation)))
        if error in BOUNDS:
            return f"{value} {BOUNDS[error].format(**detail['ctx'])}"
        return f'"{value}": {_pydantic_message(detail)}'


def _pydantic_message(detail: ErrorDetails) -> str:
    """Return pydantic's message with a small first letter, without its prefix for a validator's error."""
    sentence = detail["msg"].removeprefix("Value error, ")
    return sentence[:1].lower() + sentence[1:]

"""Check what a run's schema cannot check: whether its workload, parameters, variants and sweep fit each other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json

from accelbench import catalogue, frameworks, platforms, targets
from accelbench.api.case import ParameterValue
from accelbench.api.number_registry import KNOWN_AFTER_COMPILING
from accelbench.api.profiles import Profile
from accelbench.api.rules import ENVIRONMENTS_ON_LAPTOPS, LAPTOP_ONLY
from accelbench.api.run import MAXIMUM_CASES, MAXIMUM_SPEC_BYTES, BenchmarkRun, Expectation, SweepAxis, Variant
from accelbench.catalogue import observations, script, workload_checks
from accelbench.plan.cases import case_indices, count_cases, plan_case
from accelbench.problem import Problem, describe_unknown
from accelbench.workload import ProtocolName, Workload


def check_run(run: BenchmarkRun) -> tuple[Problem, ...]:
    """Return the problems of a run's spec; if its size, targets or environments have problems, only these.

    A script that is not on this machine is checked by the runner, not here.
    """
    first_problems = (*_size_problems(run), *_unknown_targets(run), *_environment_problems(run))
    if first_problems:
        return first_problems
    return _check_workload(run, _check_spec)


def laptop_only_problems(run: BenchmarkRun) -> Iterator[Problem]:
    """Yield a problem for each field that is not possible on a cluster, because it refers to the user's machine."""
    script_reference = run.spec.workload.script
    if script_reference and script_reference.file:  # otherwise the script is in a ConfigMap
        yield Problem("spec.workload.script.file", LAPTOP_ONLY.message)
    if run.spec.environments:
        yield Problem("spec.environments", ENVIRONMENTS_ON_LAPTOPS.message)


def check_variants(run: BenchmarkRun) -> tuple[Problem, ...]:
    """Return the problems of a run's variants; do not check its parameters, sweep and expectations."""
    return _check_workload(run, _check_variants)


def _check_workload(
    run: BenchmarkRun, check: Callable[[BenchmarkRun, Workload], Iterable[Problem]]
) -> tuple[Problem, ...]:
    """Return the problems that `check` finds in the run and its workload; none if the script is not on this machine.

    An exception in a user's workload becomes a problem. An exception in a built-in workload is a bug, and is raised.
    """
    workload_reference = run.spec.workload
    if workload_reference.script and script.path() is None:
        return ()
    try:
        workload = catalogue.find(workload_reference.label)
    except catalogue.UnknownWorkloadError as error:
        path = "spec.workload.script" if workload_reference.script else "spec.workload.name"
        return (Problem(path, str(error)),)
    try:
        return tuple(check(run, workload))
    except Exception as error:
        if catalogue.is_built_in(workload.name):
            raise
        file = workload_checks.file_of(type(workload))
        reason = workload_checks.to_invalid_workload_error(error, file)
        return (Problem("spec.workload", f"{workload.name}: {reason}"),)


def _size_problems(run: BenchmarkRun) -> Iterator[Problem]:
    """Yield a problem that names the largest field if the spec is too large."""
    size = len(run.spec.to_json().encode())
    if size <= MAXIMUM_SPEC_BYTES:
        return
    fields = run.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    sizes = {name: len(to_json(value)) for name, value in fields.items()}
    largest = max(sizes, key=sizes.__getitem__)
    yield Problem(
        f"spec.{largest}",
        f"{_in_kib(sizes[largest])}, and the whole spec has {_in_kib(size)} of JSON, at most "
        f"{_in_kib(MAXIMUM_SPEC_BYTES)}; shorten it, or mount a ConfigMap with long texts and let the workload read it",
    )


def _in_kib(size: int) -> str:
    """Return a number of bytes in KiB, rounded up."""
    return f"{-(-size // 1024)} KiB"


def _unknown_targets(run: BenchmarkRun) -> Iterator[Problem]:
    """Yield a problem for each compile target that does not exist."""
    for index, name in enumerate(run.spec.accelerator.targets or ()):
        try:
            targets.find(name)
        except targets.UnknownTargetError as error:
            yield Problem(f"spec.accelerator.targets[{index}]", str(error))


def _environment_problems(run: BenchmarkRun) -> Iterator[Problem]:
    """Yield a problem for each environment that no variant runs in, and one if targets are given too."""
    used = {variant.environment for variant in run.spec.variants}
    for index, environment in enumerate(run.spec.environments):
        if environment.name not in used:
            message = f"no variant runs in {environment.name}; name it in a variant's environment, or remove it"
            yield Problem(f"spec.environments[{index}]", message)
    if run.spec.environments and run.spec.accelerator.targets:
        message = "compiling for targets works only in accelbench's own environment; remove the environments"
        yield Problem("spec.environments", message)


def check_targets(run: BenchmarkRun, profile: Profile) -> tuple[Problem, ...]:
    """Return the problems of a run's precision, profile and expectations with its compile targets.

    The run must already contain the compile target of the profile, which `accelbench.plan.cases.with_target` adds.
    """
    precision = run.spec.measurement.precision
    target_names = run.spec.accelerator.targets or ()
    target_platforms = [platforms.find(targets.find(name).platform) for name in target_names]
    # Reasons why platforms lack the precision, each once; None for a platform that has it.
    reasons = dict.fromkeys(platform.lacks.get(precision) for platform in target_platforms)
    problems = [Problem("spec.measurement.precision", f"{precision} is {reason}") for reason in reasons if reason]
    profile_has_device = profile.platform != "cpu" or profile.resource or profile.device_class
    if target_names and profile_has_device:
        advice = f"compiling needs no device, but profile {profile.name} has one; use a profile with platform: cpu"
        problems.append(Problem("spec.accelerator.profile", advice))
    for index, expectation in enumerate(run.spec.expectations):
        problems += _check_expectation_of_targets(f"spec.expectations[{index}]", expectation, target_names)
    return tuple(problems)


def _check_expectation_of_targets(
    path: str, expectation: Expectation, target_names: Sequence[str]
) -> Iterator[Problem]:
    """Yield the problems of an expectation in a run with these compile targets, which may be none.

    `path` leads to the expectation in the manifest.
    """
    if expectation.target is not None and expectation.target not in target_names:
        message = "the run has no compile target"
        if target_names:
            message = describe_unknown("target", expectation.target, target_names)
        yield Problem(f"{path}.target", message)
    if target_names and expectation.subject not in KNOWN_AFTER_COMPILING:
        known_subjects = ", ".join(sorted(KNOWN_AFTER_COMPILING))
        field = "metric" if expectation.metric else "observation"
        yield Problem(
            f"{path}.{field}",
            f"{expectation.subject} is not known for a case that is compiled for a target; "
            f"expect one of: {known_subjects}",
        )


def check_platform(run: BenchmarkRun, platform: platforms.Platform) -> tuple[Problem, ...]:
    """Return a problem for each setting that the profile's platform does not support; none if the run has targets."""
    if run.spec.accelerator.targets:
        return ()  # `check_targets` checks the platforms of the targets instead
    precision = run.spec.measurement.precision
    problems = []
    if precision in platform.lacks:
        problems.append(Problem("spec.measurement.precision", f"{precision} is {platform.lacks[precision]}"))
    for index, variant in enumerate(run.spec.variants):
        try:
            frameworks.find(frameworks.name_of(variant.use)).backend(platform.name, platform.backends)
        except frameworks.UnsupportedPlatformError as error:
            problems.append(Problem(f"spec.variants[{index}].use", str(error)))
        except frameworks.UnknownFrameworkError:
            continue  # a framework of a script, which its runner may know
    return (*problems, *_check_workload(run, partial(_unsupported_options, platform=platform)))


def _unsupported_options(run: BenchmarkRun, workload: Workload, platform: platforms.Platform) -> Iterator[Problem]:
    """Yield a problem for each variant with an option that the platform does not support; skip invalid variants."""
    variant_kinds = workload.variants()
    for index, variant in enumerate(run.spec.variants):
        with suppress(KeyError, ValidationError):  # `check_run` reports these
            options = catalogue.parse_options(variant_kinds[variant.use], variant.options)
            if reason := options.unsupported(platform.name):
                yield Problem(f"spec.variants[{index}].options", reason)


def _check_spec(run: BenchmarkRun, workload: Workload) -> Sequence[Problem]:
    """Return the problems of the run's parameters, variants and sweep; if there are none, those of its cases.

    Those of cases are parameters that do not fit each other, the protocol, and expectations.
    """
    parameters = Fields("parameter", workload.name, workload.Parameters)
    problems = list(parameters.check("spec.workload.parameters", run.spec.workload.parameters))
    problems += _check_variants(run, workload)
    for index, axis in enumerate(run.spec.sweep):
        problems += _check_axis(f"spec.sweep[{index}]", parameters, axis)
    # If there are too many cases, `case_indices` reports that when they are planned.
    if not problems and count_cases(run) <= MAXIMUM_CASES:
        problems += _check_cases(run, workload)
    return problems


def _check_variants(run: BenchmarkRun, workload: Workload) -> Iterator[Problem]:
    """Yield a problem for each variant that the workload does not have, and for each invalid option."""
    for index, variant in enumerate(run.spec.variants):
        yield from _check_variant(f"spec.variants[{index}]", workload, variant)


def _check_axis(path: str, parameters: "Fields", axis: SweepAxis) -> Iterator[Problem]:
    """Yield the problems of one axis of a sweep: an unknown parameter or invalid values.

    `path` leads to the axis in the manifest.
    """
    if axis.name not in parameters.model.model_fields:
        yield Problem(f"{path}.name", parameters.describe_unknown_field(axis.name))
        return
    for index, value in enumerate(axis.values):
        value_path = f"{path}.values[{index}]"
        for problem in parameters.check(value_path, {axis.name: value}):
            # Ignore problems with several parameters: they are found later, when the values of a case are complete.
            is_of_this_field = problem.path.endswith(f".{axis.name}")
            if is_of_this_field:
                yield Problem(value_path, problem.message)


def _check_variant(path: str, workload: Workload, variant: Variant) -> Iterator[Problem]:
    """Yield a problem if the workload does not have the variant, else one for each invalid option of the variant."""
    variant_kind = workload.variants().get(variant.use)
    if variant_kind is None:
        yield Problem(f"{path}.use", _why_no_variant(workload, variant.use))
    else:
        options = Fields("option", variant.use, catalogue.options_model(variant_kind))
        yield from options.check(f"{path}.options", variant.options)


def _why_no_variant(workload: Workload, use: str) -> str:
    """Describe why the workload has no variant `use`, such as `jax/jit`: wrong framework, mode or combination."""
    program, _, mode = use.partition("/")  # the program is a framework, or a script's function such as `jax_scan`
    uses = ", ".join(workload.variants())
    offered_modes = {variant.mode for name, variant in workload.variants().items() if name.startswith(f"{program}/")}
    try:
        known_modes = frameworks.find(frameworks.name_of(use)).modes
    except frameworks.UnknownFrameworkError as error:
        return f"{use}: {error}"
    # The mode is right, but not for this workload; or there is no other mode to suggest.
    if mode in known_modes or not offered_modes:
        return f"{workload.name} cannot run as {use}; it offers {uses}"
    if not mode:
        return f"{use}: a variant is a framework and a mode; {workload.name} offers {uses}"
    return f"{use}: {describe_unknown('mode', mode, offered_modes)}"


def _check_cases(run: BenchmarkRun, workload: Workload) -> Iterator[Problem]:
    """Yield the problems of each case's parameters and expectations.

    The check ends at the first case with a problem of its protocol or expectations, which other cases would repeat.
    """
    for index in case_indices(run):
        case = plan_case(run, index)
        try:
            parameters = catalogue.parse_parameters(workload, case.parameters)
        except ValidationError as error:
            path = "spec.sweep" if case.swept else "spec.workload.parameters"
            values = ", ".join(f"{name} = {value}" for name, value in case.parameters.items())
            for detail in error.errors():
                yield Problem(path, f"{values}: {_pydantic_message(detail)}")
            continue
        if case.accelerator.target is not None:
            continue  # it is only compiled, so it has no protocol; `check_targets` checks the expectations
        try:
            protocol = catalogue.measure_of(workload, parameters, case.measurement.protocol).protocol
        except ValueError as error:
            yield Problem("spec.measurement.protocol", str(error))
            return
        problems = tuple(_check_expectations(run, workload, protocol))
        if problems:
            yield from problems
            return


def _check_expectations(run: BenchmarkRun, workload: Workload, protocol: ProtocolName) -> Iterator[Problem]:
    """Yield a problem for each expectation that no case of this protocol can meet or miss.

    A timed case has only metrics. A case of the protocol `observe` has only observations.
    """
    known_observations = observations.names(workload)
    is_observed = protocol == "observe"
    for index, expectation in enumerate(run.spec.expectations):
        path = f"spec.expectations[{index}]"
        if expectation.observation is None:
            if is_observed:
                offered = ", ".join(known_observations)
                message = f"{workload.name} is observed, not timed; expect an observation: {offered}"
                yield Problem(f"{path}.metric", message)
        elif not is_observed:
            yield Problem(f"{path}.observation", f"{workload.name} is timed ({protocol}); expect a metric")
        elif expectation.observation not in known_observations:
            message = describe_unknown("observation", expectation.observation, known_observations)
            yield Problem(f"{path}.observation", message)


BOUNDS = {
    "greater_than_equal": "is too small: at least {ge}",
    "greater_than": "is too small: more than {gt}",
    "less_than_equal": "is too large: at most {le}",
    "less_than": "is too large: less than {lt}",
}
"""Messages for a value outside its bounds, by pydantic's type of error; pydantic has the bound's value."""


@dataclass(frozen=True)
class Fields:
    """Check the values of parameters or options, and describe what is wrong with them."""

    kind: str
    """`parameter` or `option`, for messages."""
    owner: str
    """Name of the workload that has the parameters, or of the variant that has the options."""
    model: type[BaseModel]
    """Model of all parameters or options."""

    def check(self, path: str, values: Mapping[str, ParameterValue]) -> Iterator[Problem]:
        """Yield a problem for each invalid value, and for each violated rule on several values.

        `path` leads to `values` in the manifest. The problem of a value has the path `PATH.NAME`, and the problem of a
        rule `PATH`.
        """
        try:
            self.model.model_validate(dict(values))
        except ValidationError as error:
            for detail in error.errors():
                if detail["loc"]:
                    name = str(detail["loc"][0])
                    yield Problem(f"{path}.{name}", self._describe_error(name, detail))
                else:
                    yield Problem(path, _pydantic_message(detail))

    def describe_unknown_field(self, name: str) -> str:
        """Return a message about a parameter or option that does not exist, with the most similar known name."""
        if not self.model.model_fields:
            return f"{self.owner} takes no {self.kind}s"
        return describe_unknown(self.kind, name, self.model.model_fields)

    def _describe_error(self, name: str, detail: ErrorDetails) -> str:
        """Describe pydantic's error in the field `name`, such as `0 is too small: at least 1`."""
        value, error_type = detail["input"], detail["type"]
        if error_type == "extra_forbidden":
            return self.describe_unknown_field(name)
        if error_type == "literal_error":
            allowed_values = get_args(self.model.model_fields[name].annotation)
            return describe_unknown("value", str(value), map(str, allowed_values))
        if error_type in BOUNDS:
            return f"{value} {BOUNDS[error_type].format(**detail['ctx'])}"
        return f'"{value}": {_pydantic_message(detail)}'


def _pydantic_message(detail: ErrorDetails) -> str:
    """Return pydantic's message without its prefix `Value error, `, starting with a lower-case letter."""
    message = detail["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]

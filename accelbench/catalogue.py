"""Finds workloads, and says what is wrong with a run that names them: what only the catalogue can know.

Built-in workloads are the modules of `accelbench.workloads`, one each, found by file name: `matmul_chain.py` is
`matmul-chain`; a name with an underscore before it is no workload, but what several have in common. Others come from
entry points of the group `accelbench.workloads`, whose name is the workload's; one more may be a user's script
(`accelbench.script`).
Nothing is imported before it is asked for, and no workload imports numpy or a framework at import time.
"""

import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from accelbench import observations, script, usable, workloads
from accelbench.api.case import ParameterValue
from accelbench.api.run import MAXIMUM_CASES, BenchmarkRun, SweepAxis, Variant
from accelbench.modes import MODES, options_model
from accelbench.plan.cases import count_cases, plan_cases
from accelbench.problem import Problem, unknown
from accelbench.workload import ProtocolName, VariantKind, Workload, WorkloadParameters

GROUP = "accelbench.workloads"


class UnknownWorkloadError(LookupError):
    """No workload has this name, or what has it is none; the message has the nearest, or says what is wrong."""


@cache
def _built_in() -> frozenset[str]:
    modules = (module.name for module in pkgutil.iter_modules(workloads.__path__))
    return frozenset(name.replace("_", "-") for name in modules if not name.startswith("_"))


@cache
def _installed() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """Every workload's name, sorted; nothing is imported."""
    return tuple(sorted(_built_in() | _installed().keys()))


def find(name: str) -> Workload:
    """The workload of that name; raises UnknownWorkloadError.

    A script comes before an installed package's workload of its name, so that one can be worked on; not before ours.
    """
    file = script.path()
    if file is None or script.name_of(file.name) != name:
        return _find(name)
    if name in _built_in():
        raise UnknownWorkloadError(f"{file.name}: accelbench has a workload {name}; give the script another name")
    try:
        return script.load(file)
    except usable.InvalidWorkloadError as error:
        raise UnknownWorkloadError(str(error)) from error


@cache
def _find(name: str) -> Workload:
    if name in _built_in():
        module = importlib.import_module(f"{workloads.__name__}.{name.replace('-', '_')}")
        return next(_defined_in(module))()
    if name in _installed():
        return _from_package(_installed()[name])
    raise UnknownWorkloadError(unknown("workload", name, names()))


def _from_package(point: EntryPoint) -> Workload:
    """Whatever is wrong with somebody's package is said with its name, and is no trouble for the other workloads."""
    try:
        return _loaded(point)
    except usable.InvalidWorkloadError as error:
        package = point.dist.name if point.dist else point.module
        raise UnknownWorkloadError(f"workload {point.name} of package {package} ({point.value}): {error}") from error


def _loaded(point: EntryPoint) -> Workload:
    try:
        kind = point.load()
    except usable.RAISED as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if "importlib" in last:  # nothing of the package's own was reached
            raise usable.InvalidWorkloadError(usable.what(error)) from error
        raise usable.invalid(error, Path(last)) from error
    if not (inspect.isclass(kind) and issubclass(kind, Workload)):
        raise usable.InvalidWorkloadError("this is no class that inherits accelbench.workload.Workload")
    called = getattr(kind, "name", None)
    if called != point.name:
        raise usable.InvalidWorkloadError(f'the name of class {kind.__name__} is "{called}", not the entry point\'s')
    return usable.made(kind)


def _defined_in(module: Any) -> Iterator[type[Workload]]:
    for member in vars(module).values():
        if inspect.isclass(member) and issubclass(member, Workload) and member.__module__ == module.__name__:
            yield member


def parse_parameters(workload: Workload, values: Mapping[str, ParameterValue]) -> Any:
    """The workload's own `Parameters`, defaults filled in; raises pydantic.ValidationError."""
    return workload.Parameters.model_validate(dict(values))


def parse_options(kind: VariantKind, values: Mapping[str, ParameterValue]) -> WorkloadParameters:
    """The options of the variant's mode, defaults filled in; raises pydantic.ValidationError."""
    return options_model(kind).model_validate(dict(values))


def check_run(run: BenchmarkRun) -> tuple[Problem, ...]:
    """Everything about the run's workload, parameters, variants and sweep that cannot be run, whole.

    Of a script that is not at hand nothing is known: its runner will refuse what it cannot run.
    """
    reference = run.spec.workload
    if reference.script and script.path() is None:
        return ()
    try:
        workload = find(reference.label)
    except UnknownWorkloadError as error:
        return (Problem("spec.workload.script" if reference.script else "spec.workload.name", str(error)),)
    try:
        return tuple(_check_with(run, workload))
    except Exception as error:
        if workload.name in _built_in():
            raise
        return (Problem("spec.workload", f"{workload.name}: {usable.invalid(error, usable.file_of(type(workload)))}"),)


def _check_with(run: BenchmarkRun, workload: Workload) -> Sequence[Problem]:
    """What the workload's own code has a say in."""
    reference = run.spec.workload
    parameters = Fields("parameter", workload.name, workload.Parameters)
    problems = list(parameters.check("spec.workload.parameters", reference.parameters))
    for index, variant in enumerate(run.spec.variants):
        problems += _check_variant(f"spec.variants[{index}]", workload, variant)
    for index, axis in enumerate(run.spec.sweep):
        problems += _check_axis(f"spec.sweep[{index}]", parameters, axis)
    if not problems and count_cases(run) <= MAXIMUM_CASES:
        problems += _check_cases(run, workload)
    return problems


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
        yield from Fields("option", variant.use, options_model(kind)).check(f"{path}.options", variant.options)


def _refusal(workload: Workload, use: str) -> str:
    framework, _, mode = use.partition("/")
    offered = workload.variants().values()
    modes = {kind.mode for kind in offered if kind.framework == framework}
    if framework not in MODES:
        return f"{use}: {unknown('framework', framework, MODES)}"
    if mode in MODES[framework] or not modes:
        return f"{workload.name} makes no sense as {use}; it offers {', '.join(kind.use for kind in offered)}"
    return f"{use}: {unknown('mode', mode, modes)}"


def _check_cases(run: BenchmarkRun, workload: Workload) -> Iterator[Problem]:
    """What parameters can only be wrong about together, and what no case can be expected to show."""
    for case in plan_cases(run):
        try:
            parameters = parse_parameters(workload, case.parameters)
        except ValidationError as error:
            path = "spec.sweep" if case.swept else "spec.workload.parameters"
            where = ", ".join(f"{name} = {value}" for name, value in case.parameters.items())
            yield from (Problem(path, f"{where}: {_reason(detail)}") for detail in error.errors())
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
    model: type[WorkloadParameters]

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

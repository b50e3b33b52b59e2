"""Finds workloads by name.

Built-in workloads are the modules of `accelbench.workloads`, one each, found by file name: `matmul_chain.py` is
`matmul-chain`; a name with an underscore before it is no workload, but what several have in common. Others come from
entry points of the group `accelbench.workloads`, whose name is the workload's; one more may be a user's script
(`accelbench.catalogue.script`).
Nothing is imported before it is asked for, and no workload imports numpy or a framework at import time.
"""

import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from accelbench import frameworks, workloads
from accelbench.api.case import ParameterValue, name_of_file
from accelbench.catalogue import script, workload_checks
from accelbench.catalogue.modules import kind_in
from accelbench.problem import unknown
from accelbench.workload import VariantKind, Workload

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


def is_built_in(name: str) -> bool:
    """Whether accelbench itself has the workload."""
    return name in _built_in()


def names() -> tuple[str, ...]:
    """Every workload's name, sorted; nothing is imported."""
    return tuple(sorted(_built_in() | _installed().keys()))


def find(name: str) -> Workload:
    """The workload of that name; raises UnknownWorkloadError.

    A script comes before an installed package's workload of its name, so that one can be worked on; not before ours.
    """
    file = script.path()
    if file is None or name_of_file(file.name) != name:
        return _find(name)
    if is_built_in(name):
        raise UnknownWorkloadError(
            f"{file.name}: accelbench already has a workload {name}; give the script another name"
        )
    try:
        return script.load(file)
    except workload_checks.InvalidWorkloadError as error:
        raise UnknownWorkloadError(str(error)) from error


@cache
def _find(name: str) -> Workload:
    if is_built_in(name):
        module = importlib.import_module(f"{workloads.__name__}.{name.replace('-', '_')}")
        return kind_in(module, name)()
    if name in _installed():
        return _from_package(_installed()[name])
    raise UnknownWorkloadError(unknown("workload", name, names()))


def _from_package(point: EntryPoint) -> Workload:
    """Whatever is wrong with somebody's package is said with its name, and is no trouble for the other workloads."""
    try:
        return _loaded(point)
    except workload_checks.InvalidWorkloadError as error:
        package = point.dist.name if point.dist else point.module
        raise UnknownWorkloadError(f"workload {point.name} of package {package} ({point.value}): {error}") from error


def _loaded(point: EntryPoint) -> Workload:
    try:
        kind = point.load()
    except workload_checks.RAISED as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if "importlib" in last:  # nothing of the package's own was reached
            raise workload_checks.InvalidWorkloadError(workload_checks.describe(error)) from error
        raise workload_checks.invalid(error, Path(last)) from error
    if inspect.ismodule(kind):
        kind = kind_in(kind, point.module)
        kind.name = point.name
    if not (inspect.isclass(kind) and issubclass(kind, Workload)):
        raise workload_checks.InvalidWorkloadError("this is not a class that inherits accelbench.workload.Workload")
    called = getattr(kind, "name", None)
    if called != point.name:
        raise workload_checks.InvalidWorkloadError(
            f'the name of class {kind.__name__} is "{called}", not the entry point\'s'
        )
    return workload_checks.instantiate(kind)


def parse_parameters(workload: Workload, values: Mapping[str, ParameterValue]) -> Any:
    """The workload's own `Parameters`, defaults filled in; raises pydantic.ValidationError."""
    return workload.Parameters.model_validate(dict(values))


def options_model(kind: VariantKind) -> type[frameworks.Options]:
    """The options that a variant takes: its mode's, or none where the workload's author has placed everything."""
    modes = frameworks.find(kind.framework).modes if kind.plain else {}
    return modes[kind.mode].options if kind.mode in modes else frameworks.Options


def parse_options(kind: VariantKind, values: Mapping[str, ParameterValue]) -> frameworks.Options:
    """The options of the variant's mode, defaults filled in; raises pydantic.ValidationError."""
    return options_model(kind).model_validate(dict(values))

"""Find workloads by name.

Built-in workloads are the modules of `accelbench.workloads`, one each, by file name: `matmul_chain.py` is
`matmul-chain`; a module whose name begins with an underscore is shared code. Others come from entry points of the group
`accelbench.workloads`, named like the workload; one more may be a user's script (`accelbench.catalogue.script`).
Modules are imported only when a workload is needed, and no workload imports numpy or a framework at import time.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from accelbench import frameworks, workloads
from accelbench.api.case import ParameterValue, workload_name_from_file
from accelbench.catalogue import script, workload_checks
from accelbench.catalogue.functions import workload_class
from accelbench.problem import describe_unknown
from accelbench.workload import Measure, VariantKind, Workload

GROUP = "accelbench.workloads"
REPEATING = frozenset({"steady", "latency"})
"""Protocols that repeat calls, so that a run may choose between them."""


class UnknownWorkloadError(LookupError):
    """Report that no valid workload has this name; the message suggests the nearest name, or describes the mistake."""


@cache
def _built_in_names() -> frozenset[str]:
    """Return the names of the workloads that are part of accelbench."""
    modules = (module.name for module in pkgutil.iter_modules(workloads.__path__))
    return frozenset(name.replace("_", "-") for name in modules if not name.startswith("_"))


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    """Return the entry points of workloads in other installed packages, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def is_built_in(name: str) -> bool:
    """Return True if the workload is part of accelbench."""
    return name in _built_in_names()


def names() -> tuple[str, ...]:
    """Return the names of built-in and installed workloads without importing them."""
    return tuple(sorted(_built_in_names() | _entry_points().keys()))


def find(name: str) -> Workload:
    """Return the workload of that name: from the script that this process measures, accelbench or a package.

    The script takes precedence over a package, but must not have the name of one of accelbench's own workloads.

    Raises:
        UnknownWorkloadError: There is no such workload, or it is invalid.
    """
    file = script.path()
    if file is None or workload_name_from_file(file.name) != name:
        return _find_in_packages(name)
    if is_built_in(name):
        raise UnknownWorkloadError(
            f"{file.name}: accelbench already has a workload {name}; give the script another name"
        )
    try:
        return script.load(file)
    except workload_checks.InvalidWorkloadError as error:
        raise UnknownWorkloadError(str(error)) from error


def find_anew(name: str) -> Workload:
    """Return a new workload of that name: run its script again, or make another instance of its class.

    The judge compares it with one that has run before, to see whether the outputs depend on earlier calls.

    Raises UnknownWorkloadError or, for a script that has become invalid, InvalidWorkloadError.
    """
    file = script.path()
    if file is not None and workload_name_from_file(file.name) == name:
        return script.load_anew(file)
    return type(find(name))()


@cache
def _find_in_packages(name: str) -> Workload:
    """Return a built-in or installed workload; raises UnknownWorkloadError."""
    if is_built_in(name):
        module = importlib.import_module(f"{workloads.__name__}.{name.replace('-', '_')}")
        return workload_class(module, name)()
    if name in _entry_points():
        return _from_package(_entry_points()[name])
    raise UnknownWorkloadError(describe_unknown("workload", name, names()))


def _from_package(point: EntryPoint) -> Workload:
    """Load the workload of a package's entry point; raises UnknownWorkloadError, with the name of the package."""
    try:
        return _load_entry_point(point)
    except workload_checks.InvalidWorkloadError as error:
        package = point.dist.name if point.dist else point.module
        raise UnknownWorkloadError(f"workload {point.name} of package {package} ({point.value}): {error}") from error


def _load_entry_point(point: EntryPoint) -> Workload:
    """Load a workload's class or module, and return an instance of the class.

    Raises InvalidWorkloadError if that fails.
    """
    try:
        loaded = point.load()
    except workload_checks.ERRORS as error:
        file = traceback.extract_tb(error.__traceback__)[-1].filename
        # If importlib itself raised the exception, the module or its attribute was not found: no file is to blame.
        failed_before_package_code = "importlib" in file
        if failed_before_package_code:
            raise workload_checks.InvalidWorkloadError(workload_checks.describe(error)) from error
        raise workload_checks.to_invalid_workload_error(error, Path(file)) from error
    workload_type = loaded
    if inspect.ismodule(loaded):  # the entry point names the workload of a module
        workload_type = workload_class(loaded, point.module)
        workload_type.name = point.name
    if not (inspect.isclass(workload_type) and issubclass(workload_type, Workload)):
        raise workload_checks.InvalidWorkloadError("this is not a class that inherits accelbench.workload.Workload")
    name = getattr(workload_type, "name", None)
    if name != point.name:
        raise workload_checks.InvalidWorkloadError(
            f'the name of class {workload_type.__name__} is "{name}", not the entry point\'s'
        )
    return workload_checks.instantiate(workload_type)


def parse_parameters(workload: Workload, values: Mapping[str, ParameterValue]) -> Any:
    """Return the parameters with these values and defaults; raises ValidationError."""
    return workload.Parameters.model_validate(dict(values))


def measure_of(
    workload: Workload, parameters: Any, protocol: Literal["steady", "latency", "arrivals"] | None
) -> Measure:
    """Return how a case is measured.

    `protocol` is what the case requests in place of the workload's protocol; None if it requests none. With `arrivals`
    the unit of work is a request, which is one call.

    Raises:
        ValueError: The workload's steps cannot be measured by that protocol, or the workload itself asks for arrivals.
    """
    measure = workload.measure(parameters)
    if protocol is None:
        if measure.protocol == "arrivals":
            raise ValueError(
                f"{workload.name} asks for the protocol arrivals, and only a run knows the rate: return another "
                "protocol from measure(), and ask for arrivals in the run's measurement"
            )
        return measure
    if measure.protocol not in REPEATING:
        raise ValueError(f"{workload.name} is measured by the protocol {measure.protocol} only")
    if protocol == "arrivals" and measure.cold:
        raise ValueError(
            f"{workload.name} is measured with cold caches, and requests would arrive while they are emptied: ask for "
            "the protocol latency"
        )
    unit = "request" if protocol == "arrivals" else measure.unit
    return dataclasses.replace(measure, protocol=protocol, unit=unit)


def options_model(variant: VariantKind) -> type[frameworks.Options]:
    """Return the pydantic model of the options that the variant's mode takes."""
    if not (variant.plain or variant.in_mode):  # the author's program runs in no mode of the framework
        return frameworks.Options
    mode = frameworks.find(variant.framework).modes.get(variant.adapter_mode)
    # None: the framework has no such mode, which the checks of the workload report.
    return mode.options if mode is not None else frameworks.Options


def parse_options(variant: VariantKind, values: Mapping[str, ParameterValue]) -> frameworks.Options:
    """Return the variant's options with these values and defaults; raises ValidationError."""
    return options_model(variant).model_validate(dict(values))

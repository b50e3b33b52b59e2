"""Read the case document. Before anything starts, refuse an invalid one with all its problems."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.catalogue import script
from accelbench.document import on_one_line
from accelbench.machine import memory
from accelbench.problem import describe_unknown
from accelbench.workload import Workload


class InvalidCaseError(ValueError):
    """Report a case document that cannot be run; the message lists the problems."""

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message))


def read_case(path: Path) -> Case:
    """Read and check the case document at `path`.

    Raises InvalidCaseError if the document cannot be read or has a problem.
    """
    try:
        case = Case.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InvalidCaseError(f"{path}: the case document cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidCaseError(f"{path}: this is not a case document: {_format_errors(error)}") from error
    if problems := list(_problems(case)):
        raise InvalidCaseError(f"{path}: {'; '.join(problems)}")
    return case


def _problems(case: Case) -> Iterator[str]:
    """Yield the problems that the model `Case` does not find: unknown names, wrong parameters, lack of memory."""
    names = [variant.name for variant in case.variants]
    if len(set(names)) != len(names):
        yield f"two variants have the same name: {', '.join(sorted(names))}"
    if case.baseline not in names:
        yield f"baseline: {describe_unknown('variant', case.baseline, names)}"
    try:
        workload = catalogue.find(case.workload)
    except catalogue.UnknownWorkloadError as error:
        yield str(error)
        return
    try:
        parameters = catalogue.parse_parameters(workload, case.parameters)
    except ValidationError as error:
        yield f"parameters: {_format_errors(error)}"
    else:
        try:
            catalogue.measure_of(workload, parameters, case.measurement.protocol)
        except Exception as error:  # noqa: BLE001 - the measure is a workload author's code
            yield f"protocol: {script.format_error(error)}"
        memory_problem = _memory_problem(case, workload, parameters)
        if memory_problem:
            yield memory_problem
    yield from _variant_problems(case, workload)


def _variant_problems(case: Case, workload: Workload) -> Iterator[str]:
    """Yield a problem for each variant that the workload does not have, or whose environment the case does not have."""
    workload_variants = workload.variants()
    environments = [environment.name for environment in case.environments]
    for variant in case.variants:
        if variant.use not in workload_variants:
            yield f"{variant.name}: {describe_unknown('variant', variant.use, workload_variants)}"
        if variant.environment is not None and variant.environment not in environments:
            yield f"{variant.name}: {describe_unknown('environment', variant.environment, environments)}"


def _memory_problem(case: Case, workload: Workload, parameters: Any) -> str | None:
    """Return why the case does not fit into memory, or why its need of memory is unknown; None if the case may fit."""
    try:
        # A case that is only compiled needs no arrays if the workload declares their shapes. Without a limit it is not
        # refused, but a cost that cannot be computed still raises.
        needs_no_arrays = case.accelerator.target is not None and workload.has_shapes()
        available_bytes = None if needs_no_arrays else memory.available_bytes()
        refusal = memory.refusal(workload, parameters, available_bytes)
    except Exception as error:  # noqa: BLE001 - the cost is a workload author's code
        return f"the workload's cost cannot be computed: {script.format_error(error)}"
    if refusal is None:
        return None
    parameters_text = ", ".join(f"{name} {value}" for name, value in case.parameters.items())
    return f"{workload.name} ({parameters_text}) {refusal}"


def _format_errors(error: ValidationError) -> str:
    """Format pydantic's errors on one line, each with the path of its field."""
    messages = []
    for detail in error.errors(include_url=False):
        path = ".".join(map(str, detail["loc"]))
        messages.append(f"{path}: {detail['msg']}" if path else detail["msg"])
    return "; ".join(messages)

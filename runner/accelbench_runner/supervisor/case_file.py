"""Read the case document, and refuse it before anything starts, with every problem that can be found at once."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.catalogue import script
from accelbench.document import on_one_line
from accelbench.machine import memory
from accelbench.problem import unknown


class InvalidCaseError(ValueError):
    """Report a case document that cannot be run; the message lists the problems."""

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message))


def read_case(path: Path) -> Case:
    """Return the case document at `path`; raise InvalidCaseError."""
    try:
        case = Case.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InvalidCaseError(f"{path}: the case document cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidCaseError(f"{path}: this is not a case document: {_details(error)}") from error
    if problems := list(_problems(case)):
        raise InvalidCaseError(f"{path}: {'; '.join(problems)}")
    return case


def _problems(case: Case) -> Iterator[str]:
    """Yield the problems of a case; an unknown workload hides those of parameters and variants."""
    names = [variant.name for variant in case.variants]
    if len(set(names)) != len(names):
        yield f"two variants have the same name: {', '.join(sorted(names))}"
    if case.baseline not in names:
        yield f"baseline: {unknown('variant', case.baseline, names)}"
    try:
        workload = catalogue.find(case.workload)
    except catalogue.UnknownWorkloadError as error:
        yield str(error)
        return
    try:
        parameters = catalogue.parse_parameters(workload, case.parameters)
    except ValidationError as error:
        yield f"parameters: {_details(error)}"
    else:
        try:
            needs_no_arrays = case.accelerator.target is not None and workload.has_shapes()
            refusal = memory.refusal(workload, parameters, None if needs_no_arrays else memory.available())
        except Exception as error:  # noqa: BLE001 - the cost is a workload author's code
            yield f"the workload's cost cannot be computed: {script.format_error(error)}"
            refusal = None
        if refusal:
            parameters_text = ", ".join(f"{name} {value}" for name, value in case.parameters.items())
            yield f"{workload.name} ({parameters_text}) {refusal}"
    available = workload.variants()
    for variant in case.variants:
        if variant.use not in available:
            yield f"{variant.name}: {unknown('variant', variant.use, available)}"


def _details(error: ValidationError) -> str:
    """Format the errors on one line, each with the path of its field."""
    return "; ".join(
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" if detail["loc"] else detail["msg"]
        for detail in error.errors(include_url=False)
    )

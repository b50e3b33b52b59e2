"""Read a suite: a YAML document that lists manifests and workloads. All of it is checked before anything is measured.

Suites run on this machine only: a cluster does not have this kind. A target is here the path of a manifest or a script,
or a workload's name.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from accelbench.api.metadata import API_VERSION, Name
from accelbench.api.run import BenchmarkRun
from accelbench.api.yaml_reader import InvalidManifestError, LocatedProblem, YamlDocument, read_documents
from accelbench.catalogue import names
from accelbench.document import Document
from accelbench.local.device import platform_of, prepare_compilation, require_a_framework
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.manifests import read_target, read_text, script_of
from accelbench.problem import Problem, suggest_name

KIND = "BenchmarkSuite"
SHIPPED = "shipped"
SUFFIX = ".yaml"


class SuiteMetadata(Document):
    """Name a suite."""

    name: Name


class SuiteEntry(Document):
    """List one manifest, or a workload that needs none."""

    file: Annotated[str, Field(min_length=1)] | None = None
    """Path of a manifest or script, relative to the suite's file."""
    workload: Annotated[str, Field(min_length=1)] | None = None
    name: Name | None = None
    """Name of the entry's run, if not that of its manifest."""
    variants: tuple[str, ...] = ()
    """Variants of a workload or script, the baseline first. A manifest lists its own."""
    set: tuple[str, ...] = ()
    """Overrides as `PATH=VALUE`, as for `accelbench run --set`."""

    @model_validator(mode="after")
    def _require_one_target(self) -> Self:
        """Refuse an entry that names neither a file nor a workload, or both."""
        if (self.file is None) == (self.workload is None):
            raise ValueError("give either file, the path of a manifest, or workload, the name of one")
        return self


class SuiteSpec(Document):
    """List the runs of a suite."""

    description: str = ""
    set: tuple[str, ...] = ()
    """Overrides for all runs; those of an entry come after them."""
    runs: Annotated[tuple[SuiteEntry, ...], Field(min_length=1)]


class BenchmarkSuite(Document):
    """Describe a suite in the form of its file."""

    api_version: Literal["accelbench.dev/v1alpha1"]
    kind: Literal["BenchmarkSuite"]
    metadata: SuiteMetadata
    spec: SuiteSpec

    @property
    def name(self) -> str:
        """Return the suite's name."""
        return self.metadata.name


@dataclass(frozen=True)
class PlannedRun:
    """Hold a run of a suite that this machine can measure."""

    run: BenchmarkRun
    platform: str
    """Name of the platform of its profile."""
    script: Path | None
    """Path of the workload's file, if it is a script."""

    @property
    def name(self) -> str:
        """Return the name of the run, which no other run of its suite has."""
        return self.run.metadata.name


ReplaceRun = Callable[[BenchmarkRun], Sequence[BenchmarkRun]]
"""Returns the runs to measure in place of a run, such as one that compares releases by its workload."""


def keep_run(run: BenchmarkRun) -> tuple[BenchmarkRun, ...]:
    """Return the run itself, to measure it as it is written."""
    return (run,)


def read_suite(file: str) -> BenchmarkSuite:
    """Read a suite's file; raises InvalidSpecError, which names the field and its line, and UsageError."""
    return parse_suite(read_text(file), file)


def parse_suite(text: str, source: str) -> BenchmarkSuite:
    """Return the suite in `text`; raises InvalidSpecError. `source` names the file in messages."""
    try:
        documents = read_documents(text, source)
    except InvalidManifestError as error:
        raise InvalidSpecError(source, error.problems) from error
    if len(documents) != 1:
        raise InvalidSpecError(source, [Problem("", f"holds {len(documents)} documents; a suite is one {KIND}")])
    [document] = documents
    if document.content.get("kind") == "BenchmarkRun":
        message = f"a BenchmarkRun is measured by accelbench run; a {KIND} lists it in spec.runs"
        raise InvalidSpecError(source, [LocatedProblem("kind", message, document.line("kind"))])
    try:
        return BenchmarkSuite.model_validate(document.content)
    except ValidationError as error:
        raise InvalidSpecError(source, list(_locate(error, document))) from error


def _locate(error: ValidationError, document: YamlDocument) -> Iterator[Problem]:
    """Yield the problems of an invalid suite, each with its field and line."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and detail["input"]:
            continue  # pydantic counts only valid items, and the others have problems of their own
        steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in detail["loc"]]
        path = "".join(steps).removeprefix(".")
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            message = "unknown field"
        elif detail["type"] == "literal_error":
            message = f"must be {API_VERSION if path == 'apiVersion' else KIND}"
        yield LocatedProblem(path, message, document.line(path))


def shipped_names() -> tuple[str, ...]:
    """Return the names of the suites whose files accelbench ships."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in _shipped().iterdir() if path.name.endswith(SUFFIX)))


def read_shipped(name: str) -> BenchmarkSuite:
    """Return a suite that accelbench ships, by its name."""
    path = _shipped() / f"{name}{SUFFIX}"
    return parse_suite(path.read_text(encoding="utf-8"), path.name)


def _shipped() -> Any:
    """Return the directory with the suites that accelbench ships."""
    return files("accelbench.local.suites") / SHIPPED


def plan(
    suite: BenchmarkSuite, source: str, assignments: Sequence[str] = (), replace_run: ReplaceRun = keep_run
) -> tuple[PlannedRun, ...]:
    """Return the runs of a suite, in order; raises InvalidSpecError with the problems of all its entries.

    Args:
        suite: The suite.
        source: Path of the suite's file. Paths in the suite are relative to it, and messages name it.
        assignments: Overrides for all runs, which come last.
        replace_run: Returns the runs to measure in place of a run, as `plan_target` takes it.
    """
    problems: list[Problem] = []
    planned_runs: list[PlannedRun] = []
    for index, entry in enumerate(suite.spec.runs):
        path = f"spec.runs[{index}]"
        all_assignments = [*suite.spec.set, *entry.set, *assignments]
        try:
            target = _target(entry, Path(source).parent)
            planned_runs += plan_target(
                target, entry.variants, all_assignments, name=entry.name, replace_run=replace_run
            )
        except UsageError as error:
            problems.append(Problem(path, f"{entry.file or entry.workload}: {error}"))
        except InvalidSpecError as error:
            problems += [Problem(path, f"{error.source}: {problem}") for problem in error.problems]
    for name in repeated_names(planned_runs):
        message = f'several runs are named "{name}": give entries names of their own (spec.runs[].name)'
        problems.append(Problem("spec.runs", message))
    if problems:
        raise InvalidSpecError(source, problems)
    return tuple(planned_runs)


def repeated_names(planned_runs: Sequence[PlannedRun]) -> list[str]:
    """Return the names that more than one run has, sorted."""
    names = [planned.name for planned in planned_runs]
    return sorted({name for name in names if names.count(name) > 1})


def plan_target(
    target: str,
    variants: Sequence[str],
    assignments: Sequence[str],
    *,
    name: str | None = None,
    replace_run: ReplaceRun = keep_run,
) -> list[PlannedRun]:
    """Return the runs of a manifest, a script or a workload, as this machine can measure them.

    Raises InvalidSpecError, or UsageError for a file or a variant that does not exist.

    Args:
        target: The path of a file, or the name of a workload.
        variants: Variants of a workload or script, the baseline first; none for the default ones.
        assignments: Overrides as `PATH=VALUE`.
        name: The name of the run, if not that of its manifest.
        replace_run: Returns the runs to measure in place of each run of the target; may raise InvalidSpecError.
    """
    runs = [prepare_compilation(run) for run in read_target(target, variants, assignments)]
    if name is not None:
        if len(runs) > 1:
            raise InvalidSpecError(target, [Problem("", f"holds {len(runs)} runs, so they cannot share a name")])
        runs = [_with_name(runs[0], name)]
    runs_to_measure = [new_run for run in runs for new_run in replace_run(run)]
    require_a_framework(*runs_to_measure)
    return [PlannedRun(run, platform_of(run), script_of(run, target)) for run in runs_to_measure]


def _target(entry: SuiteEntry, directory: Path) -> str:
    """Return the entry's target as `accelbench run` takes it: a path, or the name of a workload.

    Raises UsageError for a name that no workload has.
    """
    if entry.file is not None:
        path = directory / entry.file
        # With `./`, a file that does not exist is not taken for the workload of its name.
        return str(path) if path.is_absolute() else f"./{path}"
    workload = entry.workload or ""
    if workload not in names():
        raise UsageError(f"no such workload; {suggest_name(workload, names())}", "workload")
    return workload


def _with_name(run: BenchmarkRun, name: str) -> BenchmarkRun:
    """Return the run with another name."""
    return run.model_copy(update={"metadata": run.metadata.model_copy(update={"name": name})})

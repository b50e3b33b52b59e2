"""Read results: from a run's directory, a result's file, or a BenchmarkResult as kubectl prints it."""

import glob
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from accelbench.api.result import BenchmarkResult, Result
from accelbench.api.yaml_reader import InvalidManifestError, read_documents
from accelbench.local.directory import (
    RESULT_SUFFIX,
    RUN_FILE,
    RunDirectory,
    RunRecord,
    explain,
    load_launches,
)
from accelbench.local.errors import UnreadableResultError
from accelbench.report import launches, reproduce
from accelbench.report.html import MeasuredCase
from accelbench.verdict.expectations import ExpectationOutcome, evaluate
from accelbench.verdict.rebase import with_baseline


@dataclass(frozen=True)
class LoadedResults:
    """Hold results with the outcomes of the run's expectations, and their launches as JSON."""

    measured: tuple[tuple[Result, tuple[ExpectationOutcome, ...]], ...]
    launches: tuple[tuple[str, ...], ...]
    record: RunRecord | None = None

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the results without expectations."""
        return tuple(result for result, _ in self.measured)

    @property
    def name(self) -> str:
        """Return the run's name; empty if there is neither a record nor a result."""
        if self.record is not None:
            return self.record.run.metadata.name
        return self.measured[0][0].case.origin.run if self.measured else ""

    def with_baseline(self, baseline: str) -> Self:
        """Compare with another baseline, keeping the outcomes of expectations; raises NotComparableError."""
        measured = tuple((with_baseline(result, baseline), outcomes) for result, outcomes in self.measured)
        return replace(self, measured=measured)

    def pages(self) -> tuple[MeasuredCase, ...]:
        """Return the cases for an HTML report."""
        return tuple(
            MeasuredCase(result, outcomes, launches.of_documents(documents))
            for (result, outcomes), documents in zip(self.measured, self.launches, strict=True)
        )

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the run; None if there is no record."""
        return reproduce.of_run(self.record.run) if self.record is not None else None


def read(path: Path) -> LoadedResults:
    """Read a run's directory or a result's file; raises UnreadableResultError."""
    if not path.is_dir():
        results = tuple(read_file(path))
        return LoadedResults(
            measured=tuple((result, ()) for result in results),
            launches=(load_launches(path),) if len(results) == 1 else ((),) * len(results),
        )
    directory = RunDirectory(path)
    record, results = directory.load()
    return LoadedResults(
        measured=tuple((result, evaluate(record.run.spec.expectations, result)) for result in results),
        launches=tuple(directory.launches_of(result.case.name) for result in results),
        record=record,
    )


def read_side(name: str) -> tuple[Result, ...]:
    """Read all results at a path, also in subdirectories, or of a pattern; raises UnreadableResultError."""
    path = Path(name)
    paths = [path] if path.exists() else sorted(map(Path, glob.glob(name)))  # noqa: PTH207 - may be absolute
    if not paths:
        raise UnreadableResultError(f"there is no {name}")
    results = tuple(result for path in paths for result in _below(path))
    if not results:
        raise UnreadableResultError(f"{name} contains no results")
    return results


def _below(path: Path) -> Iterable[Result]:
    if not path.is_dir():
        yield from read_file(path)
    elif (path / RUN_FILE).exists():
        yield from RunDirectory(path).load()[1]
    else:
        for entry in sorted(path.iterdir()):
            if entry.is_dir() or entry.name.endswith(RESULT_SUFFIX):
                yield from _below(entry)


def read_file(path: Path) -> Iterable[Result]:
    """Yield the results of a file: result documents or BenchmarkResults, also in a List, in JSON or YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error
    except UnicodeDecodeError as error:
        raise UnreadableResultError(f"{path}: not a result of accelbench: not UTF-8 text") from error
    for document in _documents(text, path):
        items = document["items"] if isinstance(document, dict) and "items" in document else [document]
        if not isinstance(items, list):
            raise UnreadableResultError(f"{path}: not a result of accelbench: items is not a list")
        for item in items:
            yield _result(item, path)


def _documents(text: str, path: Path) -> list[Any]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass  # try YAML
    try:
        documents = [document.content for document in read_documents(text, str(path))]
    except InvalidManifestError as error:
        raise UnreadableResultError(f"{path}: not a result of accelbench: {error.problems[0]}") from error
    if not documents:
        raise UnreadableResultError(f"{path}: not a result of accelbench: it is empty")
    return documents


def _result(document: object, path: Path) -> Result:
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "BenchmarkRun":
        raise UnreadableResultError(f"{path}: a manifest and not a result; measure it with accelbench run")
    try:
        if kind == "BenchmarkResult":
            return BenchmarkResult.model_validate(document).result
        return Result.model_validate(document)
    except ValidationError as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error

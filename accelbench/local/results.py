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
    """Each result with the outcomes of the run's expectations."""
    launches: tuple[tuple[str, ...], ...]
    """The launches of each result, in the order of `measured`."""
    record: RunRecord | None = None
    """None if the run of the results is unknown."""

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the results without the outcomes of expectations."""
        return tuple(result for result, _ in self.measured)

    @property
    def name(self) -> str:
        """Return the run's name; empty if it is unknown."""
        if self.record is not None:
            return self.record.run.metadata.name
        return self.results[0].case.origin.run if self.results else ""

    def with_baseline(self, baseline: str) -> Self:
        """Return the results compared with another baseline; raises NotComparableError.

        The outcomes of expectations, which are about the run's own baseline, do not change.
        """
        measured = tuple((with_baseline(result, baseline), outcomes) for result, outcomes in self.measured)
        return replace(self, measured=measured)

    def cases_with_launches(self) -> tuple[MeasuredCase, ...]:
        """Return each result with the outcomes of its expectations and its launches, as the HTML report takes them."""
        cases = []
        for (result, outcomes), documents in zip(self.measured, self.launches, strict=True):
            cases.append(MeasuredCase(result, outcomes, launches.series_from_documents(documents)))
        return tuple(cases)

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest that runs these cases again; None if their run is unknown."""
        return reproduce.manifest_of_run(self.record.run) if self.record is not None else None


def read(path: Path) -> LoadedResults:
    """Read the results in a run's directory or in a file; raises UnreadableResultError."""
    if not path.is_dir():
        return _read_without_record(path)
    directory = RunDirectory(path)
    record, results = directory.load()
    return LoadedResults(
        measured=tuple((result, evaluate(record.run.spec.expectations, result)) for result in results),
        launches=tuple(directory.launches_of(result.case.name) for result in results),
        record=record,
    )


def _read_without_record(path: Path) -> LoadedResults:
    """Read results from a file, without the record of their run, so that the run's expectations are unknown."""
    results = tuple(read_file(path))
    launches_of_results: list[tuple[str, ...]] = [() for _ in results]
    if len(results) == 1:  # the launches of a single result are in the file next to it
        launches_of_results = [load_launches(path)]
    return LoadedResults(measured=tuple((result, ()) for result in results), launches=tuple(launches_of_results))


def read_all(name: str) -> tuple[Result, ...]:
    """Read all results in a file or directory; `name` can be a glob pattern.

    Raises UnreadableResultError if there are none.
    """
    path = Path(name)
    paths = [path] if path.exists() else sorted(map(Path, glob.glob(name)))  # noqa: PTH207 - may be absolute
    if not paths:
        raise UnreadableResultError(f"there is no {name}")
    results = tuple(result for path in paths for result in _find_results(path))
    if not results:
        raise UnreadableResultError(f"{name} contains no results")
    return results


def _find_results(path: Path) -> Iterable[Result]:
    """Yield the results in a file, in a run's directory, or anywhere in another directory."""
    if not path.is_dir():
        yield from read_file(path)
    elif (path / RUN_FILE).exists():
        _, results = RunDirectory(path).load()
        yield from results
    else:
        for entry in sorted(path.iterdir()):
            if entry.is_dir() or entry.name.endswith(RESULT_SUFFIX):
                yield from _find_results(entry)


def read_file(path: Path) -> Iterable[Result]:
    """Yield the results in a file of JSON or YAML; raises UnreadableResultError.

    Each document is a result, a BenchmarkResult, or a List of them.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error
    except UnicodeDecodeError as error:
        raise UnreadableResultError(f"{path}: not a result of accelbench: not UTF-8 text") from error
    for document in _parse_documents(text, path):
        is_list = isinstance(document, dict) and "items" in document
        items = document["items"] if is_list else [document]
        if not isinstance(items, list):
            raise UnreadableResultError(f"{path}: not a result of accelbench: items is not a list")
        for item in items:
            yield _parse_result(item, path)


def _parse_documents(text: str, path: Path) -> list[Any]:
    """Return the documents in `text`, which is JSON or YAML; raises UnreadableResultError for other or empty text."""
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


def _parse_result(document: object, path: Path) -> Result:
    """Return the result in a parsed document, which is a result itself or a BenchmarkResult.

    Raises UnreadableResultError for any other document.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "BenchmarkRun":
        raise UnreadableResultError(f"{path}: a manifest and not a result; measure it with accelbench run")
    try:
        if kind == "BenchmarkResult":
            return BenchmarkResult.model_validate(document).result
        return Result.model_validate(document)
    except ValidationError as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error

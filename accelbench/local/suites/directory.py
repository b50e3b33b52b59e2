"""Write and read the directory of a suite's results.

- `suite.json`: the suite's runs as they were measured, with all overrides
- a directory for each run, as `accelbench run` writes it
- `suite.html`, `suite.md`: the suite's report
"""

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, field_serializer

import accelbench
from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.document import Document
from accelbench.local.directory import PAGE_FILE, RunDirectory, RunRecord, explain, write_atomically
from accelbench.local.errors import UnreadableResultError
from accelbench.local.resume import SOURCE, complete_results, source_digest
from accelbench.local.suites.definition import PlannedRun
from accelbench.report.suite.view import Suite, SuiteRun

RECORD_FILE = "suite.json"
HTML_FILE = "suite.html"
MARKDOWN_FILE = "suite.md"


class SuiteRecord(Document):
    """Describe `suite.json`: the runs of the suite, with all overrides."""

    format: Literal["accelbench.dev/suite-record/v1alpha1"] = "accelbench.dev/suite-record/v1alpha1"
    accelbench: str
    """Version of accelbench. Results of other versions do not count."""
    name: str
    description: str = ""
    runs: tuple[BenchmarkRun, ...]

    @field_serializer("runs")
    def _serialize_without_status(self, runs: tuple[BenchmarkRun, ...]) -> list[dict[str, Any]]:
        """Leave out the status of the runs, which only a cluster sets."""
        return [run.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"}) for run in runs]


class SuiteDirectory:
    """Read and write the results of one suite."""

    def __init__(self, path: Path) -> None:
        """Use `path` as the directory; it need not exist yet."""
        self.path = path

    def write_record(self, name: str, description: str, runs: Sequence[BenchmarkRun]) -> SuiteRecord:
        """Write the suite's record, and return it; raises OSError."""
        record = SuiteRecord(accelbench=accelbench.__version__, name=name, description=description, runs=tuple(runs))
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(json.loads(record.to_json()), indent=2, ensure_ascii=False)
        write_atomically(self.path / RECORD_FILE, f"{text}\n")
        return record

    def load_record(self) -> SuiteRecord:
        """Read the suite's record; raises UnreadableResultError."""
        file = self.path / RECORD_FILE
        if not file.exists():
            raise UnreadableResultError(
                f"{self.path}: no {RECORD_FILE} in it; name a directory that `accelbench suite run` or `versions` wrote"
            )
        try:
            return SuiteRecord.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise UnreadableResultError(f"{file}: {explain(error)}") from error

    def run_directory(self, name: str) -> RunDirectory:
        """Return the directory of the run with this name."""
        return RunDirectory(self.path / name)

    def load(self, record: SuiteRecord, warn: Callable[[str], None]) -> Suite:
        """Return the suite with its complete results; `warn` is called with a line for each run that cannot be read."""
        runs = []
        for run in record.runs:
            name = run.metadata.name
            directory = self.run_directory(name)
            results = complete_results(
                directory,
                is_same_run=functools.partial(_is_same_run, run=run, version=record.accelbench),
                has_other_source=_has_other_source,
                on_unreadable=lambda error: warn(f"{error}; ignoring it"),
            )
            page = f"{name}/{PAGE_FILE}" if (directory.path / PAGE_FILE).exists() else ""
            runs.append(SuiteRun(run, results, page))
        return Suite(record.name, record.description, tuple(runs))

    def write_report(self, html_page: str | None, markdown_page: str) -> None:
        """Write the suite's pages; `html_page` is None if a package for it is missing."""
        write_atomically(self.path / MARKDOWN_FILE, markdown_page)
        if html_page is not None:
            write_atomically(self.path / HTML_FILE, html_page)


def reusable_results(
    directory: RunDirectory,
    planned: PlannedRun,
    environments: Sequence[CaseEnvironment],
    warn: Callable[[str], None],
) -> dict[str, Result]:
    """Return the results of a planned run that need not be measured again, by case name.

    They are complete, and of the same manifest, version of accelbench, source of the workload and packages of
    environments. `environments` are the run's environments as they are installed now. `warn` is called with a line if
    results cannot be read.
    """
    if planned.script is not None and not _is_same_script(directory, planned.script):
        return {}
    results = complete_results(
        directory,
        is_same_run=functools.partial(_is_same_run, run=planned.run, version=accelbench.__version__),
        has_other_source=_has_other_source,
        on_unreadable=lambda error: warn(f"{error}; measuring it again"),
    )
    return {name: result for name, result in results.items() if not _has_other_packages(result, environments)}


def _has_other_packages(result: Result, environments: Sequence[CaseEnvironment]) -> bool:
    """Return True if an environment has other packages than when the result was measured.

    An interpreter without requirements is ignored: it has no lock, so its packages are unknown here.
    """
    measured_packages = {environment.name: environment.packages for environment in result.case.environments}
    return any(
        environment.packages and environment.packages != measured_packages.get(environment.name)
        for environment in environments
    )


def _is_same_run(recorded: RunRecord, run: BenchmarkRun, version: str) -> bool:
    """Return True if the record is of the same manifest, expectations included, and `version` of accelbench."""
    return recorded.run == run and recorded.accelbench == version


def _is_same_script(directory: RunDirectory, script: Path) -> bool:
    """Return True if the directory has a copy of the script as it is now."""
    try:
        return (directory.path / script.name).read_bytes() == script.read_bytes()
    except OSError:
        return False


def _has_other_source(result: Result) -> bool:
    """Return True if the source of the result's workload has changed since the measurement; False if it is unknown.

    Return False for a script too: `_is_same_script` compares it with its copy.
    """
    if result.case.script is not None:
        return False
    measured_digest, present_digest = result.fingerprint.get(SOURCE), source_digest(result.case.workload)
    return bool(measured_digest and present_digest and measured_digest != present_digest)

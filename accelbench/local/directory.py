"""Write and read the directory of a run. Writes are atomic.

- `run.json`: the manifest with its overrides, and the names of its cases
- `CASE.result.json`: the result
- `CASE.launches.jsonl`: every launch with all its blocks
- `CASE.log`: the runner's output
- `CASE.N-VARIANT.trace.json.gz`: the profiler's trace of a variant, if the run asked to explain
- `report.md`, `report.html`: the report
- a copy of the script, if the workload is one
"""

import glob
import json
import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, field_serializer

from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.delivery.traces import TRACE_SUFFIX
from accelbench.document import Document
from accelbench.local.errors import OccupiedError, UnreadableResultError

RUN_FILE = "run.json"
REPORT_FILE = "report.md"
PAGE_FILE = "report.html"
RESULT_SUFFIX = ".result.json"
LAUNCHES_SUFFIX = ".launches.jsonl"


class RunRecord(Document):
    """Describe `run.json`: the run with overrides applied, and how it ended."""

    format: Literal["accelbench.dev/run-record/v1alpha1"] = "accelbench.dev/run-record/v1alpha1"
    accelbench: str
    """Version of accelbench."""
    started: str
    finished: str | None = None
    """None: the run has not finished, or was killed."""
    exit_code: int | None = None
    cases: tuple[str, ...]
    """Names of all cases, in the order of the sweep. A case that did not start has no files."""
    run: BenchmarkRun

    @field_serializer("run")
    def _serialize_without_status(self, run: BenchmarkRun) -> dict[str, Any]:
        """Leave out the run's status, which only a cluster sets."""
        return run.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"})


def write_atomically(path: Path, text: str) -> None:
    """Write a temporary file and rename it to `path`, so that no reader sees half a file."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)  # a temporary file can be read by its owner only
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


class RunDirectory:
    """Read and write the files of one run."""

    def __init__(self, path: Path) -> None:
        """Use `path` as the directory; it need not exist yet."""
        self.path = path

    @property
    def has_record(self) -> bool:
        """Return True if a run has written `run.json` here."""
        return (self.path / RUN_FILE).exists()

    def create(self) -> None:
        """Create the directory and its parents, if they do not exist."""
        self.path.mkdir(parents=True, exist_ok=True)

    def reserve(self) -> None:
        """Create the directory; raises OccupiedError if it contains files."""
        self.create()
        if any(self.path.iterdir()):
            reason = "is not empty"
            if self.has_record:
                reason = f"already holds the results of a run; `accelbench report {self.path}` shows them"
            raise OccupiedError(f"{self.path} {reason}. Nothing is overwritten: give --out another name")

    def prepare(self, record: RunRecord, *, keep: Collection[str] = ()) -> None:
        """Write the run's record; delete old files of its cases, except of the cases in `keep`."""
        self.create()
        for case in record.cases:
            if case not in keep:
                self.delete_case(case)
        self.write_record(record)

    def log_path(self, case: str) -> Path:
        """Return the path of a case's log."""
        return self.path / f"{case}.log"

    def write_record(self, record: RunRecord) -> None:
        """Write `run.json`."""
        write_atomically(self.path / RUN_FILE, _format_json(record))

    def write_result(self, result: Result, launches: Sequence[str]) -> None:
        """Write a case's result to one file, and its launches to another."""
        write_atomically(self._result_path(result.case.name), _format_json(result))
        lines = "".join(f"{launch}\n" for launch in launches)
        write_atomically(self._launches_path(result.case.name), lines)

    def write_report(self, markdown: str) -> None:
        """Write `report.md`."""
        write_atomically(self.path / REPORT_FILE, markdown)

    def write_page(self, page: str) -> None:
        """Write `report.html`."""
        write_atomically(self.path / PAGE_FILE, page)

    def copy_script(self, script: Path) -> Path:
        """Copy the script into this directory, and return the path of the copy.

        The copy is measured: later edits of the script have no effect.
        """
        copy = self.path / script.name
        write_atomically(copy, script.read_text(encoding="utf-8"))
        return copy

    def launches_of(self, case: str) -> tuple[str, ...]:
        """Return a case's launches, each as a JSON document."""
        return load_launches(self._result_path(case))

    def delete_case(self, case: str) -> None:
        """Delete the result, the launches, the log and the traces of a case, if they exist."""
        traces = self.path.glob(f"{glob.escape(case)}.*{TRACE_SUFFIX}")
        for path in (self._result_path(case), self._launches_path(case), self.log_path(case), *traces):
            path.unlink(missing_ok=True)

    def load(self) -> tuple[RunRecord, tuple[Result, ...]]:
        """Read the run's record and the results that exist; raises UnreadableResultError."""
        file = self.path / RUN_FILE
        if not self.has_record:
            raise UnreadableResultError(f"{self.path}: no {RUN_FILE} in it; name a directory that `run --out` wrote")
        try:
            record = RunRecord.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise UnreadableResultError(f"{file}: {explain(error)}") from error
        paths = [self._result_path(case) for case in record.cases]
        return record, tuple(load_result(path) for path in paths if path.exists())

    def _result_path(self, case: str) -> Path:
        """Return the path of a case's result."""
        return self.path / f"{case}{RESULT_SUFFIX}"

    def _launches_path(self, case: str) -> Path:
        """Return the path of a case's launches."""
        return self.path / f"{case}{LAUNCHES_SUFFIX}"


def reserve_numbered(path: Path) -> RunDirectory:
    """Create the first of `path`, `path-2`, `path-3` and so on that does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    candidate, number = path, 1
    while True:
        try:
            candidate.mkdir()
        except FileExistsError:
            number += 1
            candidate = path.with_name(f"{path.name}-{number}")
        else:
            return RunDirectory(candidate)


def load_result(path: Path) -> Result:
    """Read a result from a file; raises UnreadableResultError."""
    try:
        return Result.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error


def load_launches(result_path: Path) -> tuple[str, ...]:
    """Return the launches in `CASE.launches.jsonl` next to `CASE.result.json`, each as a JSON document.

    There are none if the file does not exist.
    """
    path = result_path.with_name(result_path.name.removesuffix(RESULT_SUFFIX) + LAUNCHES_SUFFIX)
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def explain(error: OSError | ValidationError) -> str:
    """Describe why a result cannot be read; of an invalid document, name the first problem."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    problem = error.errors(include_url=False)[0]
    field_path = ".".join(str(key) for key in problem["loc"])
    prefix = f"{field_path}: " if field_path else ""
    return f"not a result of accelbench: {prefix}{problem['msg']}"


def _format_json(document: Document) -> str:
    """Format the document as indented JSON."""
    return json.dumps(json.loads(document.to_json()), indent=2, ensure_ascii=False) + "\n"

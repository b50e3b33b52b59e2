"""Write and read the directory of a run. Writes are atomic.

- `run.json`: the manifest as run, and the names of its cases
- `CASE.result.json`: the result
- `CASE.launches.jsonl`: every launch with all its blocks
- `CASE.log`: the runner's output
- `report.md`, `report.html`: the report
- a copy of the script, if the workload is one
"""

import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, field_serializer

from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
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
    """Names in the order of the sweep; cases that did not start have no files."""
    run: BenchmarkRun

    @field_serializer("run")
    def _without_status(self, run: BenchmarkRun) -> dict[str, Any]:
        return run.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"})


def write_atomically(path: Path, text: str) -> None:
    """Replace the file in one step, so that a reader never sees a part of it."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


class RunDirectory:
    """Read and write the files of one run."""

    def __init__(self, path: Path) -> None:
        """Use a path that need not exist yet."""
        self.path = path

    @property
    def begun(self) -> bool:
        """Return True if a run has started here."""
        return (self.path / RUN_FILE).exists()

    def create(self) -> None:
        """Create the directory and its parents, if they do not exist."""
        self.path.mkdir(parents=True, exist_ok=True)

    def reserve(self) -> None:
        """Create the directory, which must be new or empty; raises OccupiedError and OSError."""
        self.create()
        if any(self.path.iterdir()):
            results = f"already holds the results of a run; `accelbench report {self.path}` shows them"
            state = results if self.begun else "is not empty"
            raise OccupiedError(f"{self.path} {state}. Nothing is overwritten: give --out another name")

    def prepare(self, record: RunRecord, *, keep: Collection[str] = ()) -> None:
        """Write the run's record, and delete an earlier run's files of the cases except those to keep."""
        self.create()
        for case in record.cases:
            if case not in keep:
                self.forget(case)
        self.write_record(record)

    def log(self, case: str) -> Path:
        """Return the path of a case's log."""
        return self.path / f"{case}.log"

    def write_record(self, record: RunRecord) -> None:
        """Write `run.json`."""
        write_atomically(self.path / RUN_FILE, as_text(record))

    def write_result(self, result: Result, launches: Sequence[str]) -> None:
        """Write a case's result, and its launches as one JSON document a line."""
        write_atomically(self._result(result.case.name), as_text(result))
        lines = "".join(f"{launch}\n" for launch in launches)
        write_atomically(self.path / f"{result.case.name}{LAUNCHES_SUFFIX}", lines)

    def write_report(self, markdown: str) -> None:
        """Write `report.md`."""
        write_atomically(self.path / REPORT_FILE, markdown)

    def write_page(self, page: str) -> None:
        """Write `report.html`."""
        write_atomically(self.path / PAGE_FILE, page)

    def keep_script(self, script: Path) -> Path:
        """Copy the script, so that later edits do not change what is measured; raises OSError."""
        copy = self.path / script.name
        write_atomically(copy, script.read_text(encoding="utf-8"))
        return copy

    def launches(self, case: str) -> tuple[str, ...]:
        """Return a case's launches as JSON with all blocks; empty if there is no such file."""
        return load_launches(self._result(case))

    def forget(self, case: str) -> None:
        """Delete an earlier run's files of this case, so that they are not taken for this run's."""
        for path in (self._result(case), self.path / f"{case}{LAUNCHES_SUFFIX}", self.log(case)):
            path.unlink(missing_ok=True)

    def load(self) -> tuple[RunRecord, tuple[Result, ...]]:
        """Read the run's record and results; raises UnreadableResultError."""
        file = self.path / RUN_FILE
        if not self.begun:
            raise UnreadableResultError(f"{self.path}: no {RUN_FILE} in it; name a directory that `run --out` wrote")
        try:
            record = RunRecord.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise UnreadableResultError(f"{file}: {explain(error)}") from error
        paths = [self._result(case) for case in record.cases]
        return record, tuple(load_result(path) for path in paths if path.exists())

    def _result(self, case: str) -> Path:
        return self.path / f"{case}{RESULT_SUFFIX}"


def reserve_numbered(path: Path) -> RunDirectory:
    """Create a directory at `path` or, if that exists, at the first free of `path-2`, `path-3`; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in itertools.chain([path.name], (f"{path.name}-{number}" for number in itertools.count(2))):
        with contextlib.suppress(FileExistsError):
            path.with_name(name).mkdir()
            return RunDirectory(path.with_name(name))
    raise AssertionError  # names do not run out


def load_result(path: Path) -> Result:
    """Read the result in a file; raises UnreadableResultError."""
    try:
        return Result.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error


def load_launches(result: Path) -> tuple[str, ...]:
    """Return the launches in the file next to a result's, as JSON documents; empty if there is none."""
    path = result.with_name(result.name.removesuffix(RESULT_SUFFIX) + LAUNCHES_SUFFIX)
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def explain(error: OSError | ValidationError) -> str:
    """Return the reason for the end of a message that names the file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"not a result of accelbench: {field + ': ' if field else ''}{first['msg']}"


def as_text(document: Document) -> str:
    """Return the document as indented JSON."""
    return json.dumps(json.loads(document.to_json()), indent=2, ensure_ascii=False) + "\n"

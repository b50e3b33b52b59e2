"""What a run leaves on disk: a directory with a result a case, the runners' logs, and a report. Writes are atomic.

`CASE.result.json` is the result; `CASE.launches.jsonl` every launch with its blocks in full; `CASE.log` all that the
runner said; `run.json` the manifest as it was run, and which cases there are; `report.md` and `report.html` the report.
Beside them lies a copy of the script, where the workload comes from one.
"""

import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import Sequence
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
    """`run.json`: what was asked, with overrides applied, and what came of it."""

    format: Literal["accelbench.dev/run-record/v1alpha1"] = "accelbench.dev/run-record/v1alpha1"
    accelbench: str
    """The version that ran it."""
    started: str
    finished: str | None = None
    """RFC 3339, UTC."""
    exit_code: int | None = None
    """None: the run is under way, or was killed."""
    cases: tuple[str, ...]
    """Names, in the order of the sweep; those that were not reached have no files."""
    run: BenchmarkRun

    @field_serializer("run")
    def _without_status(self, run: BenchmarkRun) -> dict[str, Any]:
        """What came of it stands in the results."""
        return run.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"})


def write_atomically(path: Path, text: str) -> None:
    """Write all of `text` or leave what was there: a reader never sees half a file."""
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
    """The directory of one run."""

    def __init__(self, path: Path) -> None:
        """`path` need not exist yet."""
        self.path = path

    @property
    def begun(self) -> bool:
        """Whether a run has left anything here."""
        return (self.path / RUN_FILE).exists()

    def create(self) -> None:
        """Make it, with its parents; what an earlier run left in it is replaced file by file."""
        self.path.mkdir(parents=True, exist_ok=True)

    def reserve(self) -> None:
        """Make it, for results that overwrite nothing; raises OccupiedError, and OSError."""
        self.create()
        if any(self.path.iterdir()):
            held = f"already holds the results of a run; `accelbench report {self.path}` shows them"
            raise OccupiedError(
                f"{self.path} {held if self.begun else 'is not empty'}. Nothing is overwritten: give --out another name"
            )

    def log(self, case: str) -> Path:
        """Where a case's log goes."""
        return self.path / f"{case}.log"

    def write_record(self, record: RunRecord) -> None:
        """`run.json`."""
        write_atomically(self.path / RUN_FILE, as_text(record))

    def write_result(self, result: Result, launches: Sequence[str]) -> None:
        """A case's result, and its launches in full, one JSON document a line."""
        write_atomically(self._result(result.case.name), as_text(result))
        lines = "".join(f"{launch}\n" for launch in launches)
        write_atomically(self.path / f"{result.case.name}{LAUNCHES_SUFFIX}", lines)

    def write_report(self, markdown: str) -> None:
        """`report.md`."""
        write_atomically(self.path / REPORT_FILE, markdown)

    def write_page(self, page: str) -> None:
        """`report.html`."""
        write_atomically(self.path / PAGE_FILE, page)

    def keep_script(self, script: Path) -> Path:
        """A copy of what is measured, which later changes to the script do not reach; raises OSError."""
        kept = self.path / script.name
        write_atomically(kept, script.read_text(encoding="utf-8"))
        return kept

    def launches(self, case: str) -> tuple[str, ...]:
        """A case's launches as JSON, blocks in full; none where there is no such file."""
        return load_launches(self._result(case))

    def forget(self, case: str) -> None:
        """Remove what an earlier run left of this case, so that it is never taken for this run's."""
        for path in (self._result(case), self.path / f"{case}{LAUNCHES_SUFFIX}", self.log(case)):
            path.unlink(missing_ok=True)

    def load(self) -> tuple[RunRecord, tuple[Result, ...]]:
        """What a run left here; raises UnreadableResultError."""
        file = self.path / RUN_FILE
        if not self.begun:
            raise UnreadableResultError(f"{self.path}: no {RUN_FILE} in it; name a directory that `run --out` wrote")
        try:
            record = RunRecord.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise UnreadableResultError(f"{file}: {explain(error)}") from error
        found = [self._result(case) for case in record.cases]
        return record, tuple(load_result(path) for path in found if path.exists())

    def _result(self, case: str) -> Path:
        return self.path / f"{case}{RESULT_SUFFIX}"


def reserve_beside(path: Path) -> RunDirectory:
    """A new directory at `path`, or where something lies there already, at the first free of `path-2`, `path-3`, ...

    It is there, and empty, so that nobody else gets it; raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in itertools.chain([path.name], (f"{path.name}-{number}" for number in itertools.count(2))):
        with contextlib.suppress(FileExistsError):
            path.with_name(name).mkdir()
            return RunDirectory(path.with_name(name))
    raise AssertionError  # names do not run out


def load_result(path: Path) -> Result:
    """The result in a file; raises UnreadableResultError."""
    try:
        return Result.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UnreadableResultError(f"{path}: {explain(error)}") from error


def load_launches(result: Path) -> tuple[str, ...]:
    """The launches that were kept beside a result's file, one JSON document each; none where they were not."""
    path = result.with_name(result.name.removesuffix(RESULT_SUFFIX) + LAUNCHES_SUFFIX)
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def explain(error: OSError | ValidationError) -> str:
    """What is wrong with a file, for the end of a sentence that names it."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"not a result of accelbench: {where + ': ' if where else ''}{first['msg']}"


def as_text(document: Document) -> str:
    """The document as it lies on disk: indented JSON."""
    return json.dumps(json.loads(document.to_json()), indent=2, ensure_ascii=False) + "\n"

"""The readers of untrusted text, each with the property that has to hold for every input.

A target takes bytes and returns; whatever it raises is a finding. What a reader declares to refuse is none. Time and
memory are bounded by whoever runs it.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from accelbench.api import labels
from accelbench.api.manifest import InvalidManifestError, load_manifests
from accelbench.api.metadata import ObjectMeta
from accelbench.api.profiles import InvalidProfilesError, parse_profiles
from accelbench.api.reasons import RetryLimit
from accelbench.api.result import BenchmarkResult, Result
from accelbench.api.run import BenchmarkRunStatus
from accelbench.delivery.log import DocumentKind, digest_of, encode_document, parse_event, read_log
from accelbench.local import results
from accelbench.local.errors import InvalidSpecError, UnreadableResultError
from accelbench.local.suites.definition import parse_suite
from accelbench.plan.names import result_name
from accelbench.plan.problems import check_run
from accelbench.report import markdown, terminal, tidy
from accelbench.report.live import display
from accelbench.terminal.console import console
from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs.collect import read_outcome
from accelbench_operator.runs.events import transitions
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.status import RunProgress, progress_status
from accelbench_operator.runs.summary import observe_result, summarize
from accelbench_runner.supervisor.case_file import InvalidCaseError, read_case
from fuzz.world import ATTEMPT, CASE, MOMENT, NOW, PLAN, snapshot_of
from fuzz.written import assert_line, assert_markdown, assert_readable
from metrics.serving import text_of
from operator_world.builders import UID, ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from accelbench_operator.runs.summary import Summary

PRODUCED: dict[str, DocumentKind] = {"=result ": "result", "=checkpoint ": "checkpoint"}
"""Begins a line of an input that is to become a document with its digest, which no mutation would hit."""
DIGEST = "DIGEST"
"""In a termination message: that of the last document."""
EXIT_CODES = (None, 0, 2, 3, 137, 143)
REASONS = ("", "Error", "OOMKilled", "StartError")
LONGEST_LABEL = 256
MOST_SERIES = 2000


def log(data: bytes) -> None:
    """Lines of a container, as the command line follows them and as the operator reads them at the end."""
    lines = data.decode(errors="replace").splitlines()
    written = io.StringIO()
    with display(_paper(written, 80)) as shown:
        shown.start_case(CASE, 1, 1)
        for line in lines:
            if (event := parse_event(line)) is not None:
                shown.event(event)
    assert_readable(written.getvalue())
    delivered = read_log(lines)
    for problem in delivered.problems:
        assert_line(problem)
    for document in delivered.documents:
        assert digest_of(document.text) == document.digest


def attempt(data: bytes) -> None:
    """An ended pod: exit code, reason, termination message and log become a result, or a failure in words."""
    head, _, rest = data.partition(b"\n")
    message, _, text = rest.decode(errors="replace").partition("\n")
    lines, digest = [], ""
    for line in text.splitlines():
        for start, kind in PRODUCED.items():
            if line.startswith(start):
                document = line.removeprefix(start)
                digest = digest_of(document)
                lines += encode_document(kind, "1", document)
                break
        else:
            lines.append(line)
    choice = head[0] if head else 0
    pod = ended(
        ATTEMPT,
        exit_code=EXIT_CODES[choice % len(EXIT_CODES)],
        reason=REASONS[choice // 8 % len(REASONS)],
        pod_reason="DeadlineExceeded" if choice & 64 else "",
        message=message.replace(DIGEST, digest),
    )
    found = read_outcome(CASE, pod, read_log(lines), retries=() if choice & 128 else tuple(RetryLimit), now=NOW)
    if isinstance(found, AttemptFailure):
        _told({}, lost=found)
        return
    _told({CASE.name: summarize(found, Key("BenchmarkResult", "team", "result", ""), "uid")})
    _shown(found)


def _paper(written: io.StringIO, width: int) -> Console:
    paper = console()
    paper.file, paper.width = written, width
    return paper


def _told(held: Mapping[str, Summary], lost: AttemptFailure | None = None) -> None:
    """The run's status, its events and the metrics are clean."""
    attempts = []
    if lost:
        words = {"reason": lost.reason, "message": lost.message}
        attempts.append(ATTEMPT.model_copy(update={"finished": True, **words}))
    progress = RunProgress(tuple(attempts), tuple(held), held, now=MOMENT, stop=None, is_busy=False, pending_reason="")
    status = progress_status(PLAN, BenchmarkRunStatus(), progress)
    for said in (status.headline, *(each.message for each in status.conditions)):
        assert_line(said)
    for transition in transitions(BenchmarkRunStatus(), status):
        assert_line(transition.message)
    for summary in held.values():
        _exposed(summary)


def _exposed(summary: Summary) -> None:
    text = text_of(snapshot_of(summary))
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    assert len(samples) < MOST_SERIES
    assert len({(each.name, tuple(sorted(each.labels.items()))) for each in samples}) == len(samples)
    for sample in samples:
        for value in sample.labels.values():
            assert_line(value)
            assert len(value) <= LONGEST_LABEL, value


def _shown(found: Result) -> None:
    """Terminal, Markdown and CSV of a result are clean."""
    for width in (40, 160):
        written = io.StringIO()
        _paper(written, width).print(terminal.report(found))
        assert_readable(written.getvalue())
    assert_markdown(markdown.report("run", [(found, ())]))
    tidy.report([found])


def result(data: bytes) -> None:
    """A result's file, as `accelbench report` reads it."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        try:
            found = tuple(results.read_file(Path(file.name)))
        except UnreadableResultError as error:
            assert_line(str(error).replace(file.name, ""))
            return
    for each in found:
        _shown(each)
        BenchmarkResult.from_result(each, ObjectMeta(name="result"))


def stored(data: bytes) -> None:
    """A BenchmarkResult as the API server has it, whoever wrote it."""
    try:
        found = Result.model_validate_json(data)
        origin = found.case.origin
        metadata = {
            "name": result_name(origin.run, UID, found.case.name),
            "namespace": "team",
            "creationTimestamp": NOW,
            "labels": {labels.RUN_UID: UID},
        }
        summary = observe_result({"metadata": metadata, "result": found.model_dump(mode="json", by_alias=True)})
    except ValueError:
        return
    if summary is not None:
        _told({CASE.name: summary})


def manifest(data: bytes) -> None:
    """A manifest, as every door reads it."""
    try:
        runs = load_manifests(data.decode(errors="replace"), "file")
    except InvalidManifestError as error:
        for problem in error.problems:
            assert_line(str(problem))
        return
    for run in runs:
        for problem in check_run(run):
            assert_line(str(problem))


def case(data: bytes) -> None:
    """The file that a runner is started with."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        try:
            read_case(Path(file.name))
        except InvalidCaseError as error:
            assert_line(str(error))


def profiles(data: bytes) -> None:
    """An administrator's profiles."""
    # A refusal has the lines of a YAML error: it is for an administrator's terminal.
    with contextlib.suppress(InvalidProfilesError):
        parse_profiles(data.decode(errors="replace"), source="file")


def suite(data: bytes) -> None:
    """A suite's file."""
    try:
        parse_suite(data.decode(errors="replace"), "file")
    except InvalidSpecError as error:
        for problem in error.problems:
            assert_line(str(problem))


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    each.__name__: each for each in (log, attempt, result, stored, manifest, case, profiles, suite)
}

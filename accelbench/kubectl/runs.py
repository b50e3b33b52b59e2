"""Read runs and results of the cluster by name; for an unknown name, an error suggests the most similar one."""

import re
from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from accelbench.api import labels
from accelbench.api.metadata import MAXIMUM_LABEL_CHARACTERS, NAME_PATTERN
from accelbench.api.result import BenchmarkResult, Result
from accelbench.api.run import BenchmarkRun, Expectation
from accelbench.cluster_api.client import Client, Manifest
from accelbench.cluster_api.errors import ClusterError, NotFoundError
from accelbench.cluster_api.kinds import RESULT, RUN
from accelbench.kubectl.clone_run import user_metadata
from accelbench.kubectl.gate import exit_of
from accelbench.local.directory import RunRecord, explain
from accelbench.local.results import LoadedResults
from accelbench.problem import find_similar, suggest_name
from accelbench.verdict.expectations import ExpectationOutcome

PREFIXES = ("benchmarkrun.accelbench.dev", "benchmarkruns.accelbench.dev", "benchmarkrun", "benchmarkruns", "bmr")
"""Kinds that kubectl prints and accepts in front of a slash."""
LISTED_NAMES = 20
"""Maximum number of names that a message lists. If there are more, the message names at most the most similar one."""


class UnknownRunError(ClusterError):
    """Report that no run has that name, or that the run has no result."""


def bare_name(name: str) -> str:
    """Return `NAME` for `NAME` and for `bmr/NAME`."""
    kind, slash, name_after_slash = name.partition("/")
    return name_after_slash if slash and kind in PREFIXES else name


def get_run(client: Client, name: str) -> Manifest:
    """Get a run by `NAME` or `bmr/NAME`; raises UnknownRunError."""
    run = _find_run(client, name)
    if run is None:
        raise UnknownRunError(_explain_unknown_name(client, name, run_names(client)))
    return run


def _find_run(client: Client, name: str) -> Manifest | None:
    """Get a run by `NAME` or `bmr/NAME`; return None if it does not exist."""
    run_name = bare_name(name)
    # In the path of a request, an invalid name could address another object.
    if not re.fullmatch(NAME_PATTERN, run_name):
        return None
    try:
        return client.get(RUN.path(client.namespace, run_name))
    except NotFoundError:
        return None


def run_names(client: Client) -> list[str]:
    """Return the names of all runs in the namespace."""
    return [run["metadata"]["name"] for run in client.items(RUN.path(client.namespace))]


def _explain_unknown_name(client: Client, name: str, known_names: Iterable[str]) -> str:
    """Explain that no run is called `name`, and suggest one of `known_names` or a command that lists them."""
    run_name = bare_name(name)
    choices = sorted(set(known_names))
    problem = f'no BenchmarkRun "{run_name}" in namespace {client.namespace}'
    if not choices:
        return f"{problem}, which has none; see kubectl accelbench ls -A"
    if find_similar(run_name, choices) is None and len(choices) > LISTED_NAMES:  # `suggest_name` would list all
        return f"{problem}; see kubectl accelbench ls"
    return f"{problem}; {suggest_name(run_name, choices)}"


def parse_run(manifest: Manifest) -> BenchmarkRun:
    """Parse a run; raise ClusterError if this release cannot read it."""
    try:
        return BenchmarkRun.model_validate(manifest)
    except ValidationError as error:
        name = manifest["metadata"]["name"]
        raise ClusterError(f"benchmarkrun/{name} cannot be read: {_explain_unreadable(error)}") from error


def parse_result(manifest: Manifest) -> BenchmarkResult:
    """Parse a result; raise ClusterError if this release cannot read it."""
    try:
        return BenchmarkResult.model_validate(manifest)
    except ValidationError as error:
        name = manifest["metadata"]["name"]
        raise ClusterError(f"benchmarkresult/{name} cannot be read: {_explain_unreadable(error)}") from error


def _explain_unreadable(error: ValidationError) -> str:
    """Explain why this release cannot read an object of the cluster."""
    return f"{explain(error)}; is your accelbench of the same release as the operator?"


def read_results(client: Client, name: str) -> LoadedResults:
    """Read the results of a run; a deleted run can still have results."""
    run = _find_run(client, name)
    if run is None:
        return _to_loaded_results(_results_of_deleted_run(client, name), None)
    return read_run_results(client, run)


def read_run_results(client: Client, run: Manifest) -> LoadedResults:
    """Read the results of a run, in the order of measurement."""
    namespace, uid = run["metadata"]["namespace"], run["metadata"]["uid"]
    items = client.items(RESULT.path(namespace), labelSelector=f"{labels.RUN_UID}={uid}")
    results = [parse_result(item) for item in items]
    measured_cases = (run.get("status") or {}).get("measuredCases") or []
    positions = {case: position for position, case in enumerate(measured_cases)}
    # A result can be stored before the operator lists its case: then it comes last.
    results.sort(key=lambda result: positions.get(result.result.case.name, len(positions)))
    return _to_loaded_results(results, run)


def _results_of_deleted_run(client: Client, name: str) -> list[BenchmarkResult]:
    """Read the results of the latest deleted run of this name; raises UnknownRunError if there are none."""
    run_name = bare_name(name)
    # A label has only the beginning of a long name, so the full name in the result decides.
    labelled_results = _results_with_label(client, labels.RUN, run_name)
    results = [result for result in labelled_results if result.result.case.origin.run == run_name]
    if not results:
        items = client.items(RESULT.path(client.namespace))
        names_of_results = {item["result"]["case"]["origin"]["run"] for item in items}
        raise UnknownRunError(_explain_unknown_name(client, name, {*run_names(client), *names_of_results}))
    results.sort(key=lambda result: result.result.started)
    latest_uid = results[-1].result.case.origin.uid
    return [result for result in results if result.result.case.origin.uid == latest_uid]


def _results_with_label(client: Client, label: str, name: str) -> list[BenchmarkResult]:
    """Read the results whose label has this name as its value.

    Kubernetes limits the length of labels, so a long name is cut off: results of other names can be among them.
    """
    value = name[:MAXIMUM_LABEL_CHARACTERS].strip("-.")  # Kubernetes allows neither at an end of a label's value
    if not value:
        return []
    items = client.items(RESULT.path(client.namespace), labelSelector=f"{label}={value}")
    return [parse_result(item) for item in items]


def _to_loaded_results(results: Sequence[BenchmarkResult], run: Manifest | None) -> LoadedResults:
    """Return the results in the form that reports take; `run` is None if the run was deleted."""
    return LoadedResults(
        measured=tuple((result.result, _stored_outcomes(result)) for result in results),
        # Launch documents with the time of every block are only in the log of a pod. Without them, the HTML report uses
        # the summaries of launches in the results.
        launches=((),) * len(results),
        record=None if run is None else _record(run, results),
    )


def _stored_outcomes(result: BenchmarkResult) -> tuple[ExpectationOutcome, ...]:
    """Return the expectations in a result, with the outcomes that the operator stored."""
    outcomes = []
    for stored_expectation in result.expectations:
        fields = stored_expectation.model_dump(exclude={"outcome", "message"})
        expectation = Expectation.model_validate(fields)
        outcomes.append(ExpectationOutcome(expectation, stored_expectation.outcome, stored_expectation.message))
    return tuple(outcomes)


def _record(run: Manifest, results: Sequence[BenchmarkResult]) -> RunRecord:
    """Return the record of a run, in the form that `accelbench run --out` writes to `run.json`."""
    status = run.get("status") or {}
    exit_code = exit_of(run)
    versions = dict.fromkeys(result.result.fingerprint.get("accelbench", "") for result in results)  # each once
    manifest = {  # without the status and the metadata that only a cluster sets
        "apiVersion": run["apiVersion"],
        "kind": run["kind"],
        "metadata": user_metadata(run["metadata"]),
        "spec": run["spec"],
    }
    return RunRecord(
        accelbench=", ".join(version for version in versions if version),
        started=status.get("startTime") or run["metadata"]["creationTimestamp"],
        finished=status.get("completionTime"),
        exit_code=None if exit_code is None else int(exit_code),
        cases=tuple(result.result.case.name for result in results),
        run=parse_run(manifest),
    )


def read_run_or_series(client: Client, name: str) -> tuple[Result, ...]:
    """Read the results of a run or, for `series/NAME`, of a series; raises UnknownRunError if it has none."""
    kind, slash, series = name.partition("/")
    if kind == "series" and slash:
        return _read_series(client, series)
    results = read_results(client, name).results
    if not results:
        raise UnknownRunError(f"benchmarkrun/{bare_name(name)} has no result yet")
    return results


def _read_series(client: Client, name: str) -> tuple[Result, ...]:
    """Read the results of a series; raise UnknownRunError if there are none."""
    # A label has only the beginning of a long name, so the full name in the result decides.
    labelled_results = _results_with_label(client, labels.SERIES, name)
    results = tuple(result.result for result in labelled_results if result.result.case.origin.series == name)
    if results:
        return results
    items = client.items(RESULT.path(client.namespace))
    known_names = sorted({str(item["result"]["case"]["origin"]["series"]) for item in items})
    problem = f'no series "{name}" in namespace {client.namespace}'
    if not known_names:
        raise UnknownRunError(f"{problem}, which has no results")
    raise UnknownRunError(f"{problem}; {suggest_name(name, known_names)}")

"""Read runs and results of the cluster by name; an unknown name is answered with the nearest known one."""

import re
from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from accelbench.api import labels
from accelbench.api.metadata import MAXIMUM_LABEL, NAME
from accelbench.api.result import BenchmarkResult, Result
from accelbench.api.run import BenchmarkRun, Expectation
from accelbench.cluster_api.client import Client, Manifest
from accelbench.cluster_api.errors import ClusterError, NotFoundError
from accelbench.cluster_api.kinds import RESULT, RUN
from accelbench.kubectl.clone_run import user_metadata
from accelbench.kubectl.gate import exit_of
from accelbench.local.directory import RunRecord, explain
from accelbench.local.results import LoadedResults
from accelbench.problem import suggest_name
from accelbench.verdict.expectations import ExpectationOutcome

PREFIXES = ("benchmarkrun.accelbench.dev", "benchmarkruns.accelbench.dev", "benchmarkrun", "benchmarkruns", "bmr")
"""Kinds that kubectl prints and accepts in front of a slash."""
LISTED_NAMES = 20
"""Most names that a message lists; if there are more, it names at most the nearest one."""


class UnknownRunError(ClusterError):
    """Report that no run has that name, or that the run has no result."""


def bare_name(name: str) -> str:
    """Return NAME of `NAME` or `bmr/NAME`."""
    kind, slash, rest = name.partition("/")
    return rest if slash and kind in PREFIXES else name


def run_named(client: Client, name: str) -> Manifest:
    """Get a run; raises UnknownRunError with the nearest name."""
    if (run := _find_run(client, name)) is None:
        raise UnknownRunError(_explain_unknown_name(client, name, run_names(client)))
    return run


def _find_run(client: Client, name: str) -> Manifest | None:
    """Get a run by `NAME` or `bmr/NAME`; None if there is none, or the name is invalid."""
    if not re.fullmatch(NAME, bare_name(name)):  # in a path it could address something else
        return None
    try:
        return client.get(RUN.path(client.namespace, bare_name(name)))
    except NotFoundError:
        return None


def run_names(client: Client) -> list[str]:
    """Return the names of all runs in the namespace."""
    return [run["metadata"]["name"] for run in client.items(RUN.path(client.namespace))]


def _explain_unknown_name(client: Client, name: str, known: Iterable[str]) -> str:
    """Return the message about an unknown run, with the nearest of the known names."""
    choices = sorted(set(known))
    problem = f'no BenchmarkRun "{bare_name(name)}" in namespace {client.namespace}'
    if not choices:
        return f"{problem}, which has none; see kubectl accelbench ls -A"
    near = suggest_name(bare_name(name), choices)
    if near.startswith("one of") and len(choices) > LISTED_NAMES:
        near = "see kubectl accelbench ls"
    return f"{problem}; {near}"


def parse_run(manifest: Manifest) -> BenchmarkRun:
    """Parse a run; raises ClusterError if another release wrote it."""
    try:
        return BenchmarkRun.model_validate(manifest)
    except ValidationError as error:
        name = manifest["metadata"]["name"]
        raise ClusterError(f"benchmarkrun/{name} cannot be read: {_explain_unreadable(error)}") from error


def parse_result(manifest: Manifest) -> BenchmarkResult:
    """Parse a stored result; raises ClusterError if another release wrote it."""
    try:
        return BenchmarkResult.model_validate(manifest)
    except ValidationError as error:
        name = manifest["metadata"]["name"]
        raise ClusterError(f"benchmarkresult/{name} cannot be read: {_explain_unreadable(error)}") from error


def _explain_unreadable(error: ValidationError) -> str:
    return f"{explain(error)}; is your accelbench of the same release as the operator?"


def read_results(client: Client, name: str) -> LoadedResults:
    """Read what a report of the run needs; a deleted run can still have results. Raises UnknownRunError."""
    run = _find_run(client, name)
    return (
        _to_loaded_results(_results_of_deleted_run(client, name), None)
        if run is None
        else read_run_results(client, run)
    )


def read_run_results(client: Client, run: Manifest) -> LoadedResults:
    """Read the results of an existing run, in the order of its sweep."""
    namespace, uid = run["metadata"]["namespace"], run["metadata"]["uid"]
    stored = client.items(RESULT.path(namespace), labelSelector=f"{labels.RUN_UID}={uid}")
    results = [parse_result(item) for item in stored]
    order = (run.get("status") or {}).get("measuredCases") or []
    places = {case: place for place, case in enumerate(order)}
    return _to_loaded_results(sorted(results, key=lambda result: places.get(result.result.case.name, len(places))), run)


def _results_of_deleted_run(client: Client, name: str) -> list[BenchmarkResult]:
    """Read the results of the latest deleted run of that name."""
    label = bare_name(name)[:MAXIMUM_LABEL].strip("-.")
    stored = client.items(RESULT.path(client.namespace), labelSelector=f"{labels.RUN}={label}") if label else []
    results = [result for result in map(parse_result, stored) if result.result.case.origin.run == bare_name(name)]
    if not results:
        all_results = client.items(RESULT.path(client.namespace))
        deleted = {item["result"]["case"]["origin"]["run"] for item in all_results}
        raise UnknownRunError(_explain_unknown_name(client, name, {*run_names(client), *deleted}))
    results.sort(key=lambda result: result.result.started)
    latest = results[-1].result.case.origin.uid
    return [result for result in results if result.result.case.origin.uid == latest]


def _to_loaded_results(results: Sequence[BenchmarkResult], run: Manifest | None) -> LoadedResults:
    """Return the stored results in the form that reports take."""
    return LoadedResults(
        measured=tuple((result.result, _stored_outcomes(result)) for result in results),
        # Only a pod's log has all blocks; the HTML report is drawn from the launches that the results hold.
        launches=((),) * len(results),
        record=None if run is None else _record(run, results),
    )


def _stored_outcomes(result: BenchmarkResult) -> tuple[ExpectationOutcome, ...]:
    """Return the outcomes of the expectations, as the operator stored them."""
    return tuple(
        ExpectationOutcome(
            Expectation.model_validate(item.model_dump(exclude={"outcome", "message"})),
            item.outcome,
            item.message,
        )
        for item in result.expectations
    )


def _record(run: Manifest, results: Sequence[BenchmarkResult]) -> RunRecord:
    """Return the record of a run as `accelbench run --out` would have written it."""
    status = run.get("status") or {}
    finished = exit_of(run)
    versions = dict.fromkeys(result.result.fingerprint.get("accelbench", "") for result in results)
    return RunRecord(
        accelbench=", ".join(filter(None, versions)),
        started=status.get("startTime") or run["metadata"]["creationTimestamp"],
        finished=status.get("completionTime"),
        exit_code=None if finished is None else int(finished),
        cases=tuple(result.result.case.name for result in results),
        run=parse_run(
            {"metadata": user_metadata(run["metadata"]), **{k: run[k] for k in ("apiVersion", "kind", "spec")}}
        ),
    )


def side_results(client: Client, text: str) -> tuple[Result, ...]:
    """Read the results of a run, or of `series/NAME`, as one side of a comparison; raises UnknownRunError if none."""
    kind, slash, name = text.partition("/")
    if not slash or kind != "series":
        results = read_results(client, text).results
        if not results:
            raise UnknownRunError(f"benchmarkrun/{bare_name(text)} has no result yet")
        return results
    label = name[:MAXIMUM_LABEL].strip("-.")
    stored = client.items(RESULT.path(client.namespace), labelSelector=f"{labels.SERIES}={label}") if label else []
    stored_results = (parse_result(item).result for item in stored)
    results = tuple(result for result in stored_results if result.case.origin.series == name)
    if not results:
        all_results = client.items(RESULT.path(client.namespace))
        known = sorted({str(item["result"]["case"]["origin"]["series"]) for item in all_results})
        problem = f'no series "{name}" in namespace {client.namespace}'
        raise UnknownRunError(
            f"{problem}; {suggest_name(name, known)}" if known else f"{problem}, which has no results"
        )
    return results

"""Runs and results by the names that people give: who is meant, or who is near."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from accelbench.api import labels
from accelbench.api.metadata import MAXIMUM_LABEL, NAME
from accelbench.api.result import BenchmarkResult, Result
from accelbench.api.run import BenchmarkRun, Expectation
from accelbench.cli.files import RunRecord, explain
from accelbench.cli.in_cluster import ClusterError
from accelbench.cli.results import Found
from accelbench.kubectl.again import without_the_clusters
from accelbench.kubectl.gate import exit_of
from accelbench.kubectl.server import RESULTS, RUNS, Manifest, NotThereError, Server, path
from accelbench.problem import nearest
from accelbench.verdict.expectations import ExpectationOutcome

PREFIXES = ("benchmarkrun.accelbench.dev", "benchmarkruns.accelbench.dev", "benchmarkrun", "benchmarkruns", "bmr")
"""As `-o name` writes them, and as kubectl takes them."""
SEVERAL = 20
"""Names that a message lists; of more it names only one that is near."""


class UnknownRunError(ClusterError):
    """There is no such run, or no result of it."""


def bare(name: str) -> str:
    """The name alone, of `bmr/NAME` too."""
    kind, slash, rest = name.partition("/")
    return rest if slash and kind in PREFIXES else name


def run_named(server: Server, name: str) -> Manifest:
    """The run as the server has it; raises UnknownRunError with the nearest name."""
    if (run := _run(server, name)) is None:
        raise UnknownRunError(_unknown(server, name, names(server)))
    return run


def _run(server: Server, name: str) -> Manifest | None:
    """What has no run's name is not asked for: in a path it would mean something else."""
    if not re.fullmatch(NAME, bare(name)):
        return None
    try:
        return server.get(path(server.namespace, RUNS, bare(name)))
    except NotThereError:
        return None


def names(server: Server) -> list[str]:
    """Of all runs in the namespace."""
    return [each["metadata"]["name"] for each in server.items(path(server.namespace))]


def _unknown(server: Server, name: str, known: Iterable[str]) -> str:
    choices = sorted(set(known))
    what = f'no BenchmarkRun "{bare(name)}" in namespace {server.namespace}'
    if not choices:
        return f"{what}, which has none; see kubectl accelbench ls -A"
    near = nearest(bare(name), choices)
    if near.startswith("one of") and len(choices) > SEVERAL:
        near = "see kubectl accelbench ls"
    return f"{what}; {near}"


def parsed(manifest: Manifest) -> BenchmarkRun:
    """The run as this release knows it; raises ClusterError where it was written for another."""
    try:
        return BenchmarkRun.model_validate(manifest)
    except ValidationError as error:
        name = manifest["metadata"]["name"]
        raise ClusterError(f"benchmarkrun/{name} cannot be read: {_why(error)}") from error


def measured(manifest: Manifest) -> BenchmarkResult:
    """The stored result; raises ClusterError likewise."""
    try:
        return BenchmarkResult.model_validate(manifest)
    except ValidationError as error:
        name = manifest["metadata"]["name"]
        raise ClusterError(f"benchmarkresult/{name} cannot be read: {_why(error)}") from error


def _why(error: ValidationError) -> str:
    return f"{explain(error)}; is your accelbench of the same release as the operator?"


def found(server: Server, name: str) -> Found:
    """What there is of a run to report, its results even where it is gone; raises UnknownRunError."""
    run = _run(server, name)
    return _found(_results_alone(server, name), None) if run is None else found_of(server, run)


def found_of(server: Server, run: Manifest) -> Found:
    """The run and the results that are stored, in the order of its sweep."""
    namespace, uid = run["metadata"]["namespace"], run["metadata"]["uid"]
    stored = server.items(path(namespace, RESULTS), labelSelector=f"{labels.RUN_UID}={uid}")
    results = [measured(each) for each in stored]
    order = (run.get("status") or {}).get("measuredCases") or []
    places = {case: place for place, case in enumerate(order)}
    return _found(sorted(results, key=lambda each: places.get(each.result.case.name, len(places))), run)


def _results_alone(server: Server, name: str) -> list[BenchmarkResult]:
    """Of a run that is gone: of several of that name the latest."""
    label = bare(name)[:MAXIMUM_LABEL].strip("-.")
    stored = server.items(path(server.namespace, RESULTS), labelSelector=f"{labels.RUN}={label}") if label else []
    results = [each for each in map(measured, stored) if each.result.case.origin.run == bare(name)]
    if not results:
        gone = {each["result"]["case"]["origin"]["run"] for each in server.items(path(server.namespace, RESULTS))}
        raise UnknownRunError(_unknown(server, name, {*names(server), *gone}))
    latest = max(results, key=lambda each: each.result.started).result.case.origin.uid
    return sorted(
        (each for each in results if each.result.case.origin.uid == latest), key=lambda each: each.result.started
    )


def _found(results: Sequence[BenchmarkResult], run: Manifest | None) -> Found:
    return Found(
        measured=tuple((each.result, _judged(each)) for each in results),
        # Blocks in full are only in a pod's log: its page is drawn from what the results hold of each launch.
        launches=((),) * len(results),
        record=None if run is None else _record(run, results),
    )


def _judged(result: BenchmarkResult) -> tuple[ExpectationOutcome, ...]:
    """As the operator judged them."""
    return tuple(
        ExpectationOutcome(
            Expectation.model_validate(each.model_dump(exclude={"outcome", "message"})), each.outcome, each.message
        )
        for each in result.expectations
    )


def _record(run: Manifest, results: Sequence[BenchmarkResult]) -> RunRecord:
    status = run.get("status") or {}
    finished = exit_of(run)
    versions = dict.fromkeys(each.result.fingerprint.get("accelbench", "") for each in results)
    return RunRecord(
        accelbench=", ".join(filter(None, versions)),
        started=status.get("startTime") or run["metadata"]["creationTimestamp"],
        finished=status.get("completionTime"),
        exit_code=None if finished is None else int(finished),
        cases=tuple(each.result.case.name for each in results),
        run=parsed(
            {"metadata": without_the_clusters(run["metadata"]), **{k: run[k] for k in ("apiVersion", "kind", "spec")}}
        ),
    )


def side(server: Server, text: str) -> tuple[Result, ...]:
    """The results of one side of a comparison: of a run, or of `series/NAME`; raises UnknownRunError without any."""
    kind, slash, name = text.partition("/")
    if not slash or kind != "series":
        results = found(server, text).results
        if not results:
            raise UnknownRunError(f"benchmarkrun/{bare(text)} has no result yet")
        return results
    label = name[:MAXIMUM_LABEL].strip("-.")
    stored = server.items(path(server.namespace, RESULTS), labelSelector=f"{labels.SERIES}={label}") if label else []
    results = tuple(each for each in (measured(one).result for one in stored) if each.case.origin.series == name)
    if not results:
        known = sorted({_series(each) for each in server.items(path(server.namespace, RESULTS))})
        what = f'no series "{name}" in namespace {server.namespace}'
        raise UnknownRunError(f"{what}; {nearest(name, known)}" if known else f"{what}, which has no results")
    return results


def _series(result: dict[str, Any]) -> str:
    return str(result["result"]["case"]["origin"]["series"])

"""Creating runs: all of them or, where one would be refused, none. A run that is there already is never changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.reasons import ConditionReason
from accelbench.api.run import BenchmarkRun, BenchmarkRunSpec
from accelbench.cli.in_cluster import ClusterError
from accelbench.kubectl.gate import condition, is_finished
from accelbench.kubectl.manifests import Written
from accelbench.kubectl.runs import parsed
from accelbench.kubectl.server import CONFLICT, RUNS, Manifest, RefusedError, Server, path

NAME = "benchmarkrun.accelbench.dev"


class ExistsError(ClusterError):
    """Another run has that name; the message says what to do."""


@dataclass(frozen=True)
class Applied:
    """A run as the server has it, created now or found there with the same spec."""

    run: Manifest
    created: bool

    @property
    def name(self) -> str:
        """As `kubectl -o name` writes it."""
        return f"{NAME}/{self.run['metadata']['name']}"

    def told(self) -> str:
        """That it was created, or what of it is there already."""
        if self.created:
            return f"{self.name} created"
        if not is_finished(self.run):
            return f"{self.name} already exists with this spec and has not finished: nothing was created"
        when = (self.run.get("status") or {}).get("completionTime") or "long ago"
        reason = condition(self.run, "Finished")["reason"]
        there = f"{self.name} already exists with this spec, finished {when} ({reason}): "
        if reason == ConditionReason.INVALID_SPEC:
            return f"{there}nothing is measured. Correct the spec, and give the run another name"
        return (
            f"{there}this is its result, and nothing is measured again. For a new run use generateName, or kubectl "
            "accelbench rerun"
        )


def apply(server: Server, written: Sequence[Written]) -> tuple[Applied, ...]:
    """Create what is not there yet; raises ExistsError, RefusedError, and then nothing was created."""
    bodies = [_placed(each, server) for each in written]
    there = [_tried(server, body, each.run) for body, each in zip(bodies, written, strict=True)]
    return tuple(
        Applied(create(server, body), created=True) if found is None else Applied(found, created=False)
        for body, found in zip(bodies, there, strict=True)
    )


def create(server: Server, body: Manifest) -> Manifest:
    """The run as it was stored; raises ExistsError where one of that name is there."""
    try:
        return server.create(path(body["metadata"]["namespace"]), body)
    except RefusedError as error:
        if error.status != CONFLICT:
            raise
        raise ExistsError(f"{error}: give another name, or none to let the cluster choose one") from error


def _placed(written: Written, server: Server) -> Manifest:
    """In its own namespace, or in that of the command; raises ClusterError where `--namespace` names another."""
    content = {key: value for key, value in written.content.items() if key != "status"}
    metadata = written.run.metadata
    if server.insisted and metadata.namespace not in {"", server.namespace}:
        name = metadata.name or metadata.generate_name
        what = f"its manifest is for namespace {metadata.namespace}, but --namespace says {server.namespace}"
        raise ClusterError(f"benchmarkrun/{name}: {what}: change one of them")
    return {**content, "metadata": {**content["metadata"], "namespace": metadata.namespace or server.namespace}}


def _tried(server: Server, body: Manifest, wanted: BenchmarkRun) -> Manifest | None:
    """The run that has this name already, if it asks for the same; None where one can be created."""
    at = path(body["metadata"]["namespace"])
    try:
        server.create(at, body, dryRun="All")
    except RefusedError as error:
        if "does not support dry run" in str(error):  # a webhook with effects of its own: it is asked in earnest alone
            return None
        if error.status != CONFLICT:
            raise
    else:
        return None
    there = server.get(path(body["metadata"]["namespace"], RUNS, wanted.metadata.name))
    name = wanted.metadata.name
    if there["metadata"].get("deletionTimestamp"):
        raise ExistsError(f"benchmarkrun/{name} is being deleted: try again once it is gone")
    if others := differences(wanted.spec, parsed(there).spec):
        raise ExistsError(_another(name, others))
    return there


def _another(name: str, fields: Sequence[str]) -> str:
    if set(fields) == {"runPolicy"}:
        what = f"change that in place, kubectl patch bmr {name}, or give this run another name"
    else:
        what = f"give this run another name, or use generateName; or delete that one, kubectl delete bmr {name}"
    return f"benchmarkrun/{name} already exists, with another {' and another '.join(fields)}: {what}"


def differences(wanted: BenchmarkRunSpec, there: BenchmarkRunSpec) -> tuple[str, ...]:
    """The fields of the spec in which two runs differ, defaults filled in, by their names."""
    one, other = (_fields(each) for each in (wanted, there))
    return tuple(name for name in one if one[name] != other[name])


def _fields(spec: BenchmarkRunSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", by_alias=True)

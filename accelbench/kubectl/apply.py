"""Create all of several runs or, if the server would refuse one, none. An existing run is never changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.api.reasons import ConditionReason
from accelbench.api.run import BenchmarkRun, BenchmarkRunSpec
from accelbench.cluster_api.client import Client, Manifest
from accelbench.cluster_api.errors import ApiError, ClusterError, ConflictError
from accelbench.cluster_api.kinds import RUN
from accelbench.kubectl.gate import condition, is_finished
from accelbench.kubectl.manifests import RunManifest
from accelbench.kubectl.runs import parse_run

KUBECTL_KIND = "benchmarkrun.accelbench.dev"


class ExistsError(ClusterError):
    """Report that another run has that name; the message has advice."""


@dataclass(frozen=True)
class AppliedRun:
    """Hold a run as the server has it, created now or existing with the same spec."""

    run: Manifest
    created: bool

    @property
    def name(self) -> str:
        """Return the name as `kubectl -o name` prints it."""
        return f"{KUBECTL_KIND}/{self.run['metadata']['name']}"

    def describe(self) -> str:
        """Return a line for the user: created, or how the existing run stands."""
        if self.created:
            return f"{self.name} created"
        if not is_finished(self.run):
            return f"{self.name} already exists with this spec and has not finished: nothing was created"
        when = (self.run.get("status") or {}).get("completionTime") or "long ago"
        reason = condition(self.run, "Finished")["reason"]
        finished = f"{self.name} already exists with this spec, finished {when} ({reason}): "
        if reason == ConditionReason.INVALID_SPEC:
            return f"{finished}nothing is measured. Correct the spec, and give the run another name"
        return (
            f"{finished}this is its result, and nothing is measured again. For a new run use generateName, or kubectl "
            "accelbench rerun"
        )


def apply(client: Client, manifests: Sequence[RunManifest]) -> tuple[AppliedRun, ...]:
    """Create the runs that do not exist, after a dry run of all: if one is refused, none is created.

    Raises ClusterError for a refusal, ExistsError for an existing run with another spec.
    """
    bodies = [_with_namespace(manifest, client) for manifest in manifests]
    existing = [_existing_run(client, body, manifest.run) for body, manifest in zip(bodies, manifests, strict=True)]
    return tuple(
        AppliedRun(create(client, body), created=True) if run is None else AppliedRun(run, created=False)
        for body, run in zip(bodies, existing, strict=True)
    )


def create(client: Client, body: Manifest) -> Manifest:
    """Create a run and return it as stored; raises ExistsError if its name is taken."""
    try:
        return client.create(RUN.path(body["metadata"]["namespace"]), body)
    except ConflictError as error:
        raise ExistsError(f"{error.message}: give another name, or none to let the cluster choose one") from error


def differences(one: BenchmarkRunSpec, other: BenchmarkRunSpec) -> tuple[str, ...]:
    """Return the names of the top-level fields in which two specs differ, with defaults filled in."""
    left, right = (spec.model_dump(mode="json", by_alias=True) for spec in (one, other))
    return tuple(name for name in left if left[name] != right[name])


def _with_namespace(manifest: RunManifest, client: Client) -> Manifest:
    """Return the object to create, in the manifest's namespace or else the command's.

    Raises ClusterError if `--namespace` contradicts the manifest.
    """
    content = {key: value for key, value in manifest.content.items() if key != "status"}
    metadata = manifest.run.metadata
    if client.has_requested_namespace and metadata.namespace not in {"", client.namespace}:
        name = metadata.name or metadata.generate_name
        problem = f"its manifest is for namespace {metadata.namespace}, but --namespace says {client.namespace}"
        raise ClusterError(f"benchmarkrun/{name}: {problem}: change one of them")
    return {**content, "metadata": {**content["metadata"], "namespace": metadata.namespace or client.namespace}}


def _existing_run(client: Client, body: Manifest, wanted: BenchmarkRun) -> Manifest | None:
    """Return the run that has this name and spec; None if it can be created, or only a real request can show that.

    Raises ExistsError if the existing run has another spec or is being deleted.
    """
    collection = RUN.path(body["metadata"]["namespace"])
    try:
        client.create(collection, body, dryRun="All")
    except ConflictError:
        pass
    except ApiError as error:
        if "does not support dry run" in error.message:  # a webhook has side effects; only the real request shows more
            return None
        raise
    else:
        return None
    name = wanted.metadata.name
    run = client.get(RUN.path(body["metadata"]["namespace"], name))
    if run["metadata"].get("deletionTimestamp"):
        raise ExistsError(f"benchmarkrun/{name} is being deleted: try again once it is gone")
    if fields := differences(wanted.spec, parse_run(run).spec):
        raise ExistsError(_explain_difference(name, fields))
    return run


def _explain_difference(name: str, fields: Sequence[str]) -> str:
    """Return the message about an existing run that differs in these fields."""
    if set(fields) == {"runPolicy"}:
        advice = f"change that in place, kubectl patch bmr {name}, or give this run another name"
    else:
        advice = f"give this run another name, or use generateName; or delete that one, kubectl delete bmr {name}"
    return f"benchmarkrun/{name} already exists, with another {' and another '.join(fields)}: {advice}"

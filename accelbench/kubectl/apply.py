"""Create several runs: all or, if the server would refuse one of them, none. Never change an existing run."""

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
    """Report that another run has the same name; the message has the remedy."""


@dataclass(frozen=True)
class AppliedRun:
    """Hold a run of the cluster that has the name and the spec of a manifest."""

    run: Manifest
    was_created: bool
    """True if this command created the run; False if it existed before."""

    @property
    def kubectl_name(self) -> str:
        """Return the name as `kubectl -o name` prints it."""
        return f"{KUBECTL_KIND}/{self.run['metadata']['name']}"

    def describe(self) -> str:
        """Return the message for the user about this run."""
        name = self.kubectl_name
        if self.was_created:
            return f"{name} created"
        if not is_finished(self.run):
            return f"{name} already exists with this spec and has not finished: nothing was created"
        completion_time = self.run["status"].get("completionTime", "long ago")  # the schema does not require one
        reason = condition(self.run, "Finished")["reason"]
        outcome = f"{name} already exists with this spec, finished {completion_time} ({reason})"
        if reason == ConditionReason.INVALID_SPEC:
            return f"{outcome}: nothing is measured. Correct the spec, and use kubectl apply"
        return (
            f"{outcome}: this is its result, and nothing is measured again. For a new run use generateName, or kubectl "
            "accelbench rerun"
        )


def apply(client: Client, manifests: Sequence[RunManifest]) -> tuple[AppliedRun, ...]:
    """Create the runs that do not exist yet; create none of them if the server would refuse one.

    To find out, all requests are first sent as dry runs.
    """
    bodies = [_with_namespace(manifest, client) for manifest in manifests]
    existing_runs = [  # None for a run to create
        _dry_run_or_find(client, body, manifest.run) for body, manifest in zip(bodies, manifests, strict=True)
    ]
    applied_runs = []
    for body, existing_run in zip(bodies, existing_runs, strict=True):
        if existing_run is None:
            applied_runs.append(AppliedRun(create(client, body), was_created=True))
        else:
            applied_runs.append(AppliedRun(existing_run, was_created=False))
    return tuple(applied_runs)


def create(client: Client, body: Manifest) -> Manifest:
    """Create a run, and return it as the server stores it; raises ExistsError if its name is taken."""
    try:
        return client.create(RUN.path(body["metadata"]["namespace"]), body)
    except ConflictError as error:
        raise ExistsError(f"{error.message}: give another name, or none to let the cluster choose one") from error


def different_fields(left: BenchmarkRunSpec, right: BenchmarkRunSpec) -> tuple[str, ...]:
    """Return the names of the top-level fields in which two specs differ."""
    left_values = left.model_dump(mode="json", by_alias=True)
    right_values = right.model_dump(mode="json", by_alias=True)
    return tuple(name for name, value in left_values.items() if value != right_values[name])


def _with_namespace(manifest: RunManifest, client: Client) -> Manifest:
    """Return the object to create, in the namespace of its manifest or, if the manifest has none, of the client.

    Raises ClusterError if the manifest has another namespace than the option --namespace.
    """
    # A manifest that was copied from a cluster has the status of another run.
    content = {key: value for key, value in manifest.content.items() if key != "status"}
    metadata = manifest.run.metadata
    has_other_namespace = metadata.namespace not in {"", client.namespace}  # "": the manifest has none
    if client.has_requested_namespace and has_other_namespace:
        name = metadata.name or metadata.generate_name
        problem = f"its manifest is for namespace {metadata.namespace}, but --namespace says {client.namespace}"
        raise ClusterError(f"benchmarkrun/{name}: {problem}: change one of them")
    return {**content, "metadata": {**content["metadata"], "namespace": metadata.namespace or client.namespace}}


def _dry_run_or_find(client: Client, body: Manifest, new_run: BenchmarkRun) -> Manifest | None:
    """Dry-run the creation of `body`; return the run of this name if it exists already, and None otherwise.

    `new_run` is `body`, parsed. Raises ExistsError if the existing run has another spec.
    """
    namespace, name = body["metadata"]["namespace"], new_run.metadata.name
    try:
        client.create(RUN.path(namespace), body, dryRun="All")
    except ConflictError:
        pass  # the run exists
    except ApiError as error:
        # A webhook with side effects prevents dry runs. Only the real request shows if the run can be created.
        if "does not support dry run" in error.message:
            return None
        raise
    else:
        return None
    existing_run = client.get(RUN.path(namespace, name))
    if existing_run["metadata"].get("deletionTimestamp"):
        raise ExistsError(f"benchmarkrun/{name} is being deleted: try again once it is gone")
    fields = different_fields(new_run.spec, parse_run(existing_run).spec)
    if fields:
        reason = condition(existing_run, "Finished").get("reason")
        raise ExistsError(_explain_difference(name, fields, was_refused=reason == ConditionReason.INVALID_SPEC))
    return existing_run


def _explain_difference(name: str, fields: Sequence[str], *, was_refused: bool = False) -> str:
    """Explain that a run of this name exists with other values of these fields of its spec, and what to do.

    `was_refused` is True if the operator found the existing run invalid.
    """
    if was_refused:
        advice = "the operator refused the existing run, so kubectl apply may correct it; or give this run another name"
    elif set(fields) == {"runPolicy"}:  # the only field of an accepted run that can be changed
        advice = f"change it in place with kubectl patch bmr {name}, or give this run another name"
    else:
        advice = f"give this run another name, use generateName, or delete the existing run: kubectl delete bmr {name}"
    return f"benchmarkrun/{name} already exists with another spec ({', '.join(fields)}): {advice}"

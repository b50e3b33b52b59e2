"""A simulated cluster that a test drives step by step, with an API server in memory.

Users, the Job controller and the kubelet are methods: Jobs get pods, and pods end in all the ways in which pods end.
"""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

import aiohttp

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.api.result import Failure
from accelbench.cluster_api.errors import UnreachableError, api_error
from accelbench.document import timestamp
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.cluster import KUEUE, Cluster
from accelbench_operator.runs.observed import TRACKED, observe_job, observe_pod
from accelbench_operator.runs.summary import observe_result
from operator_world.api_server import ApiServer, Id, RefusedError, Version
from operator_world.builders import NAMESPACE, make_headline, make_log, make_result
from operator_world.connection import Answer
from operator_world.simulated_time import SimulatedTime

ENDINGS = (
    "whole",
    "log-lost",
    "log-cut",
    "variant-failed",
    "out-of-memory",
    "evicted",
    "interrupted",
    "deleted",
    "crashed",
    "refused",
)


class KilledError(BaseException):
    """End the operator's process."""


class LiveVersion(Version):
    """Hold an object that tests change in place."""

    @property
    def text(self) -> str:
        return json.dumps(self.manifest)


class PlayedServer(ApiServer):
    version = LiveVersion

    def create(self, plural: str, manifest: Any) -> Version:
        if plural == "jobs":  # the Job controller begins with it at once
            manifest = {**manifest, "status": {"startTime": timestamp(self._time.now())}}
        return super().create(plural, manifest)


class Objects(MutableMapping[str, Any]):
    """Give live access to the objects of a plural in the run's namespace, by name or by another key."""

    def __init__(self, server: ApiServer, plural: str, key: Callable[[Any], str]) -> None:
        self._server, self._plural, self._key = server, plural, key

    def _versions(self) -> dict[str, Version]:
        return {self._key(v.manifest): v for id_, v in self._server.objects.items() if id_.plural == self._plural}

    def __getitem__(self, key: str) -> Any:
        return self._versions()[key].manifest

    def __setitem__(self, key: str, manifest: Any) -> None:
        metadata = manifest["metadata"]
        self._server._store("ADDED", Id(self._plural, metadata["namespace"], metadata["name"]), manifest)

    def __delitem__(self, key: str) -> None:
        version = self._versions()[key]
        self._server.remove(version.id, version.uid)

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions())

    def __len__(self) -> int:
        return len(self._versions())


class DirectApi(KubernetesApi):
    """Send requests of the operator's client to the server without a network; `fault` makes some fail."""

    def __init__(self, cluster: "PlayedCluster", fault: Callable[[], str]) -> None:
        self._cluster, self._fault = cluster, fault
        self.requests = Counter()

    async def _send(self, method: str, path: str, *, query: Any = None, body: Any = None, **_: Any) -> Answer:
        self._may_fail()
        try:
            text = self._cluster.answer(method, path, query or {}, json.loads(json.dumps(body or {})))
        except RefusedError as error:
            raise api_error(error.code, error.body) from error
        if method != "GET":
            self._may_fail()
        return Answer(200, text)

    def _may_fail(self) -> None:
        match self._fault():
            case "kill":
                raise KilledError
            case "time-out":
                raise UnreachableError(0, "no answer") from aiohttp.ServerDisconnectedError()
            case "refuse":
                raise api_error(500, '{"message": "etcdserver: leader changed"}')


class PlayedCluster(Cluster):
    """Simulate a cluster as above. `fault` decides failures before and after every request."""

    def __init__(self, run: Any, fault: Callable[[], str]) -> None:
        super().__init__(DirectApi(self, fault), lambda: True)
        self._time = SimulatedTime()
        server = self.server = PlayedServer(self._time, Random(0))  # noqa: S311 - the same each time
        self.jobs = Objects(server, "jobs", _name)
        self.pods = Objects(server, "pods", lambda pod: pod["metadata"]["ownerReferences"][0]["name"])
        """By their Job's name."""
        self.results = Objects(server, "benchmarkresults", _name)
        self.claim_templates = Objects(server, "resourceclaimtemplates", _name)
        self.events = Objects(server, "events", _name)
        self.logs = server.logs
        """By a pod's UID."""
        self.queues: tuple[str, ...] = ("team-a",)
        """Of Kueue, in the run's namespace."""
        self.workload: Any = None
        """What Kueue made of whatever Job is asked about."""
        self.created: list[str] = []
        """Names of all Jobs that were ever created."""
        self.stored: list[str] = []
        """Names of all results that were ever stored."""
        self.discarded_whole: list[str] = []
        """Cases whose Job was deleted although its pod had ended with a whole result that was not stored."""
        self._pods_made = 0
        self.run_versions: list[Any] = []
        """Every version of the run, in the order in which a watch delivers them."""
        server.changed.append(self._changed)
        self._run = Id("benchmarkruns", run["metadata"]["namespace"], run["metadata"]["name"])
        server._alive.add(run["metadata"]["uid"])
        server._store("ADDED", self._run, copy.deepcopy(run))

    @property
    def now(self) -> datetime:
        return self._time.now()

    @property
    def run(self) -> Any:
        """Return the stored run, to be changed in place; None after its deletion."""
        version = self.server.objects.get(self._run)
        return version.manifest if version else None

    def answer(self, method: str, path: str, query: dict[str, Any], body: Any) -> str:
        """Return the answer of the API server, which has Kueue."""
        if path == f"/apis/{KUEUE}":
            return json.dumps({"preferredVersion": {"groupVersion": f"{KUEUE}/v1"}})
        if path.startswith(f"/apis/{KUEUE}/"):
            queues = [{"metadata": {"name": name}, "spec": {"clusterQueue": "shared"}} for name in self.queues]
            workloads = [self.workload] if self.workload else []
            return json.dumps({"metadata": {}, "items": workloads if path.endswith("/workloads") else queues})
        return self.server.answer(method, path, query, body)

    def post(self, event: Any) -> None:
        """Create an Event as another user."""
        metadata = {"namespace": NAMESPACE, "name": f"event-{len(self.events)}"}
        self.server.create("events", {"metadata": metadata, **event})

    def list_into(self, store: Store) -> None:
        """Put the objects of a fresh list into the store."""
        since = store.tick
        jobs = [seen for job in self.jobs.values() if (seen := observe_job(job))]
        results = [seen for result in self.results.values() if (seen := observe_result(result))]
        store.replace("Job", None, jobs, since)
        store.replace("Pod", None, [observe_pod(pod) for pod in self.pods.values()], since)
        store.replace("BenchmarkResult", None, results, since)

    def set_policy(self, **policy: Any) -> None:
        """Change the policy of the run as a user."""

        def change(run: Any) -> None:
            run["spec"]["runPolicy"] = run["spec"].get("runPolicy", {}) | policy
            run["metadata"]["generation"] += 1

        if self.run is not None:
            self.server.change(self._run, self.run["metadata"]["uid"], change)

    def start_pods(self) -> None:
        """Create and start a pod for every admitted Job without one, or whose pod was taken back."""
        for name, job in list(self.jobs.items()):
            pod = self.pods.get(name)
            if not job["spec"]["suspend"] and not is_over(job) and (pod is None or _had_to_go(pod)):
                self.pods[name] = self._pod(name, job)

    def hold(self, name: str) -> None:
        """Suspend that Job as its queue: its pod is deleted with its measurements."""
        job, pod = self.jobs[name], self.pods.get(name)
        if is_over(job):
            return
        job["spec"]["suspend"] = True
        job["status"] = {"conditions": [self._suspension("True")]}
        if pod and pod["status"]["phase"] == "Running":
            self.end(name, "taken-back")
            pod["metadata"] |= {"deletionTimestamp": timestamp(self.now), "finalizers": []}

    def admit(self, name: str) -> None:
        """Resume that Job as its queue."""
        job = self.jobs[name]
        if job["spec"]["suspend"]:
            job["spec"]["suspend"] = False
            job["status"] = {"conditions": [self._suspension("False")], "startTime": timestamp(self.now)}

    def end(self, name: str, how: str) -> None:
        """End the pod of that Job in one of `ENDINGS`, and the Job with it."""
        pod, job = self.pods.get(name), self.jobs.get(name)
        if pod is None or pod["status"]["phase"] != "Running":
            return
        if how == "deleted":
            del self.pods[name]
            self._fail(job, "PodFailurePolicy")
            return
        case = Case.model_validate_json(pod["metadata"]["annotations"][labels.CASE_ANNOTATION])
        exit_code, reason, message, log = ending(case, how)
        if log:
            self.logs[pod["metadata"]["uid"]] = log
        if how == "evicted":
            pod["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}
            ]
        state = {"exitCode": exit_code, "reason": reason, "message": message}
        state |= {"startedAt": timestamp(self.now), "finishedAt": timestamp(self.now)}
        pod["status"]["phase"] = "Failed" if exit_code else "Succeeded"
        pod["status"]["containerStatuses"] = [{"name": "runner", "state": {"terminated": state}}]
        if how == "taken-back":
            return
        if exit_code:
            self._fail(job, "BackoffLimitExceeded")
        elif job:
            job["status"]["conditions"] = [{"type": "Complete", "status": "True"}]

    def delete(self, name: str) -> None:
        """Delete the Job with its pods."""
        del self.jobs[name]

    def _changed(self, kind: str, version: Version, _: Version | None) -> None:
        match version.id.plural, kind:
            case "benchmarkruns", "ADDED" | "MODIFIED":
                self.run_versions.append(copy.deepcopy(version.manifest))
            case "jobs", "ADDED":
                self.created.append(version.id.name)
            case "jobs", "DELETED":
                self._job_deleted(version)
            case "benchmarkresults", "ADDED":
                self.stored.append(version.id.name)

    def _job_deleted(self, job: Version) -> None:
        pod = self.pods.get(job.id.name)
        case = job.manifest["metadata"]["labels"][labels.CASE]
        stored = {result["metadata"]["labels"].get(labels.CASE) for result in self.results.values()}
        if pod and pod["status"]["phase"] == "Succeeded" and case not in stored:
            self.discarded_whole.append(case)
        if pod:
            del self.pods[job.id.name]

    def advance(self, duration: timedelta) -> None:
        """Let time pass."""
        self._time.run_for(duration.total_seconds())

    def clock(self) -> datetime:
        """Return the time."""
        return self.now

    def _pod(self, name: str, job: Any) -> Any:
        template = job["spec"]["template"]["metadata"]
        self._pods_made += 1
        pod = f"{name}-pod-{self._pods_made}"
        return {
            "metadata": {
                "name": pod,
                "namespace": job["metadata"]["namespace"],
                "uid": pod,
                "finalizers": [TRACKED],
                "labels": template["labels"] | {"batch.kubernetes.io/job-name": name},
                "annotations": dict(template["annotations"]),
                "creationTimestamp": timestamp(self.now),
                "ownerReferences": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "name": name,
                        "uid": job["metadata"]["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": copy.deepcopy(job["spec"]["template"]["spec"]),
            "status": {
                "phase": "Running",
                "startTime": timestamp(self.now),
                "containerStatuses": [{"name": "runner", "state": {"running": {"startedAt": timestamp(self.now)}}}],
            },
        }

    def _fail(self, job: Any, reason: str) -> None:
        if job:
            job["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": reason}]

    def _suspension(self, status: str) -> dict[str, str]:
        return {"type": "Suspended", "status": status, "lastTransitionTime": timestamp(self.now)}


def _name(manifest: Any) -> str:
    return str(manifest["metadata"]["name"])


def is_over(job: Any) -> bool:
    """Return whether the Job is Complete or Failed."""
    return any(each["type"] in {"Complete", "Failed"} for each in job["status"].get("conditions") or ())


def _had_to_go(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def ending(case: Case, how: str) -> tuple[int, str, str, str]:
    """Return exit code, reason, termination message and log."""
    failure = Failure(reason="Raised", message="oh", round=1) if how == "variant-failed" else None
    result = make_result(case, failure=failure)
    partial = make_result(case, complete=False)
    log = make_log(result, partial)
    without_result = "\n".join(line for line in log.splitlines() if " result " not in line)
    headline = make_headline(result)
    endings = {
        "log-lost": (0, "Completed", headline, ""),
        "log-cut": (0, "Completed", headline, log[: len(log) // 2]),
        "out-of-memory": (
            137,
            "OOMKilled",
            make_headline(result, state="running", running="jax/jit", digest=None),
            without_result,
        ),
        "evicted": (143, "Error", "", ""),
        "taken-back": (143, "Error", make_headline(partial), make_log(partial)),
        "interrupted": (143, "Error", make_headline(partial), make_log(partial)),
        "crashed": (3, "Error", "", ""),
        "hung": (1, "Error", "", ""),
        "refused": (2, "Error", make_headline(result, state="failed", digest=None, message="no such thing"), ""),
    }
    return endings.get(how, (0, "Completed", headline, log))

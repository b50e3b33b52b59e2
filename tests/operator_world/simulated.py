"""A cluster that exists in memory: Jobs make pods, pods end in all the ways that pods end, and requests fail.

The operator's own code runs against it: only the requests of `Cluster` are played, with their preconditions.
"""

# ruff: noqa: ARG002 - a method has the parameters of the request that it plays

import copy
import itertools
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.api.result import Failure
from accelbench.cluster_api.errors import ApiError, ConflictError, NotFoundError, UnreachableError
from accelbench.document import timestamp
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.observed import TRACKED, observe_job, observe_pod, observe_result
from operator_world.builders import NOW, make_headline, make_log, make_result

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
    """The operator's process ends here."""


class SimulatedCluster:
    """See `accelbench_operator.runs.cluster.Cluster`. `fault` says, at both sides of every request, what goes wrong."""

    def __init__(self, run: Any, fault: Callable[[], str]) -> None:
        self.now = NOW
        self.run = run
        self.jobs: dict[str, Any] = {}
        self.pods: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.claim_templates: dict[str, Any] = {}
        self.queues: tuple[str, ...] = ("team-a",)
        """Of Kueue, in the run's namespace."""
        self.workload: Any = None
        """What Kueue made of whatever Job is asked about."""
        self.logs: dict[str, str] = {}
        self.events: dict[str, Any] = {}
        self.posted: list[Any] = []
        """Events that others have posted."""
        self.created: list[str] = []
        """Names of all Jobs that were ever created."""
        self.stored: list[str] = []
        """Names of all results that were ever stored."""
        self.discarded_whole: list[str] = []
        """Cases whose Job was deleted although its pod had ended with a whole result that was not stored."""
        self._fault = fault
        self._pods_made = 0
        self._versions = itertools.count(2)
        self.told: list[Any] = [copy.deepcopy(run)]
        """Every version of the run, as a watch tells of them in turn."""

    async def get_run(self, namespace: str, name: str) -> Any:
        """See `Cluster`."""
        self._may_fail()
        return copy.deepcopy(self.run)

    async def put_run_status(self, run: Any) -> Any:
        """See `Cluster`."""
        self._may_fail()
        if self.run is None or run["metadata"]["resourceVersion"] != self.run["metadata"]["resourceVersion"]:
            raise ConflictError(409, "the object has been modified")
        self.run["status"] = copy.deepcopy(run["status"])
        self._touch()
        self._may_fail()
        return copy.deepcopy(self.run)

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """See `Cluster`."""
        self._may_fail()
        self.run = None
        self._may_fail()

    async def get_job(self, namespace: str, name: str) -> Any:
        """See `Cluster`."""
        self._may_fail()
        return copy.deepcopy(self.jobs.get(name))

    async def create_job(self, job: Any) -> Any:
        """See `Cluster`."""
        self._may_fail()
        name = job["metadata"]["name"]
        if name in self.jobs:
            raise ConflictError(409, "already exists")
        self.created.append(name)
        stored = copy.deepcopy(job)
        stored["metadata"] |= {"uid": f"{name}-{len(self.created)}", "creationTimestamp": timestamp(self.now)}
        stored["status"] = {"startTime": timestamp(self.now)}
        self.jobs[name] = stored
        self._may_fail()
        return copy.deepcopy(stored)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """See `Cluster`."""
        self._may_fail()
        if name in self.jobs and self.jobs[name]["metadata"]["uid"] == uid:
            self.delete(name)
        self._may_fail()

    async def get_claim_template(self, namespace: str, name: str) -> Any:
        """See `Cluster`."""
        self._may_fail()
        return copy.deepcopy(self.claim_templates.get(name))

    async def create_claim_template(self, template: Any) -> None:
        """See `Cluster`."""
        self._may_fail()
        name = template["metadata"]["name"]
        if name in self.claim_templates:
            raise ConflictError(409, "already exists")
        self.claim_templates[name] = copy.deepcopy(template)
        self._may_fail()

    async def list_pods(self, namespace: str, job: str) -> list[Any]:
        """See `Cluster`."""
        self._may_fail()
        return [copy.deepcopy(self.pods[job])] if job in self.pods else []

    async def list_workloads(self, namespace: str, job_uid: str) -> list[Any]:
        """See `Cluster`."""
        self._may_fail()
        return [self.workload] if self.workload else []

    async def list_local_queues(self, namespace: str) -> list[Any]:
        """See `Cluster`."""
        self._may_fail()
        return [{"metadata": {"name": name}} for name in self.queues]

    async def get_result(self, namespace: str, name: str) -> Any:
        """See `Cluster`."""
        self._may_fail()
        return copy.deepcopy(self.results.get(name))

    async def create_result(self, result: Any) -> Any:
        """See `Cluster`."""
        self._may_fail()
        name = result["metadata"]["name"]
        if name in self.results:
            raise ConflictError(409, "already exists")
        self.stored.append(name)
        self.results[name] = copy.deepcopy(result)
        self.results[name]["metadata"]["creationTimestamp"] = timestamp(self.now)
        self._may_fail()
        return copy.deepcopy(self.results[name])

    async def read_log(self, namespace: str, pod: str) -> str:
        """See `Cluster`."""
        self._may_fail()
        if pod not in self.logs:
            raise NotFoundError(404, f'pods "{pod}" not found')
        return self.logs[pod]

    async def list_events(self, namespace: str) -> AsyncIterator[Any]:
        """See `Cluster`."""
        self._may_fail()
        for event in self.posted:
            yield event

    async def create_event(self, event: Any) -> None:
        """See `Cluster`."""
        self._may_fail()
        if event["metadata"]["name"] in self.events:
            raise ConflictError(409, "already exists")
        self.events[event["metadata"]["name"]] = event

    def _may_fail(self) -> None:
        match self._fault():
            case "kill":
                raise KilledError
            case "time-out":
                raise UnreachableError(0, "no answer")
            case "refuse":
                raise ApiError(500, "etcdserver: leader changed")

    def list_into(self, store: Store) -> None:
        """What a fresh list brings."""
        since = store.now
        jobs = [seen for job in self.jobs.values() if (seen := observe_job(job))]
        results = [seen for result in self.results.values() if (seen := observe_result(result))]
        store.replace("Job", None, jobs, since)
        store.replace("Pod", None, [observe_pod(pod) for pod in self.pods.values()], since)
        store.replace("BenchmarkResult", None, results, since)

    def set_policy(self, **policy: Any) -> None:
        """A user changes the run."""
        if self.run is not None:
            self.run["spec"]["runPolicy"] = self.run["spec"].get("runPolicy", {}) | policy
            self.run["metadata"]["generation"] += 1
            self._touch()

    def start_pods(self) -> None:
        """Every Job that may run and has no pod but one that had to go gets one, and its container starts."""
        for name, job in self.jobs.items():
            pod = self.pods.get(name)
            if not job["spec"]["suspend"] and not is_over(job) and (pod is None or _had_to_go(pod)):
                self.pods[name] = self._pod(name, job)

    def hold(self, name: str) -> None:
        """The queue of that Job takes it back: its pod has to go, with whatever it measured."""
        job, pod = self.jobs[name], self.pods.get(name)
        if is_over(job):
            return
        job["spec"]["suspend"] = True
        job["status"] = {"conditions": [self._suspension("True")]}
        if pod and pod["status"]["phase"] == "Running":
            self.end(name, "taken-back")
            pod["metadata"] |= {"deletionTimestamp": timestamp(self.now), "finalizers": []}

    def admit(self, name: str) -> None:
        """The queue of that Job lets it run."""
        job = self.jobs[name]
        if job["spec"]["suspend"]:
            job["spec"]["suspend"] = False
            job["status"] = {"conditions": [self._suspension("False")], "startTime": timestamp(self.now)}

    def end(self, name: str, how: str) -> None:
        """The pod of that Job ends, one of `ENDINGS`, and the Job with it."""
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
            self.logs[pod["metadata"]["name"]] = log
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
        """The Job goes, and its pods with it."""
        job = self.jobs.pop(name)
        pod = self.pods.pop(name, None)
        case = job["metadata"]["labels"][labels.CASE]
        stored = {result["metadata"]["labels"][labels.CASE] for result in self.results.values()}
        if pod and pod["status"]["phase"] == "Succeeded" and case not in stored:
            self.discarded_whole.append(case)

    def advance(self, duration: timedelta) -> None:
        """Time passes."""
        self.now += duration

    def clock(self) -> datetime:
        """The time."""
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
                "labels": template["labels"],
                "annotations": template["annotations"],
                "creationTimestamp": timestamp(self.now),
                "ownerReferences": [{"name": name, "uid": job["metadata"]["uid"], "controller": True}],
            },
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

    def _touch(self) -> None:
        self.run["metadata"]["resourceVersion"] = str(next(self._versions))
        self.told.append(copy.deepcopy(self.run))


def is_over(job: Any) -> bool:
    """Whether the Job is Complete or Failed."""
    return any(each["type"] in {"Complete", "Failed"} for each in job["status"].get("conditions") or ())


def _had_to_go(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def ending(case: Case, how: str) -> tuple[int, str, str, str]:
    """Exit code, reason, termination message and log."""
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
        "refused": (2, "Error", make_headline(result, state="failed", digest=None, message="no such thing"), ""),
    }
    return endings.get(how, (0, "Completed", headline, log))

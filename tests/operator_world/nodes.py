"""Simulated nodes: the Job controller, the scheduler, kubelets, and a queue that suspends Jobs.

What becomes of a pod is its fate, drawn by whoever plays. A node that is lost measures no more, and its pod stays as it
was until the cluster gives it up.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import NamedTuple

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.cluster_api.kinds import JOB
from accelbench.document import timestamp
from accelbench_operator.engine.kinds import controller_of, controller_uid
from operator_world.api_server import ApiServer, Id, Manifest, Version
from operator_world.played import ending
from operator_world.simulated_time import SimulatedTime

NODE_GIVEN_UP_SECONDS = 300.0
POD_FORGOTTEN_SECONDS = 2400.0
DEADLINE = "deadline"
NODE_LOST = "node-lost"
FORGED = "forged"
"""Label of pods that a test has somebody else make."""


class Fate(NamedTuple):
    """Define the end of a pod: one of `simulated.ENDINGS`, `DEADLINE` or `NODE_LOST`."""

    waits: float
    """Seconds until its container runs."""
    lasts: float
    """Seconds from then on."""
    how: str


class Nodes:
    """Simulate nodes as above. `broken` gets every violation of an invariant."""

    def __init__(
        self,
        time: SimulatedTime,
        server: ApiServer,
        random: Random,
        fate: Callable[[], Fate],
        broken: Callable[[str], None],
    ) -> None:
        self._time = time
        self._server = server
        self._random = random
        self._fate = fate
        self._broken = broken
        self.clock_error = timedelta()
        """How far the nodes' clocks are ahead."""
        self.ending: Callable[[Version, Case, str], tuple[int, str, str, str]] = lambda _, case, how: ending(case, how)
        """Exit code, reason, termination message and log of a pod that ends."""
        self._lost: set[str] = set()
        self._numbers = itertools.count(1)
        self.measuring: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
        """UIDs of pods whose container runs, by the UID of the run and the case."""
        server.changed.append(self._changed)

    def _changed(self, kind: str, version: Version, before: Version | None) -> None:
        if version.id.plural == "jobs" and kind != "DELETED":
            self._job_changed(version)
        elif version.id.plural == "pods" and kind == "DELETED":
            self._stop(version)
            self._soon(lambda: self._pod_gone(version))
        elif version.id.plural == "pods" and kind == "MODIFIED":
            deleted = version.manifest["metadata"].get("deletionTimestamp")
            if deleted and not before.manifest["metadata"].get("deletionTimestamp"):
                self._terminate(version)

    def _soon(self, happen: Callable[[], object], least: float = 0.05, most: float = 2.0) -> None:
        self._time.later(self._random.uniform(least, most), happen)

    # The Job controller, and a queue.

    def _job_changed(self, job: Version) -> None:
        if _is_over(job.manifest):
            return
        if not job.manifest["spec"].get("suspend"):
            self._soon(lambda: self._make_pod(job.id, job.uid))
        elif pods := self._pods_of(job.id):
            for pod in pods:
                self._server.delete(pod.id, pod.uid)
        elif labels.QUEUE in job.manifest["metadata"]["labels"]:
            self._soon(lambda: self._set_suspended(job.id, job.uid, suspended=False), 1.0, 120.0)

    def preempt(self, id_: Id) -> None:
        """Let the queue take back a Job that it had admitted."""
        job = self._server.objects[id_]
        if labels.QUEUE in job.manifest["metadata"]["labels"] and not _is_over(job.manifest):
            self._set_suspended(id_, job.uid, suspended=True)

    def _set_suspended(self, id_: Id, uid: str, *, suspended: bool) -> None:
        def change(job: Manifest) -> None:
            job["spec"]["suspend"] = suspended
            if suspended:
                job.get("status", {}).pop("startTime", None)

        self._server.change(id_, uid, change)

    def _make_pod(self, id_: Id, uid: str) -> None:
        job = self._server.objects.get(id_)
        if job is None or job.uid != uid or _is_over(job.manifest) or job.manifest["spec"].get("suspend"):
            return
        if self._pods_of(id_):
            return
        if not job.manifest.get("status", {}).get("startTime"):
            started = timestamp(self._time.now())
            self._server.change(id_, uid, lambda job: job.setdefault("status", {}).update(startTime=started))
        template = job.manifest["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": id_.name, "uid": uid, "controller": True}
        pod = self._server.create(
            "pods",
            {
                "metadata": {
                    "name": f"{id_.name}-{next(self._numbers):05d}",
                    "namespace": id_.namespace,
                    "labels": {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": id_.name},
                    "annotations": template["metadata"]["annotations"],
                    "ownerReferences": [owner],
                },
                "spec": template["spec"],
                "status": {"phase": "Pending"},
            },
        )
        fate = self._fate()
        self._time.later(fate.waits / 2, lambda: self._accept(pod, fate))

    def _pods_of(self, job: Id) -> list[Version]:
        uid = self._server.objects[job].uid
        return [pod for id_, pod in self._server.objects.items() if id_.plural == "pods" and _owner(pod) == uid]

    def _pod_gone(self, pod: Version) -> None:
        job = self._server.objects.get(_job_of(pod))
        if job is None or job.uid != _owner(pod):
            return
        if job.manifest["spec"].get("suspend"):
            self._job_changed(job)
        else:
            self._end_job(job.id, job.uid, succeeded=False, reason="PodFailurePolicy")

    def _end_job(self, id_: Id, uid: str, *, succeeded: bool, reason: str = "BackoffLimitExceeded") -> None:
        def change(job: Manifest) -> None:
            if not _is_over(job):
                condition = {"type": "Complete"} if succeeded else {"type": "Failed", "reason": reason}
                job.setdefault("status", {})["conditions"] = [{**condition, "status": "True"}]

        self._server.change(id_, uid, change)

    # Kubelets.

    def _accept(self, pod: Version, fate: Fate) -> None:
        if not self._is_going(pod):
            return
        accepted = timestamp(self._time.now() + self.clock_error)
        self._server.change(pod.id, pod.uid, lambda body: body["status"].update(startTime=accepted))
        self._time.later(fate.waits / 2, lambda: self._start(pod, fate))
        self._time.later(pod.manifest["spec"]["activeDeadlineSeconds"], lambda: self._past_deadline(pod))

    def _start(self, pod: Version, fate: Fate) -> None:
        if not self._is_going(pod):
            return
        others = self.measuring[_case_of(pod)]
        if others:
            self._broken(f"pod {pod.id.name} measures together with {sorted(others)}")
        others.add(pod.uid)
        started = timestamp(self._time.now() + self.clock_error)

        def change(body: Manifest) -> None:
            body["status"] |= {"phase": "Running"}
            body["status"]["containerStatuses"] = [{"name": "runner", "state": {"running": {"startedAt": started}}}]

        self._server.change(pod.id, pod.uid, change)
        if fate.how == DEADLINE:  # the runner hangs until it ends itself
            self._time.later(_runner_limit(pod), lambda: self._end(pod, "hung"))
        else:
            self._time.later(fate.lasts, lambda: self._end(pod, fate.how))

    def _end(self, pod: Version, how: str) -> None:
        if not self._is_going(pod):
            return
        if how == "deleted":
            self._server.delete(pod.id, pod.uid)
        elif how == NODE_LOST:
            self._stop(pod)
            self._lost.add(pod.uid)
            self._time.later(NODE_GIVEN_UP_SECONDS, lambda: self._server_deletes(pod))
        else:
            self._report(pod, how)

    def _report(self, pod: Version, how: str) -> None:
        case = Case.model_validate_json(pod.manifest["metadata"]["annotations"][labels.CASE_ANNOTATION])
        exit_code, reason, message, log = self.ending(pod, case, how)
        now = timestamp(self._time.now() + self.clock_error)
        if log:
            self._server.logs[pod.uid] = log

        def change(body: Manifest) -> None:
            if how == "evicted":
                disruption = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
                body["status"]["conditions"] = [disruption | {"message": "drained"}]
            state = {"exitCode": exit_code, "reason": reason, "message": message, "finishedAt": now}
            running = body["status"].get("containerStatuses", [{"state": {"running": {}}}])[0]["state"]["running"]
            body["status"]["phase"] = "Failed" if exit_code else "Succeeded"
            body["status"]["containerStatuses"] = [{"name": "runner", "state": {"terminated": {**running, **state}}}]

        self._stop(pod)
        self._server.change(pod.id, pod.uid, change)
        self._soon(lambda: self._end_job(_job_of(pod), _owner(pod), succeeded=not exit_code))

    def _past_deadline(self, pod: Version) -> None:
        if not self._is_going(pod):
            return

        def change(body: Manifest) -> None:
            body["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded"}

        self._stop(pod)
        self._server.change(pod.id, pod.uid, change)
        self._soon(lambda: self._end_job(_job_of(pod), _owner(pod), succeeded=False))

    def _terminate(self, pod: Version) -> None:
        if pod.uid in self._lost:
            self._time.later(POD_FORGOTTEN_SECONDS, lambda: self._server.remove(pod.id, pod.uid))
            return
        self._soon(lambda: self._stopped(pod), 0.5, 29.0)

    def _stopped(self, pod: Version) -> None:
        current = self._server.objects.get(pod.id)
        if current and current.uid == pod.uid and current.manifest["status"]["phase"] == "Running":
            self._report(pod, "interrupted")
        self._stop(pod)
        self._soon(lambda: self._server.remove(pod.id, pod.uid))

    def _server_deletes(self, pod: Version) -> None:
        self._server.delete(pod.id, pod.uid)

    def _is_going(self, pod: Version) -> bool:
        current = self._server.objects.get(pod.id)
        if current is None or current.uid != pod.uid or pod.uid in self._lost:
            return False
        deleted = current.manifest["metadata"].get("deletionTimestamp")
        return not deleted and current.manifest["status"]["phase"] in {"Pending", "Running"}

    def _stop(self, pod: Version) -> None:
        self.measuring[_case_of(pod)].discard(pod.uid)
        if not self.measuring[_case_of(pod)]:
            del self.measuring[_case_of(pod)]


def _runner_limit(pod: Version) -> float:
    document = pod.manifest["metadata"]["annotations"][labels.CASE_ANNOTATION]
    return Case.model_validate_json(document).measurement.runner_limit_seconds


def _is_over(job: Manifest) -> bool:
    return any(each["type"] in {"Complete", "Failed"} for each in job.get("status", {}).get("conditions") or ())


def _owner(pod: Version) -> str:
    """Return the UID of the Job that controls the pod."""
    return controller_uid(pod.manifest, JOB)


def _job_of(pod: Version) -> Id:
    return Id("jobs", pod.id.namespace, controller_of(pod.manifest).get("name", ""))


def _case_of(pod: Version) -> tuple[str, str, str]:
    """Return the run and the case, or the UID of the Job for a foreign pod."""
    marks = pod.manifest["metadata"]["labels"]
    return marks[labels.RUN_UID], marks[labels.CASE], _owner(pod) if FORGED in marks else ""

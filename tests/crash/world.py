"""A cluster that plays the pods of many lives at once, and keeps a ledger of all that ever was there."""

import asyncio
import contextlib
import secrets
import threading
from collections import defaultdict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.document import timestamp
from cluster.cluster import Cluster
from crash.lives import Life
from operator_world.builders import make_headline, make_log, make_result
from operator_world.client import Client, until
from operator_world.fake_kubelet import NODE, FakeKubelet

MEASURES_SECONDS = 0.3
RUNS, RESULTS = "/apis/accelbench.dev/v1alpha1/benchmarkruns", "/apis/accelbench.dev/v1alpha1/benchmarkresults"
JOBS, PODS, NAMESPACES = "/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/namespaces"
Manifest = dict[str, Any]
Name = tuple[str, str]
"""Namespace and name."""


@dataclass
class Ledger:
    """What there ever was, by namespace and name."""

    jobs: defaultdict[Name, set[str]] = field(default_factory=lambda: defaultdict(set))
    """UIDs: more than one is a Job that was made twice."""
    results: defaultdict[Name, set[str]] = field(default_factory=lambda: defaultdict(set))
    runs: dict[Name, Manifest] = field(default_factory=dict)
    """As they are, or were last."""
    gone: set[Name] = field(default_factory=set)
    """Runs that were deleted."""
    measuring: defaultdict[Name, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By namespace and case: the Jobs whose pods run now. A Job has two where its controller's request was cut off."""
    violations: list[str] = field(default_factory=list)


class World:
    """Plays every pod as the life of its run says. Use as a context manager."""

    def __init__(self, cluster: Cluster, kubelet: FakeKubelet) -> None:
        self.cluster, self._kubelet = cluster, kubelet
        self.ledger = Ledger()
        self._lives: dict[Name, Life] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._open = self._wait(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def namespace(self) -> str:
        """A new one, once pods can be made in it."""
        name = f"crash-{secrets.token_hex(4)}"
        self._wait(self._open.create(NAMESPACES, {"metadata": {"name": name}}))
        accounts = f"{NAMESPACES}/{name}/serviceaccounts"
        self._wait(until(self._open, accounts, 1, lambda account: account["metadata"]["name"] == "default"))
        return name

    def drop(self, namespace: str) -> None:
        """Have it deleted, with all that is in it."""
        self._wait(self._open.delete_all(f"{NAMESPACES}/{namespace}"))

    def apply(self, namespace: str, *runs: Manifest) -> None:
        """As a user does."""
        path = RUNS.replace("/benchmarkruns", f"/namespaces/{namespace}/benchmarkruns")
        self._wait(self._open.create_all(path, runs))

    def live(self, namespace: str, run: str, life: Life) -> None:
        """The pods of the run of that name will do as its life says."""
        self._lives[namespace, run] = life

    def status(self, namespace: str, run: str) -> Manifest:
        """Of a run, as it was last."""
        status: Manifest = self.ledger.runs.get((namespace, run), {}).get("status") or {}
        return status

    def has_ended(self, namespace: str, run: str) -> bool:
        """Whether a run of that life has come to its end."""
        if not self._lives[namespace, run].phase:
            return (namespace, run) in self.ledger.gone
        return is_finished(self.status(namespace, run))

    def jobs_left(self, namespace: str, run: str) -> list[str]:
        """The names of Jobs that are there still."""
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        return [name_of(job)[1] for job in self._wait(self._open.items(path)) if run_of(job) == run]

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _begin(self) -> Client:
        client = await Client(self.cluster.kubeconfig).__aenter__()
        parts = (self._note_jobs, self._note_results, self._note_runs, self._play_pods)
        self._tasks = [asyncio.create_task(part(client)) for part in parts]
        return client

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._open.__aexit__()

    async def _note_jobs(self, client: Client) -> None:
        async for kind, job in client.follow(JOBS):
            if kind != "LISTED":
                self.ledger.jobs[name_of(job)].add(job["metadata"]["uid"])

    async def _note_results(self, client: Client) -> None:
        async for kind, result in client.follow(RESULTS):
            if kind != "LISTED":
                self.ledger.results[name_of(result)].add(result["metadata"]["uid"])

    async def _note_runs(self, client: Client) -> None:
        async for kind, run in client.follow(RUNS):
            if kind == "LISTED":
                continue
            name = name_of(run)
            before = self.ledger.runs.get(name)
            if before and is_finished(before.get("status") or {}) and settled(before) != settled(run):
                self.ledger.violations.append(f"{name}: changed after its end: {settled(before)} -> {settled(run)}")
            self.ledger.runs[name] = run
            if kind == "DELETED":
                self.ledger.gone.add(name)

    async def _play_pods(self, client: Client) -> None:
        seen: set[str] = set()
        leaving: set[str] = set()
        async with asyncio.TaskGroup() as group:
            async for kind, pod in client.follow(PODS, labelSelector=labels.RUN_UID):
                if kind not in {"ADDED", "MODIFIED"}:
                    continue
                metadata = pod["metadata"]
                life = self._lives.get((metadata["namespace"], run_of(pod)))
                if metadata.get("deletionTimestamp") and metadata["uid"] not in leaving:
                    leaving.add(metadata["uid"])
                    group.create_task(self._let_go(client, pod))
                elif life and metadata["uid"] not in seen:
                    seen.add(metadata["uid"])
                    group.create_task(self._play(client, pod, life))

    async def _play(self, client: Client, pod: Manifest, life: Life) -> None:
        metadata = pod["metadata"]
        namespace, name, marks = metadata["namespace"], metadata["name"], metadata["labels"]
        job = marks["batch.kubernetes.io/job-name"]
        attempt = int(marks[labels.ATTEMPT])
        ending = life.ending(attempt)
        if ending == "never-starts":
            return
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        at_work = self.ledger.measuring[namespace, f"{run_of(pod)} {marks[labels.CASE]}"]
        try:
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            with contextlib.suppress(RuntimeError):  # a server that ended meanwhile may have done it
                await client.create(f"{path}/binding", {"metadata": {"name": name}, "target": target})
            await client.patch(f"{path}/status", {"status": self._container(pod, "Running", {"running": {}})})
            if at_work - {job}:
                self.ledger.violations.append(f"{namespace}/{job} measures beside {at_work}")
            at_work.add(job)
            await asyncio.sleep(MEASURES_SECONDS)
            if attempt == 1 and life.meddling:
                await self._meddle(client, pod, life)
            if ending == "stays":
                return
            log, message, state = "", "", {"exitCode": 137, "reason": "Error"}
            if ending == "whole":
                result = make_result(Case.model_validate_json(metadata["annotations"][labels.CASE_ANNOTATION]))
                log, message, state = make_log(result), make_headline(result), {"exitCode": 0, "reason": "Completed"}
            self._kubelet.logs[name] = log
            at_work.discard(job)
            phase = "Failed" if state["exitCode"] else "Succeeded"
            state |= {"message": message, "finishedAt": _now()}
            await client.patch(f"{path}/status", {"status": self._container(pod, phase, {"terminated": state})})
        except RuntimeError:
            at_work.discard(job)  # it was deleted meanwhile

    async def _meddle(self, client: Client, pod: Manifest, life: Life) -> None:
        metadata = pod["metadata"]
        namespace = metadata["namespace"]
        if life.meddling == "cancel":
            path = RUNS.replace("/benchmarkruns", f"/namespaces/{namespace}/benchmarkruns/{run_of(pod)}")
            await client.patch(path, {"spec": {"runPolicy": {"cancel": True}}})
        else:
            job = metadata["labels"]["batch.kubernetes.io/job-name"]
            await self._noted(client, namespace, run_of(pod))
            await client.delete_all(f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}")

    async def _noted(self, client: Client, namespace: str, run: str) -> None:
        """Wait until the operator has recorded the Job, as one deleted earlier was never known."""
        path = RUNS.replace("/benchmarkruns", f"/namespaces/{namespace}/benchmarkruns")
        async for kind, item in client.follow(path, fieldSelector=f"metadata.name={run}"):
            attempts = (item.get("status") or {}).get("attempts", ())
            if kind != "LISTED" and any(each.get("jobUid") for each in attempts):
                return

    async def _let_go(self, client: Client, pod: Manifest) -> None:
        """As a kubelet does once the container has ended."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        marks = metadata["labels"]
        self.ledger.measuring[metadata["namespace"], f"{run_of(pod)} {marks[labels.CASE]}"].discard(
            marks["batch.kubernetes.io/job-name"]
        )
        try:
            await client.delete_all(path)
        except RuntimeError:
            return  # it is gone

    def _container(self, pod: Manifest, phase: str, state: Manifest) -> Manifest:
        (which,) = state
        image = pod["spec"]["containers"][0]["image"]
        container = {"name": "runner", "image": image, "imageID": f"{image}@sha256:{'0' * 64}", "ready": False}
        told = {which: {"startedAt": _now(), **state[which]}}
        return {
            "phase": phase,
            "startTime": _now(),
            "containerStatuses": [container | {"restartCount": 0, "state": told}],
        }


def is_finished(status: Manifest) -> bool:
    """Whether a run's status says so."""
    return any(each["type"] == "Finished" and each["status"] == "True" for each in status.get("conditions") or ())


SETTLED = ("phase", "cases", "completionTime", "measuredCases", "attempts", "comparisons")


def settled(run: Manifest) -> Manifest:
    """Return the part of a finished run's status that never changes."""
    status = run.get("status") or {}
    return {name: status.get(name) for name in SETTLED}


def name_of(item: Manifest) -> Name:
    """Namespace and name."""
    return item["metadata"]["namespace"], item["metadata"]["name"]


def run_of(item: Manifest) -> str:
    """The name of the run that an object belongs to."""
    return str((item["metadata"].get("labels") or {}).get(labels.RUN, ""))


def _now() -> str:
    return timestamp(datetime.now(UTC))

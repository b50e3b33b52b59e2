"""Invariants under all faults, checked at once on stored objects and on the behaviour of pods."""

from collections import Counter, defaultdict
from datetime import timedelta

from accelbench.api import labels
from accelbench.api.case import OVERTIME_SECONDS
from accelbench.api.run import BenchmarkRunStatus
from accelbench_operator.operator import Operator
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.status import finished_at
from accelbench_operator.runs.waits import Wait
from operator_world.api_server import ApiServer, Manifest, Version
from operator_world.replica import LEASE
from operator_world.simulated_time import SimulatedTime

MOST_REQUESTS = 3000
"""Within a minute, of all replicas: one that is killed every two seconds makes a thousand, one that loops, 4000."""
PATIENT = (Wait.END_OF_POD, Wait.FIND_POD, Wait.RESULT, Wait.READ_LOG, Wait.STORE_RESULT, Wait.RETRY)
"""Reasons for which an attempt can wait, in addition to its start and its pod."""
SLACK = timedelta(minutes=30)
"""For what a run waits for others: a new leader, a list, 16 workers."""


def bound(run: Manifest) -> timedelta:
    """So long after the last fault every run has finished that is not suspended.

    Every turn of cases takes every attempt that it may, each as long as a pod may take, on a node that is lost; then
    its log cannot be had and its result not be stored for as long as the operator is patient, and the next one waits.
    """
    spec = run["spec"]
    policy = spec.get("runPolicy", {})
    cases = len(spec["sweep"][0]["values"])
    attempts = 1 + policy.get("infrastructureRetries", 2) + policy.get("disruptionRetries", 10)
    turns = -(-cases // policy.get("parallelism", 1)) * attempts
    pod = timedelta(seconds=spec["measurement"]["timeLimitSeconds"] + OVERTIME_SECONDS)
    start = timedelta(seconds=policy.get("startDeadlineSeconds", 86400))
    return turns * (start + pod + sum((wait.default_limit for wait in PATIENT), timedelta())) + SLACK


class Laws:
    """Check the invariants; `broken` lists the violations with their second."""

    def __init__(self, time: SimulatedTime, server: ApiServer, *, shares_lease: bool) -> None:
        self._time = time
        self._server = server
        self._shares_lease = shares_lease
        self._minute = self._asked = 0
        self.requests: Counter[str] = Counter()
        """By method, of all replicas."""
        self.broken: list[str] = []
        self.jobs: Counter[str] = Counter()
        """By name, how often one was made."""
        self.results: Counter[str] = Counter()
        self.by_hand: set[str] = set()
        """Names of what users deleted: Jobs, pods, results."""
        self._stored: defaultdict[str, set[str]] = defaultdict(set)
        """By a run's UID, the names of results that are there."""
        self._robbed: set[str] = set()
        """UIDs of runs of which somebody deleted a result."""
        self.finished = 0
        server.changed.append(self._changed)

    def break_(self, what: str) -> None:
        """Record a violation."""
        self.broken.append(f"{self._time.seconds:.3f}: {what}")

    def asked(self, identity: str, method: str, path: str) -> None:
        """Check a request of a replica: requests are bounded, and writes need the Lease."""
        self.requests[method] += 1
        minute = int(self._time.seconds // 60)
        self._asked = self._asked + 1 if minute == self._minute else 1
        self._minute = minute
        if self._asked == MOST_REQUESTS:
            self.break_(f"{MOST_REQUESTS} requests within a minute, the last of them {method} {path}")
        if not self._shares_lease or method == "GET" or "/leases" in path:
            return
        lease = self._server.find("leases", LEASE.namespace, LEASE.name)
        holder = lease["spec"].get("holderIdentity") if lease else None
        if holder != identity:
            self.break_(f"{identity} wrote {method} {path} while {holder} held the Lease")

    def _changed(self, kind: str, version: Version, before: Version | None) -> None:
        name, run = version.id.name, (version.manifest["metadata"].get("labels") or {}).get(labels.RUN_UID, "")
        match version.id.plural, kind:
            case "jobs", "ADDED":
                self.jobs[name] += 1
                if self.jobs[name] > 1:
                    self.break_(f"Job {name} was made {self.jobs[name]} times")
            case "benchmarkresults", "ADDED":
                self.results[name] += 1
                self._stored[run].add(name)
                if self.results[name] > 1:
                    self.break_(f"BenchmarkResult {name} was stored {self.results[name]} times")
            case "benchmarkresults", "DELETED":
                self._stored[run].discard(name)
                if name in self.by_hand:
                    self._robbed.add(run)
                    # Before it was recorded, a deleted one looks like one that was never stored.
                    del self.results[name]
            case "benchmarkruns", "MODIFIED":
                self._status_changed(version, read_status(before.manifest), read_status(version.manifest))

    def _status_changed(self, run: Version, before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> None:
        shown = {each.type for each in after.conditions} & {"Reconciling", "Stalled"}
        if after.phase and len(shown) != (after.phase not in {"Succeeded", "Suspended"}):
            self.break_(f"{run.id.name} is {after.phase} and {shown or 'neither reconciling nor stalled'}")
        if finished_at(before):
            if _lasting(before) != _lasting(after):
                self.break_(f"{run.id.name} had finished and changed: {_lasting(before)} to {_lasting(after)}")
        elif finished_at(after):
            self.finished += 1
            self._finished(run, after)

    def _finished(self, run: Version, status: BenchmarkRunStatus) -> None:
        stored = self._stored.get(run.uid, set())
        if run.uid not in self._robbed and status.cases.measured != len(stored) and status.phase != "InvalidSpec":
            self.break_(f"{run.id.name} finished with {status.cases.measured} measured, {len(stored)} are stored")
        policy = run.manifest["spec"].get("runPolicy", {})
        retries = policy.get("infrastructureRetries", 2)
        if any(attempt.retries > retries for attempt in status.attempts):
            self.break_(f"{run.id.name} retried more often than {retries} times")
        disruptions = policy.get("disruptionRetries", 10)
        if any(attempt.disruptions > disruptions for attempt in status.attempts):
            self.break_(f"{run.id.name} was disrupted and tried again more often than {disruptions} times")
        if any(not attempt.finished for attempt in status.attempts) or status.active_start_time:
            self.break_(f"{run.id.name} finished with cases in flight")

    def leftovers(self) -> list[str]:
        """Return active Jobs and measuring pods of finished or deleted runs."""
        runs = {run["metadata"]["uid"]: run for run in self._server.all("benchmarkruns")}
        found = []
        for job in self._server.all("jobs"):
            run = runs.get(job["metadata"]["labels"][labels.RUN_UID])
            over = any(each["type"] in {"Complete", "Failed"} for each in job.get("status", {}).get("conditions") or ())
            if run is None or (finished_at(read_status(run)) and not over):
                found.append(f"Job {job['metadata']['name']}")
        return found

    def unfinished(self) -> list[Manifest]:
        """Runs that have not finished."""
        return [run for run in self._server.all("benchmarkruns") if not finished_at(read_status(run))]


def held(operator: Operator) -> dict[str, int]:
    """Return the number of objects that an operator has in memory, by kind."""
    controllers, reconciler, store = operator.controllers, operator._runs, operator.store
    queue = controllers.queue
    applier, known = reconciler._applier, reconciler._known
    return {
        "keys": len(controllers.keys),
        "due": len(queue._due_at),
        "heap": len(queue._heap),
        "failures": len(queue._failures),
        "phases": len(reconciler.phases),
        "cases": len(reconciler._case_counts),
        "idle": len(reconciler._idle),
        "history": len(reconciler.history._runs),
        "known": len(known._runs),
        "events": len(known._events),
        "versions": len(known._versions),
        "memories": len(applier._memories),
        "written": len(store._fresh_at),
        "owners": len(store._by_owner),
        **controllers.counts(),
    }


def _lasting(status: BenchmarkRunStatus) -> dict[str, object]:
    """Return all but the latest generation."""
    document = status.model_dump(exclude={"observed_generation"})
    for condition in document["conditions"]:
        condition.pop("observed_generation")
    return document

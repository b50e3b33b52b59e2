"""What the cluster holds of all runs: Jobs, pods and results, as far as the operator has heard.

A list replaces what is held. What this operator itself wrote while a list was under way is kept all the same: the
list may be older.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.failure import AttemptFailure, disruption_of
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, precedence
from accelbench_operator.runs.obstacles import Obstacle
from accelbench_operator.runs.summary import Summary

Kind = Literal["Job", "Pod", "BenchmarkResult"]
Held = ObservedJob | ObservedPod | Summary
Name = tuple[str, str]
"""Namespace and name."""


class Store:
    """Objects by kind and name; `changed` is told the UID of the run that a change concerns."""

    def __init__(
        self,
        changed: Callable[[str], None],
        began: Callable[[ObservedJob | None, ObservedPod], None] = lambda _job, _pod: None,
    ) -> None:
        """`began` is told of each pod whose container begins to run while it is held, and of its Job."""
        self._changed = changed
        self._began = began
        self._objects: dict[Kind, dict[Name, Held]] = {"Job": {}, "Pod": {}, "BenchmarkResult": {}}
        self._of_run: defaultdict[str, set[tuple[Kind, Name]]] = defaultdict(set)
        self._written: dict[tuple[Kind, Name], int] = {}
        self._disruptions: dict[Name, str] = {}
        """By the Job's name: why its pod had to go, which is gone before anybody can look into it."""
        self._ticks = 0
        self._latest: tuple[int, tuple[Summary, ...], int] | None = None

    @property
    def now(self) -> int:
        """A mark to be taken before a list is asked for."""
        return self._ticks

    def put(self, kind: Kind, held: Held, *, own: bool = False) -> None:
        """Hold the object; `own`: this operator has just written it."""
        name = name_of(held)
        if own:
            self._ticks += 1
            self._written[kind, name] = self._ticks
        before = self._objects[kind].get(name)
        if before is held or before == held:
            return
        if before is not None and run_of(before) != run_of(held):
            self.remove(kind, name)
        self._objects[kind][name] = held
        self._of_run[run_of(held)].add((kind, name))
        if isinstance(held, Summary):
            self._latest = None
        elif isinstance(held, ObservedPod) and isinstance(before, ObservedPod) and held.running and not before.running:
            job = self._objects["Job"].get((name[0], held.job))
            self._began(job if isinstance(job, ObservedJob) else None, held)
        self._changed(run_of(held))

    def remove(self, kind: Kind, name: Name) -> None:
        """The object is gone."""
        self._written.pop((kind, name), None)
        held = self._objects[kind].pop(name, None)
        if held is None:
            return
        if isinstance(held, Summary):
            self._latest = None
        if isinstance(held, ObservedJob):
            self._disruptions.pop(name, None)
        if isinstance(held, ObservedPod) and held.disruption and (name[0], held.job) in self._objects["Job"]:
            self._disruptions[name[0], held.job] = disruption_of(held)
        run = run_of(held)
        self._of_run[run].discard((kind, name))
        if not self._of_run[run]:
            del self._of_run[run]
        self._changed(run)

    def replace(self, kind: Kind, namespace: str | None, listed: Iterable[Held], since: int) -> None:
        """Hold what was listed in the namespace, or everywhere, and nothing else; `since` is `now` before the list."""
        found = tuple(listed)
        self.merge(kind, found, since)
        self.retain(kind, namespace, {name_of(held) for held in found}, since)

    def merge(self, kind: Kind, listed: Iterable[Held], since: int) -> None:
        """Hold what a page of such a list has."""
        for held in listed:
            if self._written.get((kind, name_of(held)), 0) <= since:
                self.put(kind, held)

    def retain(self, kind: Kind, namespace: str | None, names: Container[Name], since: int) -> None:
        """Hold nothing else, now that all pages were seen."""
        gone = [name for name in self._objects[kind] if namespace in {None, name[0]} and name not in names]
        for name in gone:
            if self._written.get((kind, name), 0) <= since:
                self.remove(kind, name)
        self._written = {key: tick for key, tick in self._written.items() if key[0] != kind or tick > since}

    def get(self, kind: Kind, name: Name) -> Held | None:
        """What is held under that name."""
        return self._objects[kind].get(name)

    def observed(
        self,
        namespace: str,
        run_uid: str,
        losses: Mapping[str, AttemptFailure],
        obstacles: Mapping[str, Obstacle] = MappingProxyType({}),
    ) -> Observed:
        """All that is held of one run, in its namespace: what bears its UID elsewhere is a copy at best."""
        jobs: dict[str, ObservedJob] = {}
        pods: dict[str, ObservedPod] = {}
        results: dict[str, Summary] = {}
        for kind, name in sorted(self._of_run.get(run_uid, ())):
            if name[0] != namespace:
                continue
            held = self._objects[kind][name]
            if isinstance(held, ObservedJob):
                jobs[held.key.name] = held
            elif isinstance(held, Summary):
                results[held.case] = held
            elif held.job not in pods or precedence(pods[held.job]) < precedence(held):
                pods[held.job] = held
        disruptions = {job: self._disruptions[namespace, job] for job in jobs if (namespace, job) in self._disruptions}
        return Observed(jobs, pods, results, losses, obstacles, disruptions=disruptions)

    def has_jobs(self, run_uid: str) -> bool:
        """Whether a Job of the run is held."""
        return any(kind == "Job" for kind, _ in self._of_run.get(run_uid, ()))

    def pods(self) -> Iterator[ObservedPod]:
        """Every pod that is held."""
        return (held for held in self._objects["Pod"].values() if isinstance(held, ObservedPod))

    def latest(self, most: int) -> tuple[tuple[Summary, ...], int]:
        """The latest result of each namespace, series and case: the newest `most`, and how many that leaves out.

        It is the same tuple as long as they are the same results.
        """
        if self._latest is None or self._latest[0] != most:
            found = self._results()
            kept = (
                found if len(found) <= most else heapq.nlargest(most, found, key=lambda each: each.finished_timestamp)
            )
            self._latest = most, tuple(kept), len(found) - len(kept)
        return self._latest[1:]

    def _results(self) -> tuple[Summary, ...]:
        latest: dict[tuple[str, str, str], Summary] = {}
        for summary in self.summaries():
            key = (summary.namespace, summary.series, summary.case)
            if key not in latest or latest[key].finished_timestamp <= summary.finished_timestamp:
                latest[key] = summary
        return tuple(latest.values())

    def counts(self) -> dict[str, int]:
        """How many objects are held, by kind."""
        return {kind: len(objects) for kind, objects in self._objects.items()}

    def summaries(self) -> Iterator[Summary]:
        """Every result that is held."""
        return (held for held in self._objects["BenchmarkResult"].values() if isinstance(held, Summary))


def name_of(held: Held) -> Name:
    """Namespace and name of an object."""
    return (held.namespace, held.name) if isinstance(held, Summary) else (held.key.namespace, held.key.name)


def run_of(held: Held) -> str:
    """The UID of the run that it belongs to."""
    return held.run_uid if isinstance(held, Summary) else held.key.run_uid

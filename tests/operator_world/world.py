"""The whole of it: replicas of the operator, an API server, nodes, users, and what goes wrong, in simulated time."""

import functools
import random as everywhere
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain, repeat
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from kubernetes.aio.leaderelection import leaderelection

from accelbench_operator import skew
from accelbench_operator.engine import election as lead
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.operator import Operator
from accelbench_operator.runs.known import read_status
from accelbench_operator.settings import Settings
from operator_world.api_server import COLLECTED_SECONDS, ApiServer, Id, Manifest
from operator_world.builders import SETTINGS, run_manifest
from operator_world.connection import Network
from operator_world.laws import Laws, bound, held
from operator_world.nodes import Fate, Nodes
from operator_world.replica import Replica
from operator_world.simulated_time import SimulatedTime

STEP_SECONDS = 60.0
SLOW_ELECTION = {name: 6 * getattr(lead, name) for name in ("LEASE_SECONDS", "RENEWAL_SECONDS", "RETRY_SECONDS")}
"""Renewing the Lease every two seconds is most of what an hour of two replicas costs."""
RELIST_SECONDS = 2400.0
"""Within it every watch has been listed anew."""
own_schema = functools.cache(skew.own_schema)
"""Half a second to read, and read by every process that begins."""
WHOLE = Fate(4.0, 30.0, "whole")


class World:
    """See above. `faults` and `fates` as in `trouble`."""

    def __init__(
        self,
        *,
        seed: int = 0,
        replicas: int = 1,
        faults: Iterable[str] = (),
        fates: Iterable[Fate] = (),
        settings: Settings = SETTINGS,
        prepare: Callable[[KubernetesApi, Operator], object] = lambda _api, _operator: None,
    ) -> None:
        self.time = SimulatedTime()
        random = self.random = Random(seed)  # noqa: S311 - a world that can be had again
        self.server = ApiServer(self.time, random)
        self.laws = Laws(self.time, self.server, shares_lease=replicas > 1)
        self.network = Network(self.time, random, repeat(""))
        self.trouble(faults, fates)
        self.nodes = Nodes(self.time, self.server, random, lambda: next(self._fates), self.laws.break_)
        self.made = 0
        self.replicas = [
            Replica(
                number,
                self.time,
                self.server,
                self.network,
                random,
                asked=self.laws.asked,
                broken=self.laws.break_,
                settings=settings,
                shares_lease=replicas > 1,
                prepare=prepare,
            )
            for number in range(replicas)
        ]
        for replica in self.replicas:
            replica.start()

    def play(self, step: tuple[Any, ...]) -> None:
        """One thing happens: the method of that name, with what else is in the step."""
        name, *details = step
        getattr(self, name)(*details)

    # Users.

    def passes(self, seconds: float) -> None:
        self.time.run_for(seconds)

    def apply(self, shape: dict[str, Any]) -> None:
        run = run_manifest(**shape)
        run["metadata"] |= {"name": f"run-{self.made}", "namespace": f"team-{self.made % 2}"}
        self.made += 1
        self.server.create("benchmarkruns", run)

    def policy(self, index: int, changes: dict[str, Any]) -> None:
        """A user changes what may be changed."""
        if run := self._pick("benchmarkruns", index):

            def change(run: Manifest) -> None:
                run["spec"]["runPolicy"] = run["spec"].get("runPolicy", {}) | changes
                run["metadata"]["generation"] += 1

            self.server.change(run, self.server.objects[run].uid, change)

    def resume(self, run: Id) -> None:
        """A user lets it go on."""
        self.server.change(run, self.server.objects[run].uid, _resume)

    def delete(self, plural: str, index: int) -> None:
        """Somebody deletes a run, a pod or a result."""
        if id_ := self._pick(plural, index):
            self.laws.by_hand.add(id_.name)
            self.server.delete(id_, self.server.objects[id_].uid)

    def delete_job(self, index: int) -> None:
        """One that the operator has noted: one that goes before cannot be told from one that was never made."""
        noted = {attempt.job_uid for run in self.server.all("benchmarkruns") for attempt in read_status(run).attempts}
        jobs = [id_ for id_ in self._ids("jobs") if self.server.objects[id_].uid in noted]
        if jobs:
            id_ = jobs[index % len(jobs)]
            self.server.delete(id_, self.server.objects[id_].uid)

    def preempt(self, index: int) -> None:
        """A queue takes a Job back."""
        if id_ := self._pick("jobs", index):
            self.nodes.preempt(id_)

    # What goes wrong.

    def kill(self, index: int, away_seconds: float) -> None:
        self._replica(index).kill(away_seconds)

    def end(self, index: int, away_seconds: float) -> None:
        self._replica(index).end(max(10.0, away_seconds))

    def stand_still(self, index: int, seconds: float) -> None:
        self._replica(index).stand_still(seconds)

    def skew(self, index: int, minutes: float) -> None:
        """The clock of a replica's machine is set."""
        self._replica(index).skew = timedelta(minutes=minutes)

    def away(self, seconds: float) -> None:
        """All replicas are gone for a while."""
        for replica in self.replicas:
            replica.kill(seconds)

    def out(self, fault: str, plural: str, seconds: float) -> None:
        """Every request, or every one for a plural, fails that way for a while."""
        self.network.out, self.network.out_for = fault, plural
        self.network.out_until = self.time.seconds + seconds

    def lag(self, plural: str, seconds: float) -> None:
        """Watches of a plural are behind from now on."""
        self.network.lags[plural] = seconds

    def expire(self) -> None:
        """Watches end, and what they had heard of is too old to go on from."""
        self.server.end_watches()
        self.server.compact()

    def end_watches(self) -> None:
        self.server.end_watches()

    def hang(self) -> None:
        """Watches that are open say nothing any more."""
        for watch in self.server.watches:
            watch.hangs = True

    # Afterwards.

    def trouble(self, faults: Iterable[str], fates: Iterable[Fate]) -> None:
        """`faults` come up one a request, `fates` one a pod; after them all goes well."""
        self.network.faults = chain(faults, repeat(""))
        self._fates = chain(fates, repeat(WHOLE))

    def heal(self) -> None:
        """From here on nothing goes wrong, and what was suspended is resumed."""
        self.trouble((), ())
        self.network.out_until = 0.0
        self.network.lags.clear()
        self.server.end_watches()
        for replica in self.replicas:
            replica.skew = timedelta()
            replica.return_()
        for run in self.server.all("benchmarkruns"):
            id_ = Id("benchmarkruns", run["metadata"]["namespace"], run["metadata"]["name"])
            if run["spec"].get("runPolicy", {}).get("suspend"):
                self.resume(id_)

    def finish(self) -> None:
        """Go on until every run has finished; one that takes longer than its bound breaks a law."""
        since = self.time.seconds
        while runs := self.laws.unfinished():
            passed = timedelta(seconds=self.time.seconds - since)
            for run in runs:
                if passed > bound(run):
                    self.laws.break_(f"{run['metadata']['name']} has not finished within {bound(run)}: {run}")
                    return
            self.time.run_for(STEP_SECONDS)
        self.time.run_for(600.0)
        going = self.laws.leftovers()
        self.time.run_for(COLLECTED_SECONDS)  # a run may have gone this moment, and its Jobs go after it
        for what in self.laws.leftovers():
            if what in going:
                self.laws.break_(f"{what} is still going")

    def empty(self) -> None:
        """Every run and result goes; then a replica that knows of any breaks a law."""
        for plural in ("benchmarkruns", "benchmarkresults"):
            for id_ in self._ids(plural):
                self.server.delete(id_, self.server.objects[id_].uid)
        self.time.run_for(RELIST_SECONDS)
        for operator in self.operators():
            if kept := {what: count for what, count in held(operator).items() if count and what != "heap"}:
                self.laws.break_(f"kept in memory of runs that are gone: {kept}")

    def operators(self) -> Iterator[Operator]:
        """Those that run."""
        return (replica.operator for replica in self.replicas if replica.operator)

    def close(self) -> None:
        """End all processes."""
        for replica in self.replicas:
            replica.kill(float("inf"))
        while self.time.loops:
            self.time.run_for(STEP_SECONDS)

    def _replica(self, index: int) -> Replica:
        return self.replicas[index % len(self.replicas)]

    def _ids(self, plural: str) -> list[Id]:
        return [id_ for id_ in self.server.objects if id_.plural == plural]

    def _pick(self, plural: str, index: int) -> Id | None:
        ids = self._ids(plural)
        return ids[index % len(ids)] if ids else None


@contextmanager
def simulated(**world: Any) -> Iterator[World]:
    """A world inside, whose end is the same whenever it begins the same."""
    state = everywhere.getstate()
    everywhere.seed(world.get("seed", 0))
    found = World(**world)
    clock = SimpleNamespace(time=lambda: found.time.now().timestamp())
    try:
        with (
            patch.object(leaderelection, "time", clock),
            patch.object(skew, "own_schema", own_schema),
            patch.multiple(lead, **SLOW_ELECTION),
            # Nothing here is encrypted, and loading the certificates of the machine took a fifth of the time.
            patch.object(ssl, "create_default_context", lambda **_: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)),
        ):
            try:
                yield found
            finally:
                found.close()
    finally:
        everywhere.setstate(state)


def _resume(run: Manifest) -> None:
    run["spec"]["runPolicy"]["suspend"] = False
    run["metadata"]["generation"] += 1

"""Run a scenario with faults at certain requests, and report what is wrong with its end."""

import contextlib
import dataclasses
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster.errors import DeadlineError
from cluster.wait import wait_until
from crash.lives import PROFILES, Life
from crash.proxy import Proxy, Rule
from crash.world import World
from operator_world.forked import ForkedOperator
from operator_world.process import OperatorProcess

AT_A_TIME = 3
LISTED = frozenset({"jobs", "pods", "benchmarkresults", "benchmarkruns"})
Request = tuple[str, int]
"""Its kind, and which of its kind it is in a life."""


@dataclass(frozen=True)
class Lived:
    """Hold the course of a life."""

    requests: tuple[Request, ...]
    """All that the operator made, in order."""
    wrong: tuple[str, ...]
    restarts: int
    unmet: tuple[Rule, ...]
    """Faults whose request never came: what is written together at one time may be written apart at another."""
    log: str = field(repr=False, default="")


class Restarting:
    """An operator that is started again whenever it is killed, as a kubelet does."""

    def __init__(self) -> None:
        self.process: ForkedOperator | None = None
        self.restarts = 0
        self._lock = threading.Lock()

    def kill(self) -> None:
        """SIGKILL, and a new one."""
        with self._lock:
            if self.process is not None:
                self.process.kill()
                self.restarts += 1
                self.process.start()

    def end(self) -> None:
        """For good."""
        with self._lock:
            process, self.process = self.process, None
        if process is not None:
            process.kill()


def live(world: World, life: Life, directory: Path, rules: Sequence[Rule] = ()) -> Lived:
    """Once, in a namespace of its own, with an operator of its own."""
    cluster = dataclasses.replace(world.cluster, namespace=world.namespace())
    name = life.name
    operator = Restarting()
    with Proxy(world.cluster.kubeconfig, operator.kill, list(rules)) as proxy:
        lease = "operator" if life.leased else ""
        operator.process = ForkedOperator(cluster, directory, profiles=PROFILES, server=proxy.url, lease=lease)
        operator.process.start()
        try:
            wait_until(lambda: ready(operator.process), what="the operator to be ready", every_seconds=0.05)
            world.live(cluster.namespace, name, life)
            world.apply(cluster.namespace, life.manifest(name))
            wrong = tuple(faults_of(world, cluster.namespace, name, life))
            requests = tuple(counted(seen.kind for seen in proxy.requests))
            unmet = tuple(rule for rule in rules if not rule.fired)
            log = operator.process.log() if operator.process and wrong else ""
        finally:
            operator.end()
            world.drop(cluster.namespace)
    return Lived(requests, wrong, operator.restarts, unmet, log)


def faults_of(world: World, namespace: str, run: str, life: Life) -> list[str]:
    """Return what is wrong with the end of a run."""
    try:
        wait_until(lambda: world.has_ended(namespace, run), what="the end")
    except DeadlineError:
        return [f"it has not ended: {world.status(namespace, run)}"]
    wrong = []
    try:
        wait_until(lambda: not world.jobs_left(namespace, run), what="its Jobs to be gone")
    except DeadlineError:
        wrong.append(f"Jobs are left: {world.jobs_left(namespace, run)}")
    status, ledger = world.status(namespace, run), world.ledger
    if life.phase and status.get("phase") != life.phase:
        wrong.append(f"phase {status.get('phase')}, not {life.phase}: {status.get('conditions')}")
    attempts = status.get("attempts", ())
    if any(attempt["number"] != life.attempts for attempt in attempts):
        wrong.append(f"attempts {attempts}")
    # The ledger is written in another thread: what is looked through is a copy.
    mine = [name for name in list(ledger.jobs) if name[0] == namespace and name[1].startswith(f"{run}-")]
    wrong += [f"Job {name[1]} was made {len(ledger.jobs[name])} times" for name in mine if len(ledger.jobs[name]) != 1]
    most = len(life.sizes) * life.attempts
    # One that ends without a result may have come to no Job, where that was refused until its deadline.
    if len(mine) > most or (life.measured and len(mine) < most):
        wrong.append(f"{len(mine)} Jobs for {len(life.sizes)} cases with {life.attempts} attempts: {mine}")
    results = list(ledger.results.items())
    stored = {name: uids for name, uids in results if name[0] == namespace and name[1].startswith(run)}
    wrong += [f"result {name[1]} was stored {len(uids)} times" for name, uids in stored.items() if len(uids) != 1]
    if len(stored) != (len(life.sizes) if life.measured else 0):
        wrong.append(f"{len(stored)} results of {len(life.sizes)} cases")
    wrong += [each for each in list(ledger.violations) if namespace in each and run in each]
    return wrong


def storm(world: World, runs: Mapping[str, Life], directory: Path, rules: Sequence[Rule]) -> Mapping[str, list[str]]:
    """Many lives at once, by the names of their runs, with one operator that starts after them; what was wrong by run.

    Rules note whether they were met.
    """
    cluster = dataclasses.replace(world.cluster, namespace=world.namespace())
    operator = Restarting()
    with Proxy(world.cluster.kubeconfig, operator.kill, list(rules), lambda: runs) as proxy:
        for name, life in runs.items():
            world.live(cluster.namespace, name, life)
        world.apply(cluster.namespace, *(life.manifest(name) for name, life in runs.items()))
        operator.process = ForkedOperator(cluster, directory, profiles=PROFILES, server=proxy.url)
        operator.process.start()
        try:
            _while_runs_end(world, cluster.namespace, runs)
            wrong = {name: faults_of(world, cluster.namespace, name, life) for name, life in runs.items()}
        finally:
            operator.end()
            world.drop(cluster.namespace)
    return {name: found for name, found in wrong.items() if found}


def _while_runs_end(world: World, namespace: str, runs: Iterable[str]) -> None:
    """Until every run has ended, or none has for as long as one alone may take: a slow machine is no fault."""
    left = set(runs)

    def ended() -> set[str]:
        return {run for run in left if world.has_ended(namespace, run)}

    with contextlib.suppress(DeadlineError):  # the status of each remaining run shows the cause
        while left:
            left -= wait_until(ended, what="a run to end")


def counted(kinds: Iterable[str]) -> Iterator[Request]:
    """Each request as its kind and which of its kind it was."""
    seen: Counter[str] = Counter()
    for kind in kinds:
        seen[kind] += 1
        yield kind, seen[kind]


def is_of_an_election(request: Request) -> bool:
    """Whether it is about the Lease; those after the first of a kind are like it."""
    kind, ordinal = request
    return kind.endswith(" leases") and ordinal == 1


def is_of_a_start(request: Request) -> bool:
    """Whether an operator makes it whatever runs there are: it discovers, lists and watches."""
    kind, ordinal = request
    verb, resource = kind.split()
    return resource.startswith("/") or verb == "watch" or (verb == "list" and resource in LISTED and ordinal == 1)


def ready(operator: OperatorProcess | None) -> bool:
    """Whether it answers that it is."""
    return operator is not None and operator.is_ready

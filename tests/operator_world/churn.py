"""A day of a busy cluster: runs that succeed, fail, are suspended, cancelled or deleted, beside faults.

What operators hold is measured: how many things of each kind, and the bytes of all that can be reached from them.
"""

import gc
import json
import sys
import tracemalloc
from asyncio import AbstractEventLoop, Future, Semaphore
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from kubernetes.aio.client import ApiClient
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from pydantic_core import from_json

from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.operator import Operator
from accelbench_operator.runs.retention import Retention
from accelbench_operator.settings import Settings
from operator_world.api_server import Id
from operator_world.builders import SETTINGS
from operator_world.laws import held
from operator_world.nodes import DEADLINE, NODE_LOST, Fate
from operator_world.played import ENDINGS
from operator_world.scenarios import QUEUE
from operator_world.world import World

PERIOD_SECONDS = 60.0
RESULTS = 150
"""So many are kept: with a run a minute they fill up within three hours."""
STRINGS = json.dumps([f"string {number}" for number in range(200_000)])
"""A dozen for every place in pydantic's cache of strings (16,384), which holds what it read last, needed or not."""
OPERATOR = (
    tracemalloc.Filter(inclusive=True, filename_pattern="*/accelbench_operator/*"),
    tracemalloc.Filter(inclusive=True, filename_pattern="*/accelbench/*"),
)
FAULTS = ("lost", "busy", "failing", "unavailable", "conflict", "unanswered", "slow", "late")
OUTSIDE = (
    *(ModuleType, type, FunctionType, BuiltinFunctionType, CodeType, FrameType, MethodType),
    *(AbstractEventLoop, Future, Semaphore, KubernetesApi, ApiClient, LeaderElection, Settings),
)
"""What an operator refers to and does not hold: code, the loop, the network."""


@dataclass(frozen=True)
class Hour:
    """Hold counts at the end of an hour."""

    number: int
    made: int
    """Runs, since the beginning."""
    finished: int
    runs: int
    """That are there."""
    results: int
    held: tuple[dict[str, int], ...]
    """By replica."""
    kilobytes: tuple[float, ...]
    """That can be reached from each operator."""
    instances: int
    """Instances of the operator's classes, wherever they are held."""
    traced: float
    """KiB that were allocated in lines of the operator's modules, and are still there; 0 where none were traced."""


def of_a_cluster(results: int = RESULTS) -> Settings:
    """Return the settings of an operator that keeps this many results."""
    return replace(SETTINGS, retention=Retention(per_case=5, total=results))


def faults(random: Random, share: float) -> Iterator[str]:
    """Yield the fault of each request: empty for all but this share."""
    while True:
        yield random.choice(FAULTS) if random.random() < share else ""


def fates(random: Random) -> Iterator[Fate]:
    """Yield fates of pods: half of them measure, and the others end in every other way."""
    while True:
        how = random.choice([*ENDINGS, *["whole"] * len(ENDINGS)])
        how = random.choices([how, NODE_LOST, DEADLINE], [0.98, 0.01, 0.01])[0]
        yield Fate(random.uniform(2.0, 30.0), random.uniform(1.0, 120.0), how)


def shape(random: Random) -> dict[str, Any]:
    """Return the spec of a run: most are small, and all are deleted within an hour."""
    policy = {
        "ttlSecondsAfterFinished": random.choice([0, 300, 1800]),
        "parallelism": random.randint(1, 2),
        "startDeadlineSeconds": 3600,
        "resultRetentionPolicy": random.choice(["Retain", "Retain", "Delete"]),
    }
    run: dict[str, Any] = {"sizes": random.choice([(64,), (64,), (64, 128), (64, 128, 256)]), "runPolicy": policy}
    if random.random() < 0.1:
        run["labels"] = QUEUE
    if random.random() < 0.03:
        run["workload"] = {"name": "no-such"}
    return run


def churn(world: World, hours: int, period_seconds: float = PERIOD_SECONDS) -> Iterator[Hour]:
    """Simulate this many hours with a run in each period, and yield after each."""
    random, since = world.random, world.time.seconds
    for number in range(1, hours + 1):
        while world.time.seconds < since + number * 3600.0:
            world.apply(shape(random))
            _meddle(world, random)
            world.passes(period_seconds * random.uniform(0.5, 1.5))
        if number % 3 == 0:
            world.expire()
        yield measured(world, number)


def _meddle(world: World, random: Random) -> None:
    """Change one of the latest runs as a user might."""
    newest = -random.randint(1, 10)
    suspended = random.random() < 0.3
    random.choice(
        [
            lambda: world.policy(newest, {"suspend": suspended}),
            lambda: world.policy(newest, {"cancel": True}),
            lambda: world.delete("benchmarkruns", newest),
            lambda: world.delete("pods", newest),
            lambda: world.delete_job(newest),
            lambda: world.delete("benchmarkresults", newest),
            lambda: world.preempt(newest),
            *[lambda: None] * 4,
        ]
    )()
    for run in world.server.all("benchmarkruns"):  # nobody forgets a run for longer than half an hour
        age = world.time.now() - datetime.fromisoformat(run["metadata"]["creationTimestamp"])
        if run["spec"]["runPolicy"].get("suspend") and age.total_seconds() > 1800:
            world.resume(Id("benchmarkruns", run["metadata"]["namespace"], run["metadata"]["name"]))


def measured(world: World, number: int) -> Hour:
    """Return the present counts, without pydantic's cache of strings, which grows until it is full."""
    from_json(STRINGS)
    gc.collect()
    traced = tracemalloc.take_snapshot().filter_traces(OPERATOR) if tracemalloc.is_tracing() else None
    return Hour(
        number=number,
        made=world.made,
        finished=world.laws.finished,
        runs=len(world.server.all("benchmarkruns")),
        results=len(world.server.all("benchmarkresults")),
        held=tuple(held(operator) for operator in world.operators()),
        kilobytes=tuple(reachable(operator) / 1024 for operator in world.operators()),
        instances=sum(str(type(each).__module__).startswith("accelbench") for each in gc.get_objects()),
        traced=sum(each.size for each in traced.traces) / 1024 if traced else 0.0,
    )


def reachable(operator: Operator) -> int:
    """Return the bytes of all objects that store, queue and reconciler hold, each counted once."""
    start = (operator.controllers, operator._runs, operator._objects)
    seen: dict[int, Any] = {}
    found: list[Any] = list(start)
    while found:
        each = found.pop()
        if id(each) in seen or isinstance(each, OUTSIDE) or each is operator:
            continue
        seen[id(each)] = each
        found += gc.get_referents(each)
    return sum(sys.getsizeof(each) for each in seen.values())

"""Measure the operator under the chart's memory limit, with tenants that use as much as they are allowed.

    PYTHONPATH=tests:benchmarks python benchmarks/tenants.py        # as root; about ten minutes

On the tests' real control plane, with simulated nodes: a thousand active runs, 20,000 results, 500 suspended runs of
the largest spec, then four hostile logs at once. Meanwhile another tenant's runs of one case are timed from their
creation until they have finished, and compared with an idle operator.
"""

import argparse
import asyncio
import gc
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from operator_scale import REAL, World, is_finished, make_result, make_run, named, print_now, quiet, spread
from scale.kubelet import Kubelet
from scale.limited import MemoryGroup, memory_group
from scale.world import ROOT, Operator, control_plane

from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import BenchmarkResult, Result
from accelbench.delivery.log import MARK
from accelbench_operator.runs.cluster import MAXIMUM_READ_BYTES
from operator_world.builders import large_run
from operator_world.client import Client, Manifest, until
from operator_world.fake_kubelet import write_certificate

VALUES = yaml.safe_load((ROOT / "charts" / "accelbench" / "values.yaml").read_text())
MEBIBYTE = 1024 * 1024
HOSTILE = 4
"""Number of hostile logs that are read at once."""
REPORTED_RESULTS = 5000
"""Number of results after which memory is reported."""


def limit_bytes() -> int:
    """Return the memory limit of the chart's operator."""
    text: str = VALUES["resources"]["limits"]["memory"]
    return int(text.removesuffix("Mi")) * MEBIBYTE


def hostile_log() -> str:
    """Return a log of the largest size that the operator reads as a whole, in which each line begins a document."""
    line = f"{MARK} result %06d 1/9 {'0' * 64} A\n"
    return "".join(line % number for number in range(MAXIMUM_READ_BYTES // len(line % 0)))


def make_large_run(number: int) -> Manifest:
    """Return a suspended run of the largest spec."""
    run = large_run(number)
    return {**run, "metadata": {"name": run["metadata"]["name"]}}


def is_suspended(run: Manifest) -> bool:
    """Return True if a run is suspended."""
    return (run.get("status") or {}).get("phase") == "Suspended"


async def seconds_of_runs(world: World, prefix: str, count: int) -> list[float]:
    """Create `count` runs of one case, one after another; return the seconds from each one's creation to its end."""
    seconds = []
    for number in range(count):
        name = f"{prefix}-{number}"
        finished = asyncio.create_task(
            until(world.client, world.runs, 1, lambda run, name=name: named(run) == name and is_finished(run))
        )
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await world.client.create(world.runs, make_run(name))
        await finished
        seconds.append(time.monotonic() - began)
    return seconds


class Observer:
    """Report the memory of an operator and what happened to it."""

    def __init__(self, operator: Operator, group: MemoryGroup) -> None:
        """Store the operator and the control group that limits its memory."""
        self._operator, self._group = operator, group

    def report(self, what: str) -> None:
        """Print resident and peak memory after the event `what`."""
        kills = self._group.kills
        state = "running" if self._operator.is_running else "ENDED"
        print_now(
            f"{what}: {self._operator.resident_megabytes:.0f} MB resident, {self._operator.peak_megabytes:.0f} MB at "
            f"most; {kills} kills; {state}"
        )


async def load(world: World, observer: Observer, arguments: Any) -> None:
    """Create the lasting load: suspended runs, active runs and results."""
    began = time.monotonic()
    world.kubelet.hold("active-")
    async with asyncio.TaskGroup() as group:
        group.create_task(until(world.client, world.runs, arguments.suspended, is_suspended))
        group.create_task(world.client.create_all(world.runs, map(make_large_run, range(arguments.suspended))))
    observer.report(f"{arguments.suspended} suspended runs after {time.monotonic() - began:.0f} s")
    await world.client.create_all(world.runs, (make_run(f"active-{number}") for number in range(arguments.active)))
    await world.kubelet.until_running(arguments.active)
    observer.report(f"and {arguments.active} active runs after {time.monotonic() - began:.0f} s")
    result = Result.model_validate_json((REAL / "all.result.json").read_text())
    real = BenchmarkResult.from_result(result, ObjectMeta(name="real"), []).model_dump(mode="json", by_alias=True)
    for start in range(0, arguments.results, REPORTED_RESULTS):
        end = min(start + REPORTED_RESULTS, arguments.results)
        await world.client.create_all(world.results, (make_result(real, number) for number in range(start, end)))
        observer.report(f"and {end} results after {time.monotonic() - began:.0f} s")


async def attack(world: World, prefix: str) -> list[float]:
    """Have the operator read hostile logs; return the seconds of another tenant's runs at the same time."""
    world.kubelet.logs_of[f"{prefix}-hostile"] = hostile_log()
    async with asyncio.TaskGroup() as group:
        runs = (make_run(f"{prefix}-hostile-{number}") for number in range(HOSTILE))
        group.create_task(world.client.create_all(world.runs, runs))
        honest = group.create_task(seconds_of_runs(world, f"{prefix}-honest", 5))
    return honest.result()


async def measure(world: World, group: MemoryGroup, arguments: Any) -> None:
    """Measure all parts."""
    settings = {"ACCELBENCH_RESULTS_TOTAL": str(2 * arguments.results)}
    with Operator(world.cluster, group=group, environment=settings) as operator:
        await quiet(operator)
        idle = await seconds_of_runs(world, "idle", 10)
        observer = Observer(operator, group)
        observer.report("idle")
        print_now(f"a run of one case beside an idle operator: {spread(idle)} s")
        await load(world, observer, arguments)
        await quiet(operator)
        loaded = await seconds_of_runs(world, "loaded", 5)
        print_now(f"a run of one case under load: {spread(loaded)} s")
        attacked = await attack(world, "first")
        observer.report(f"and {HOSTILE} hostile logs")
        print_now(f"a run of one case beside hostile logs: {spread(attacked)} s")
        operator.scrape()
        observer.report("after a scrape")
    with Operator(world.cluster, group=group, environment=settings) as operator:
        observer = Observer(operator, group)
        observer.report(f"restarted, ready after {operator.start_seconds:.1f} s")
        attacked = await attack(world, "second")
        observer.report(f"and {HOSTILE} hostile logs")
        print_now(f"a run of one case beside hostile logs: {spread(attacked)} s")
        operator.scrape()
        await quiet(operator)
        observer.report("after a scrape")
    print_now(f"the control group had {group.peak_megabytes:.0f} MB at most of {limit_bytes() / 1e6:.0f} MB")


async def run(arguments: Any) -> None:
    """Start a control plane and measure."""
    real = json.loads((REAL / "all.result.json").read_text())
    with tempfile.TemporaryDirectory() as place, control_plane() as cluster, memory_group(limit_bytes()) as group:
        async with (
            Client(cluster.kubeconfig) as client,
            Kubelet(client, write_certificate(Path(place)), real) as kubelet,
        ):
            await measure(World(cluster, client, kubelet), group, arguments)


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--active", type=int, default=1000, help="active runs")
    parser.add_argument("--results", type=int, default=20_000)
    parser.add_argument("--suspended", type=int, default=500, help="suspended runs of the largest spec")
    gc.disable()  # pauses of this process, which simulates the nodes, would delay the operator
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()

"""Measure the operator's cost for a thousand runs: time, requests, processor and memory, against a bare client.

Runs on the tests' real control plane, with simulated nodes that serve real logs (`scale/kubelet.py`):

    PYTHONPATH=tests:benchmarks python benchmarks/operator_scale.py            # all parts, about half an hour
    PYTHONPATH=tests:benchmarks python benchmarks/operator_scale.py --only runs,sweeps

The bare client only creates the same Jobs on the same nodes. It and the operator take turns; a turn gives one ratio.
"""

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from scale.kubelet import Kubelet
from scale.world import PROFILES, ROOT, Operator, control_plane

from accelbench.api import labels
from accelbench.api.metadata import ObjectMeta
from accelbench.api.profiles import Profiles, parse_profiles
from accelbench.api.result import BenchmarkResult, Result
from accelbench.plan.names import result_name
from accelbench_operator.runs.accept import Plan, accept
from accelbench_operator.runs.job import build_job
from cluster.cluster import Cluster
from operator_world.client import Client, Manifest, until, until_none
from operator_world.fake_kubelet import write_certificate

REAL = ROOT / "docs" / "results" / "claims" / "cpu" / "01-eager-pytorch"
COMPLETIONS_A_SECOND = 20
"""Rate at which pods end in the measurement of latency."""
IDLE_SECONDS = 60
WRITES = {"create", "update", "delete"}
"""Verbs of requests that write."""


class World:
    """Hold a control plane with nodes, and an administrator's client."""

    def __init__(self, cluster: Cluster, client: Client, kubelet: Kubelet) -> None:
        """Store the parts, and the API paths of the objects that the benchmark reads."""
        self.cluster, self.client, self.kubelet = cluster, client, kubelet
        group = f"/apis/accelbench.dev/v1alpha1/namespaces/{cluster.namespace}"
        self.runs, self.results = f"{group}/benchmarkruns", f"{group}/benchmarkresults"
        self.jobs = f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs"
        self.pods = f"/api/v1/namespaces/{cluster.namespace}/pods"

    async def clear(self) -> None:
        """Delete the runs, Jobs, pods and results of the previous part."""
        for path in (self.runs, self.jobs, self.pods, self.results):
            await self.client.delete_all(path)
        for path in (self.runs, self.jobs, self.pods, self.results):
            await until_none(self.client, path)


def make_run(name: str, *, cases: int = 1, parallelism: int = 1) -> Manifest:
    """Return a run whose pods are small, so that a node holds many."""
    spec = json.loads((REAL / "run.json").read_text())["run"]["spec"] | {"accelerator": {"profile": "small"}}
    spec["runPolicy"] = {"parallelism": parallelism}
    if cases > 1:
        spec["workload"] = {"name": "matmul-chain", "parameters": {"length": 100}}
        spec["sweep"] = [{"name": "size", "values": list(range(64, 64 + cases))}]
    return {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": spec,
    }


def make_job(name: str, namespace: str) -> Manifest:
    """Return the Job that the operator makes of a run of one case, without an owner."""
    metadata = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "generation": 1, "labels": {}}
    plan = accept(make_run(name) | {"metadata": metadata}, Profiles(parse_profiles(PROFILES, "")), "runner:1")
    assert isinstance(plan, Plan), plan
    job = build_job(plan.run, plan.cases[0], 1, plan.runner)
    del job["metadata"]["ownerReferences"], job["metadata"]["labels"][labels.RUN_UID]
    return job


def is_complete(job: Manifest) -> bool:
    """Return True if a Job is complete."""
    return _has(job, "Complete")


def is_finished(run: Manifest) -> bool:
    """Return True if a BenchmarkRun is finished."""
    return _has(run, "Finished")


def has_ended(pod: Manifest) -> bool:
    """Return True if a pod has succeeded."""
    return (pod.get("status") or {}).get("phase") == "Succeeded"


def _has(item: Manifest, kind: str) -> bool:
    """Return True if an object has a true condition of this type."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


async def bare_seconds(world: World, count: int) -> float:
    """Return the seconds in which a bare client creates Jobs and all of them complete."""
    jobs = [make_job(f"bare-{number}", world.cluster.namespace) for number in range(count)]
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        group.create_task(until(world.client, world.jobs, count, is_complete))
        group.create_task(world.client.create_all(world.jobs, jobs))
    seconds = time.monotonic() - began
    await world.clear()
    return seconds


class Turn:
    """Measure the time, processor time, memory and requests that the operator needs for some runs."""

    def __init__(self, operator: Operator) -> None:
        """Begin to measure."""
        self._operator = operator
        self._before = (time.monotonic(), operator.cpu_seconds, operator.requests())

    def end(self) -> None:
        """Record time and memory, when all runs are finished."""
        began, cpu, _ = self._before
        self.seconds = time.monotonic() - began
        self.cpu_seconds = self._operator.cpu_seconds - cpu
        self.resident = self._operator.resident_megabytes

    def settle(self) -> None:
        """Record the requests, when the operator has cleaned up."""
        self.requests = self._operator.requests() - self._before[2]

    @property
    def writes(self) -> int:
        """Return the number of writing requests."""
        return sum(count for kind, count in self.requests.items() if kind.split()[0] in WRITES)


async def operate(world: World, operator: Operator, manifests: list[Manifest]) -> Turn:
    """Measure from the first run's creation until the last is finished."""
    turn = Turn(operator)
    async with asyncio.TaskGroup() as group:
        group.create_task(until(world.client, world.runs, len(manifests), is_finished))
        group.create_task(world.client.create_all(world.runs, manifests))
    turn.end()
    await until_none(world.client, world.jobs)
    turn.settle()
    return turn


async def measure_runs(world: World, count: int, turns: int) -> None:
    """Measure `count` runs of one case, in turn with the bare client."""
    ratios, bare, operated = [], [], []
    for number in range(turns):
        bare.append(await bare_seconds(world, count))
        with Operator(world.cluster) as operator:
            turn = await operate(world, operator, [make_run(f"run-{index}") for index in range(count)])
        await world.clear()
        operated.append(turn.seconds)
        ratios.append(turn.seconds / bare[-1])
        print_now(f"turn {number + 1}: bare {bare[-1]:.1f} s, operator {turn.seconds:.1f} s, {ratios[-1]:.2f} times")
    print_now(f"{count} runs: bare {spread(bare)} s, operator {spread(operated)} s, ratio {spread(ratios)}")
    print_costs(turn, count, "run")


async def measure_sweeps(world: World, shapes: list[tuple[int, int, int]]) -> None:
    """Measure requests and processor time per case in runs of many cases."""
    for runs, cases, parallelism in shapes:
        with Operator(world.cluster) as operator:
            manifests = [make_run(f"s-{n}", cases=cases, parallelism=parallelism) for n in range(runs)]
            turn = await operate(world, operator, manifests)
        await world.clear()
        print_now(f"{runs} runs of {cases} cases, {parallelism} at a time: {turn.seconds:.1f} s")
        print_costs(turn, runs * cases, "case")


async def measure_latency(world: World, count: int) -> None:
    """Measure the time from a pod's end to its run's at a steady rate, and memory with all runs active.

    The pod is watched and not its Job, because the operator deletes some Jobs before they are complete.
    """
    with Operator(world.cluster, stopwatch=True) as operator:
        world.kubelet.hold()
        await world.client.create_all(world.runs, (make_run(f"run-{number}") for number in range(count)))
        await world.kubelet.until_running(count)
        await quiet(operator)
        print_now(f"{count} active runs: {operator.resident_megabytes:.0f} MB resident")
        clock = asyncio.get_running_loop().time
        ended: dict[str, float] = {}
        finished: dict[str, float] = {}

        def record_time(times: dict[str, float], name: Callable[[Manifest], str]) -> Callable[[Manifest], object]:
            """Return a function that records in `times` when an object was seen first, by the name of its run."""
            return lambda item: times.setdefault(name(item), clock())

        operator.longest_steps()
        async with asyncio.TaskGroup() as group:
            record_pod = record_time(ended, lambda pod: pod["metadata"]["labels"][labels.RUN])
            record_run = record_time(finished, named)
            pods_listed, runs_listed = asyncio.Event(), asyncio.Event()
            group.create_task(
                until(world.client, world.pods, count, has_ended, seen=record_pod, listed=pods_listed.set)
            )
            group.create_task(
                until(world.client, world.runs, count, is_finished, seen=record_run, listed=runs_listed.set)
            )
            await pods_listed.wait()
            await runs_listed.wait()
            group.create_task(world.kubelet.release(COMPLETIONS_A_SECOND))
        delays = sorted(finished[name] - ended[name] for name in finished)
        p50, p99 = delays[len(delays) // 2], delays[int(0.99 * len(delays))]
        print_now(f"{COMPLETIONS_A_SECOND} completions a second, {len(delays)} runs, from a pod's end to its run's:")
        print_now(f"  median {p50:.2f} s, p99 {p99:.2f} s, longest {delays[-1]:.2f} s")
        print_steps(operator.longest_steps())
    await world.clear()


async def measure_rest(world: World, amounts: list[int], active: int) -> None:
    """Measure start-up, memory and a scrape with stored results, and the requests of an idle operator."""
    result = Result.model_validate_json((REAL / "all.result.json").read_text())
    real = BenchmarkResult.from_result(result, ObjectMeta(name="real"), []).model_dump(mode="json", by_alias=True)
    stored = 0
    for amount in amounts:
        await world.client.create_all(world.results, (make_result(real, number) for number in range(stored, amount)))
        stored = amount
        with Operator(world.cluster, stopwatch=True) as operator:
            await quiet(operator)
            scrapes = [operator.scrape() for _ in range(5)]
            seconds, size = [scrape_seconds for scrape_seconds, _ in scrapes], len(scrapes[0][1])
            print_now(
                f"{amount} results: ready after {operator.start_seconds:.1f} s, {operator.resident_megabytes:.0f} MB"
            )
            print_now(f"  a scrape: {spread(seconds)} s, {size / 1e6:.1f} MB")
            print_steps(operator.longest_steps())
            if amount == amounts[-1]:
                await measure_idle(operator)
                await measure_active(world, operator, active)


async def measure_idle(operator: Operator) -> None:
    """Count the requests of an idle operator."""
    before, cpu = operator.requests(), operator.cpu_seconds
    await asyncio.sleep(IDLE_SECONDS)
    made, spent = operator.requests() - before, operator.cpu_seconds - cpu
    print_now(
        f"idle for {IDLE_SECONDS} s: requests {dict(made) or 'none'}, {1e3 * spent / IDLE_SECONDS:.1f} ms CPU a second"
    )


async def measure_active(world: World, operator: Operator, count: int) -> None:
    """Measure memory with active runs and stored results."""
    world.kubelet.hold()
    await world.client.create_all(world.runs, (make_run(f"run-{number}") for number in range(count)))
    await world.kubelet.until_running(count)
    await quiet(operator)
    print_now(f"  and {count} active runs: {operator.resident_megabytes:.0f} MB resident")
    await world.kubelet.release()


def make_result(real: Manifest, number: int) -> Manifest:
    """Return a stored result like `real`, of one of 2,000 series, so that several results are of the same series."""
    series, run, uid = f"series-{number % 2000}", f"run-{number}", str(uuid.uuid4())
    origin = {"run": run, "series": series, "namespace": "", "uid": uid, "attempt": 1}
    case = real["result"]["case"] | {"origin": origin}
    result_labels = {
        labels.MANAGED_BY: labels.MANAGER,
        labels.RUN: run,
        labels.RUN_UID: uid,
        labels.CASE: case["name"],
        labels.SERIES: series,
        labels.CLASS: "accelbench",
    }
    metadata = {"name": result_name(run, uid, case["name"]), "labels": result_labels}
    return real | {"metadata": metadata, "result": real["result"] | {"case": case}}


async def quiet(operator: Operator) -> None:
    """Wait until the operator is idle."""
    while True:
        cpu = operator.cpu_seconds
        await asyncio.sleep(2)
        if operator.cpu_seconds - cpu < 0.1:  # noqa: PLR2004 - 5 % of the time
            return


def named(item: Manifest) -> str:
    """Return the name of an object."""
    return str(item["metadata"]["name"])


def print_costs(turn: Turn, count: int, unit: str) -> None:
    """Print the cost of each run or case."""
    total = sum(turn.requests.values())
    print_now(f"  {1e3 * turn.cpu_seconds / count:.1f} ms CPU a {unit}; {turn.resident:.0f} MB resident")
    print_now(f"  {total / count:.2f} requests a {unit}, {turn.writes / count:.2f} of them writes:")
    for kind, made in turn.requests.most_common():
        print_now(f"    {made / count:8.3f}  {kind}")


def print_steps(longest: list[tuple[float, float, str]]) -> None:
    """Print the longest steps of the event loop."""
    for cpu, wall, name in longest[:6]:
        print_now(f"  a step of {cpu:.0f} ms CPU, {wall:.0f} ms on the wall: {name}")


def spread(values: list[float]) -> str:
    """Format median, minimum and maximum."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def print_now(line: str) -> None:
    """Print a line without buffering."""
    print(line, flush=True)


async def run(arguments: Any) -> None:
    """Run the selected parts."""
    parts: dict[str, Callable[[World], Awaitable[None]]] = {
        "runs": lambda world: measure_runs(world, arguments.runs, arguments.turns),
        "sweeps": lambda world: measure_sweeps(world, arguments.shapes),
        "latency": lambda world: measure_latency(world, arguments.runs),
        "rest": lambda world: measure_rest(world, arguments.results, arguments.runs),
    }
    real = json.loads((REAL / "all.result.json").read_text())
    for name in arguments.only.split(",") if arguments.only else parts:
        with tempfile.TemporaryDirectory() as place, control_plane() as cluster:
            async with (
                Client(cluster.kubeconfig) as client,
                Kubelet(client, write_certificate(Path(place)), real) as kubelet,
            ):
                await parts[name](World(cluster, client, kubelet))


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="parts, with commas: runs, sweeps, latency, rest")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3)
    shapes = [(256, 1, 1), (16, 16, 1), (1, 256, 1), (50, 100, 4)]
    parser.add_argument("--results", type=json.loads, default=[5_000, 20_000])
    parser.add_argument("--shapes", type=json.loads, default=shapes, help="[[runs, cases, parallelism], ...]")
    gc.disable()  # pauses of this process, which simulates the nodes, would delay the operator
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()

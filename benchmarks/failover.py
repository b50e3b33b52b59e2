"""Measure failover: the leader of two replicas is killed again and again while runs come and end.

Runs on the tests' real control plane with a simulated kubelet:

    PYTHONPATH=tests python benchmarks/failover.py --kills 20

Prints the seconds from each kill until the other replica leads and until it advances a run. Then checks the runs: each
case has one result, and no attempt had two Jobs.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from scale.world import control_plane

from accelbench.api import labels
from cluster.cluster import Cluster
from operator_world.builders import make_headline, make_log, make_result, run_manifest
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess

PATIENCE_SECONDS = 60.0
"""Maximum seconds to wait for a condition."""


class Load:
    """Create a run every half second, and simulate the node of their pods."""

    def __init__(self, cluster: Cluster, kubelet: FakeKubelet) -> None:
        """Prepare the threads that create runs and run pods; `start` starts them."""
        self._cluster, self._kubelet = cluster, kubelet
        self._stop, self._over = threading.Event(), threading.Event()
        self.applied = 0
        """Number of runs created so far."""
        self.jobs: Counter[str] = Counter()
        """Number of pods of each Job."""
        self._threads = [threading.Thread(target=task, daemon=True) for task in (self._apply, self._measure)]

    def start(self) -> None:
        """Start creating runs."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop creating runs; existing ones are still measured."""
        self._stop.set()
        self._threads[0].join()

    def end(self) -> None:
        """Stop the simulated node."""
        self._over.set()
        self._threads[1].join()

    def _apply(self) -> None:
        """Create runs until `stop` is called."""
        while not self._stop.wait(0.5):
            self._cluster.apply(run_manifest() | {"metadata": {"name": f"run-{self.applied}"}})
            self.applied += 1

    def _measure(self) -> None:
        """Start and end each pending pod, with the result of its case, until `end` is called."""
        seen: set[str] = set()
        while not self._over.is_set():
            for pod in self._kubelet.pods(self._cluster.namespace):
                if pod.status.phase == "Pending" and pod.metadata.uid not in seen:
                    seen.add(pod.metadata.uid)
                    self.jobs[pod.metadata.labels["batch.kubernetes.io/job-name"]] += 1
                    result = make_result(self._kubelet.case_of(pod))
                    self._kubelet.start(pod)
                    self._kubelet.end(pod, log=make_log(result), message=make_headline(result))
            time.sleep(0.1)


def results(cluster: Cluster) -> list[str]:
    """Return the name of the run of each stored result."""
    return [result["metadata"]["labels"][labels.RUN] for result in cluster.get("bmres")["items"]]


def seconds_until(condition: Callable[[], bool], began: float) -> float:
    """Wait until the condition holds, and return the seconds since `began`; exit if it takes too long."""
    while not condition():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise SystemExit(f"not within {PATIENCE_SECONDS:g} s")
        time.sleep(0.05)
    return time.monotonic() - began


def main() -> None:
    """Kill the leader again and again, and print how long the other replica needs to lead and to work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    kills = parser.parse_args().kills
    with (
        tempfile.TemporaryDirectory() as place,
        control_plane() as cluster,
        FakeKubelet(cluster, Path(place)) as kubelet,
    ):
        replicas = [OperatorProcess(cluster, Path(place, name), lease="operator") for name in ("one", "other")]
        for replica in replicas:
            replica.start()
        load = Load(cluster, kubelet)
        load.start()
        led, worked = [], []
        for number in range(kills):
            seconds_until(lambda: any(replica.leads for replica in replicas), time.monotonic())
            leader = next(replica for replica in replicas if replica.leads)
            follower = next(replica for replica in replicas if replica is not leader)
            before = len(results(cluster))
            began = time.monotonic()
            leader.kill()
            led.append(seconds_until(lambda follower=follower: follower.leads, began))
            worked.append(seconds_until(lambda before=before: len(results(cluster)) > before + 1, began))
            print(f"kill {number + 1}: led after {led[-1]:.1f} s, at work after {worked[-1]:.1f} s", flush=True)
            leader.start()
        load.stop()
        seconds_until(lambda: len(set(results(cluster))) == load.applied, time.monotonic())
        load.end()
        for replica in replicas:
            replica.terminate()
        doubled_results = [run for run, count in Counter(results(cluster)).items() if count > 1]
        doubled_pods = [job for job, count in load.jobs.items() if count > 1]
        for name, seconds in (("led", led), ("at work", worked)):
            print(f"{name}: median {statistics.median(seconds):.1f} s, {min(seconds):.1f} to {max(seconds):.1f} s")
        print(f"{load.applied} runs, {len(doubled_results)} with two results, {len(doubled_pods)} Jobs with two pods")


if __name__ == "__main__":
    main()

"""Run a real control plane and the operator as a process, and read its metrics."""

import json
import os
import re
import signal
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Self

import psutil

from accelbench_operator.metrics.exposition import OPENMETRICS
from cluster.cluster import Cluster
from cluster.run import down, end_abandoned, session_directory, up
from cluster.wait import wait_until
from operator_world.process import OperatorProcess
from scale.limited import MemoryGroup

ROOT = Path(__file__).parents[2]
PROFILES = "small: {platform: cpu, cpu: 1, memory: 1Gi, exclusive: Device}\n"
REQUESTS = re.compile(r"^accelbench_operator_api_requests_total\{(.*)\} (\S+)$", re.MULTILINE)
MEGABYTE = 1e6


@contextmanager
def control_plane() -> Iterator[Cluster]:
    """Start a control plane with this checkout's CRDs."""
    end_abandoned()
    directory = session_directory()
    cluster, processes = up(directory, node=False, die_with_parent=True)
    try:
        cluster.define(ROOT / "crds")
        # A kind that is new is not served at once.
        wait_until(
            lambda: not cluster.kubectl("get", "bmr,bmres", check=False).returncode, what="the kinds to be served"
        )
        yield cluster
    finally:
        down(directory)
        processes.reap()


class Operator:
    """Watch an operator process. Use as a context manager: it is ready inside."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        stopwatch: bool = False,
        group: MemoryGroup | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare the operator's process, which starts at the beginning of the `with` block.

        Args:
            cluster: The cluster that it serves.
            stopwatch: True to time each step of its event loop, which makes it a tenth slower.
            group: The control group that limits its memory; None for no limit.
            environment: Environment variables with its settings.
        """
        self._place = tempfile.TemporaryDirectory()
        self._steps = Path(self._place.name) / "steps.json"
        command: tuple[str, ...] = ("-m", "accelbench_operator")
        if stopwatch:
            command = ("-m", "scale.instrumented", str(self._steps))
        elif group:
            command = ("-m", "scale.limited", str(group.directory))
        self._process = OperatorProcess(
            cluster,
            Path(self._place.name),
            profiles=PROFILES,
            command=command,
            environment={"PYTHONPATH": str(ROOT / "benchmarks"), **environment},
        )

    def __enter__(self) -> Self:
        began = time.monotonic()
        self._process.start()
        self._measured = psutil.Process(self._process.pid)
        wait_until(lambda: self._process.is_ready, what="the operator to be ready", every_seconds=0.05)
        self.start_seconds = time.monotonic() - began
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._place.cleanup()

    @property
    def cpu_seconds(self) -> float:
        """Return the processor time of the process so far."""
        times = self._measured.cpu_times()
        return float(times.user + times.system)

    @property
    def resident_megabytes(self) -> float:
        """Return the current resident memory, in MB."""
        return float(self._measured.memory_info().rss / MEGABYTE)

    @property
    def peak_megabytes(self) -> float:
        """Return the highest resident memory so far, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        kibibytes = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
        return int(kibibytes) * 1024 / MEGABYTE

    @property
    def is_running(self) -> bool:
        """Return True unless the process has ended."""
        return self._measured.is_running() and self._measured.status() != psutil.STATUS_ZOMBIE

    def requests(self) -> Counter[str]:
        """Return the number of API requests so far, by `VERB RESOURCE CODE`."""
        _, text = self.scrape()
        return Counter({_kind(labels): int(float(value)) for labels, value in REQUESTS.findall(text)})

    def scrape(self) -> tuple[float, str]:
        """Return the seconds of a scrape, and its text."""
        began = time.monotonic()
        url = f"http://127.0.0.1:{self._process.metrics_port}/metrics"
        client = urllib.request.build_opener()
        client.addheaders = [("Accept", OPENMETRICS)]
        with client.open(url, timeout=120) as response:
            text: str = response.read().decode()
        return time.monotonic() - began, text

    def longest_steps(self) -> list[tuple[float, float, str]]:
        """Return processor milliseconds, wall milliseconds and name of the longest steps since the last call."""
        self._steps.unlink(missing_ok=True)
        os.kill(self._process.pid, signal.SIGUSR1)
        wait_until(self._steps.exists, what="the longest steps to be written")
        return [(cpu, wall, name) for cpu, wall, name in json.loads(self._steps.read_text())]

    def log(self) -> str:
        """Return the operator's log."""
        return self._process.log()


def _kind(labels: str) -> str:
    """Return `VERB RESOURCE CODE` from the labels of a metric of requests."""
    by_label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    return f"{by_label['verb']} {by_label['resource']} {by_label['code']}"

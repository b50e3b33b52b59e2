"""Simulate a GPU behind the real pynvml: a library compiled from `nvml.c`, in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

SECONDS = 2.0
"""Length of the phase by the injected clock."""
WATCHED = """
import json, os, sys
from itertools import count
from pathlib import Path
from accelbench.launch.facts import Facts
from accelbench_runner.devices import cpu
from accelbench_runner.devices.nvidia import NvidiaMonitor
from accelbench_runner.devices.monitor import Watch

class Clock:
    def __init__(self): self.times = count(0.0, float(sys.argv[1]))
    def seconds(self): return next(self.times)
    def raw_seconds(self): return 0.0

class IdleProcessors:
    def contention(self): return cpu.Contention(0, 0.0, 0.0, 0.0)
    def usage(self): return cpu.Usage(0.0, 0.0, 0.0)
    def other_threads_seconds(self): return 0.0
    def other_processes(self): return {}

def now(**said):
    lines = [f"{name} {value}" for name, value in said.items()]
    Path(os.environ["FAKE_NVML"]).write_text("\\n".join(lines).replace("OWN", str(os.getpid())))

for environment, at_first, awake, later in json.load(sys.stdin):
    os.environ.update(environment)
    now(**at_first)
    monitor = NvidiaMonitor(Clock(), IdleProcessors())
    watch = Watch(monitor, Clock(), IdleProcessors())
    monitor.prepare()
    now(**awake)
    settings = monitor.identify(None)
    watch.begin()
    monitor.sample()
    now(**later)
    monitor.sample()
    readings = {name: value() if callable(value) else value for name, value in watch.end().items()}
    told = Facts.model_validate(readings).model_dump(mode="json", by_alias=True)
    print(json.dumps({"deviceSettings": settings or None, "energy": None, **told}))
    for name in environment:
        del os.environ[name]
"""
H100 = {
    "driver": "580.65.06",
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "powerLimit": 700_000,
    "ecc": 1,
    "mig": 0,
    "pcie": 5,
    "width": 16,
    "nvlinks": 18,
    "maxClock": 1980,
    "clock": 1755,
    "reasons": 0,
    "energy": 5_000_000,
    "violation0": 0,
    "violation1": 0,
    "pids": "OWN",
}
"""State of an idle GPU that only this process uses."""


@dataclass(frozen=True)
class Gpu:
    """Describe what NVML reports before, after and at the end of the phase."""

    said: Mapping[str, Any] = field(default_factory=lambda: H100)
    before: Mapping[str, Any] = field(default_factory=lambda: {"pids": ""})
    later: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def watched(gpus: Sequence[Gpu], directory: Path, library: Path | None) -> list[dict[str, Any]]:
    """Return the facts that a launch on each of these GPUs reports."""
    asked = [
        [dict(gpu.environment), {**gpu.said, **gpu.before}, dict(gpu.said), {**gpu.said, **gpu.later}] for gpu in gpus
    ]
    hidden = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["FAKE_NVML"] = str(directory / "gpu.txt")
    if library:
        environment["LD_LIBRARY_PATH"] = str(library)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(SECONDS)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@cache
def library(*defined: str) -> Path:
    """Compile the library and return its directory; skip the test without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    directory = Path(mkdtemp(prefix="nvml"))
    name = "libnvidia-ml.so.1"
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{name}", *(f"-D{macro}" for macro in defined)]
    subprocess.run([compiler, *flags, "-o", directory / name, Path(__file__).with_name("nvml.c")], check=True)
    return directory

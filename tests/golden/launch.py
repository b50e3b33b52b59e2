"""A real launch on a simulated machine: in this process, or `python launch.py TRUTHS` as a launch of its own."""

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings
from accelbench_runner.launch.stages import run_launch
from accelbench_runner.launch.task import Machine
from accelbench_runner.protocol import LaunchRequest
from golden.adapter import OLD_CACHE, DirectoryCache, EndedError, SimulatedAdapter
from golden.machine import SimulatedMachine
from golden.truth import Truth


def launch(request: LaunchRequest, truth: Truth) -> float:
    """The launch's own code, from the first phase to its last word; returns the true seconds that it took."""
    machine = SimulatedMachine(truth, seed=f"{request.variant} {request.round}")
    cache = DirectoryCache(Path(request.directory) / "simulated")
    if truth.finds_old_cache:
        cache.add(OLD_CACHE)

    def adapter(_framework: str) -> Callable[[AdapterSettings], Adapter]:
        return lambda settings: SimulatedAdapter(settings, truth, machine, cache)

    gc.freeze()  # a launch collects garbage first: what tests have loaded need not be looked at each time
    try:
        run_launch(request, Machine(clock=machine, processors=machine, adapter=adapter))
    finally:
        gc.unfreeze()
    return machine.now


def command(truths: Mapping[str, Truth]) -> list[str]:
    """How a supervisor starts it; truths by variant."""
    return [sys.executable, "-m", "golden.launch", json.dumps({name: asdict(each) for name, each in truths.items()})]


if __name__ == "__main__":
    asked = LaunchRequest.model_validate_json(sys.stdin.buffer.read())
    try:
        launch(asked, Truth(**json.loads(sys.argv[1])[asked.variant]))
    except EndedError as ended:
        if str(ended) == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(1000)

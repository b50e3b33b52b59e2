"""Measure what JAX's preallocation of a GPU's memory takes, and what it saves: two questions of the catalogue.

`python benchmarks/preallocation.py share` reads the memory in use, by NVML, after the first operation of a process:
JAX's documentation says that it takes 75 % of the GPU. `... steps` times steps with preallocation, without it, and with
CUDA's own allocator, each in processes of its own, in rounds of random order: an article says that without it "you pay
allocation overhead on every kernel launch". Both print JSON, as a visit to a GPU imports it (docs/results/gpu).
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelbench import figures
from accelbench.stats.interval import log_speedups, student_interval

SHARE_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "XLA_PYTHON_CLIENT_MEM_FRACTION=.5": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"},
    "XLA_PYTHON_CLIENT_PREALLOCATE=false": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
}
PREALLOCATED = "preallocated"
STEP_SETTINGS: Mapping[str, Mapping[str, str]] = {
    PREALLOCATED: {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"},
    "grows as needed": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "CUDA's allocator": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
}
VARIABLES = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR")
ALPHA = 0.05
WARM_UP_CALLS = 30
BLOCKS = 30
BLOCK_SECONDS = 0.02
"""About how long a timed block of calls takes."""
LAYERS = 4
"""Layers of the network whose training step is timed."""
OPERATIONS = 100
"""Operations of a step without jit, each of which allocates its result."""


def used_and_total_bytes() -> tuple[int | None, int | None]:
    """Return the bytes in use on the first GPU and its size, by NVML; None without NVML."""
    import pynvml

    try:
        pynvml.nvmlInit()
        memory = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0))
    except pynvml.NVMLError:
        return None, None
    return int(memory.used), int(memory.total)


def read_share() -> dict[str, int | None]:
    """Return the memory of the GPU, and the memory in use before and after the import of JAX and its first operation.

    All are bytes. `limit` is the most that JAX's allocator may take.
    """
    before, total = used_and_total_bytes()
    import jax

    imported, _ = used_and_total_bytes()
    jax.block_until_ready(jax.numpy.ones(8) + 1)
    first, _ = used_and_total_bytes()
    statistics_of_jax = jax.devices()[0].memory_stats() or {}
    limit = statistics_of_jax.get("bytes_limit")
    return {"total": total, "before": before, "imported": imported, "first": first, "limit": limit}


def time_steps(width: int) -> dict[str, dict[str, float | None]]:
    """Return for each kind of step its median seconds, and by how many bytes the memory in use grew in timed blocks."""
    return {name: time_calls(make(width)) for name, make in STEPS.items()}


def time_calls(call: Callable[[], Any]) -> dict[str, float | None]:
    """Time blocks of calls after a warm-up, each until the device has finished."""
    import jax

    for _ in range(WARM_UP_CALLS):
        jax.block_until_ready(call())
    began = time.perf_counter()
    jax.block_until_ready(call())
    calls = max(1, round(BLOCK_SECONDS / (time.perf_counter() - began)))
    used_before, _ = used_and_total_bytes()
    seconds = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        for _ in range(calls):
            result = call()
        jax.block_until_ready(result)
        seconds.append((time.perf_counter() - began) / calls)
    used_after, _ = used_and_total_bytes()
    grown = None if used_before is None or used_after is None else used_after - used_before
    return {"seconds": statistics.median(seconds), "grownBytes": grown}


def training_step(width: int) -> Callable[[], Any]:
    """Return a call that trains a perceptron for one step under jit; its state is not donated, so it is allocated.

    `width` is the number of features of each layer, and of examples.
    """
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), LAYERS)
    weights = [jax.random.normal(key, (width, width)) / math.sqrt(width) for key in keys]
    inputs = jax.random.normal(jax.random.key(1), (width, width))

    def loss(weights: Any) -> Any:
        hidden = inputs
        for weight in weights:
            hidden = jnp.tanh(hidden @ weight)
        return jnp.mean((hidden - inputs) ** 2)

    step = jax.jit(lambda weights: [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)])
    return lambda: step(weights)


def separate_operations(width: int) -> Callable[[], Any]:
    """Return a call of many operations without jit, each of which is a kernel and allocates a (width, width) array."""
    import jax.numpy as jnp

    start = jnp.ones((width, width))

    def call() -> Any:
        value = start
        for _ in range(OPERATIONS):
            value = value + 1.0
        return value

    return call


STEPS: Mapping[str, Callable[[int], Callable[[], Any]]] = {
    f"a training step of {LAYERS} layers under jit": training_step,
    f"{OPERATIONS} operations without jit": separate_operations,
}


def in_process(question: str, setting: Mapping[str, str], *options: str) -> Any:
    """Answer a question in a new process whose environment has the setting; `options` are those of its command."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES} | setting
    command = [sys.executable, str(Path(__file__).resolve()), question, "--here", *options]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout)


def report_share() -> dict[str, Any]:
    """Return the share of the GPU's memory that each setting takes with the first operation."""
    rows = []
    for name, setting in SHARE_SETTINGS.items():
        read = in_process("share", setting)
        if read["total"] is None:
            sys.exit("NVML shows no GPU here: this question needs one")
        taken = read["first"] - read["before"]
        limit = figures.quantity(read["limit"], "bytes") if read["limit"] else "unknown"
        rows.append(
            (
                name,
                figures.quantity(read["imported"] - read["before"], "bytes") if read["imported"] else "unknown",
                figures.quantity(taken, "bytes"),
                figures.percent(taken / read["total"]),
                limit,
            )
        )
    return {
        "title": "Memory that JAX takes with its first operation",
        "summary": "By NVML, whose figure has the driver's context in it, a few hundred MB; and the pool's own limit.",
        "columns": (
            "setting",
            "after the import",
            "after the first operation",
            "share of the GPU",
            "limit of the pool",
        ),
        "rows": rows,
    }


def report_steps(round_count: int, width: int) -> dict[str, Any]:
    """Return how long steps take with each allocator, compared with preallocation."""
    rounds = []
    draw = random.Random(0)  # noqa: S311 - the order of processes is no secret
    for _ in range(round_count):
        order = draw.sample(sorted(STEP_SETTINGS), len(STEP_SETTINGS))
        rounds.append({name: in_process("steps", STEP_SETTINGS[name], "--width", str(width)) for name in order})
    rows = []
    for step in STEPS:
        baseline = [measured[PREALLOCATED][step]["seconds"] for measured in rounds]
        for name in STEP_SETTINGS:
            seconds = [measured[name][step]["seconds"] for measured in rounds]
            # How many times as long as with preallocation.
            interval = student_interval(log_speedups(seconds, baseline), ALPHA)
            ratio = "baseline"
            if name != PREALLOCATED:
                ratio = "unknown"
            if name != PREALLOCATED and interval:
                ratio = f"{interval.estimate:.3f} ({interval.lower:.3f} to {interval.upper:.3f})"
            grown = [measured[name][step]["grownBytes"] for measured in rounds]
            growth = "unknown" if None in grown else figures.quantity(max(grown), "bytes") if max(grown) else "none"
            rows.append((step, name, figures.seconds(statistics.geometric_mean(seconds)), ratio, growth))
    return {
        "title": "Steps with and without preallocation",
        "summary": f"{round_count} rounds of processes in random order, arrays of {width} x {width}; times as long as "
        f"with preallocation, with the {1 - ALPHA:.0%} interval; growth of the memory in use during timed blocks, the "
        "largest of all rounds.",
        "columns": ("step", "memory", "time", "times as long", "growth"),
        "rows": rows,
    }


def main() -> None:
    """Print a report or, with `--here`, what this process reads or measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", choices=("share", "steps"))
    parser.add_argument("--here", action="store_true", help="answer in this process, with the environment as it is")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each setting of steps")
    parser.add_argument("--width", type=int, default=1024, help="rows and columns of the arrays of steps")
    options = parser.parse_args()
    if options.here:
        report: Any = read_share() if options.question == "share" else time_steps(options.width)
    else:
        report = report_share() if options.question == "share" else report_steps(options.rounds, options.width)
    print(json.dumps(report))


if __name__ == "__main__":
    main()

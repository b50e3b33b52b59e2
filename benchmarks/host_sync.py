"""Measure on a GPU what reading the loss of each training step costs, and how long a call blocks without a reading.

An article says that printing the loss in each iteration "forces synchronization". JAX and PyTorch only launch a step's
kernels; the host waits where a number is read. `python benchmarks/host_sync.py` times training steps whose loss is read
after each, after every tenth, and never, for arrays of two sizes. Each framework runs in processes of its own, in
rounds. It prints JSON, as a visit to a GPU imports it (docs/results/gpu). On a CPU, PyTorch computes in the call.
"""

import argparse
import json
import math
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

ALPHA = 0.05
LAYERS = 4
"""Layers of the network that is trained."""
READINGS: Mapping[str, int] = {"never": 0, "after every tenth step": 10, "after each step": 1}
"""After how many steps the loss is read; 0: only at the end."""
NEVER = "never"
WARM_UP_STEPS = 30
STEPS = 200
"""Steps of a timed loop, which ends when the device has finished."""
LOOPS = 5
CALLS = 100
"""Calls of which each is timed by itself, from an idle device."""

Step = Callable[[], Any]
"""Makes a training step and returns its loss, which may not be computed yet."""


def jax_step(width: int) -> Step:
    """Return a training step under jit, of (width, width) layers and as many examples."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), LAYERS)
    weights = [jax.random.normal(key, (width, width)) / math.sqrt(width) for key in keys]
    inputs = jax.random.normal(jax.random.key(1), (width, width))

    def loss_of(weights: Any, inputs: Any) -> Any:
        hidden = inputs
        for weight in weights:
            hidden = jnp.tanh(hidden @ weight)
        return jnp.mean((hidden - inputs) ** 2)

    def update(weights: Any, inputs: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, inputs)
        return [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)], loss

    jitted = jax.jit(update, donate_argnums=0)

    def step() -> Any:
        nonlocal weights
        weights, loss = jitted(weights, inputs)  # captured, the inputs would be a constant of the program
        return loss

    return step


def torch_step(width: int) -> Step:
    """Return a training step in eager PyTorch, of (width, width) layers and as many examples."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [module for _ in range(LAYERS) for module in (torch.nn.Linear(width, width, bias=False), torch.nn.Tanh())]
    model = torch.nn.Sequential(*layers).to(device)
    inputs = torch.randn(width, width, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), inputs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


FRAMEWORKS: Mapping[str, Callable[[int], Step]] = {"jax": jax_step, "pytorch": torch_step}


def time_framework(name: str, width: int, order: list[str]) -> dict[str, float]:
    """Return the seconds of a step for each reading, in this order, and those of a call without a reading (`call`)."""
    step = FRAMEWORKS[name](width)
    for _ in range(WARM_UP_STEPS):
        float(step())
    seconds = {
        reading: statistics.median(time_loop(step, READINGS[reading]) for _ in range(LOOPS)) for reading in order
    }
    calls = []
    for _ in range(CALLS):
        began = time.perf_counter()
        loss = step()
        calls.append(time.perf_counter() - began)
        float(loss)  # the next call finds the device idle
    return {**seconds, "call": statistics.median(calls)}


def time_loop(step: Step, every: int) -> float:
    """Return the seconds of a step in a loop that reads the loss after every `every` steps; 0: only the last one."""
    began = time.perf_counter()
    for index in range(1, STEPS + 1):
        loss = step()
        if every and index % every == 0:
            float(loss)
    float(loss)
    return (time.perf_counter() - began) / STEPS


def in_process(name: str, width: int, order: list[str]) -> dict[str, float]:
    """Time a framework in a new process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--framework", name, "--widths", str(width)]
    process = subprocess.run([*command, "--order", *order], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(process.stdout)
    return found


def report(round_count: int, widths: list[int]) -> dict[str, Any]:
    """Return how long steps take for each reading, compared with no reading, and how long a call blocks the host."""
    draw = random.Random(0)  # noqa: S311 - the order of loops is no secret
    rows = []
    for name in FRAMEWORKS:
        for width in widths:
            rounds = [in_process(name, width, draw.sample(list(READINGS), len(READINGS))) for _ in range(round_count)]
            unread = [measured[NEVER] for measured in rounds]
            call = statistics.geometric_mean([measured["call"] for measured in rounds])
            for reading in READINGS:
                seconds = [measured[reading] for measured in rounds]
                interval = student_interval(log_speedups(seconds, unread), ALPHA)
                ratio = "baseline" if reading == NEVER else "unknown"
                if reading != NEVER and interval:
                    ratio = f"{interval.estimate:.3f} ({interval.lower:.3f} to {interval.upper:.3f})"
                mean = statistics.geometric_mean(seconds)
                rows.append((name, str(width), reading, figures.seconds(mean), ratio, figures.seconds(call)))
    return {
        "title": "Training steps whose loss the host reads",
        "summary": f"{round_count} rounds of processes, {LAYERS} layers; times as long as without reading, with the "
        f"{1 - ALPHA:.0%} interval; and how long a call without a reading blocks the host.",
        "columns": ("framework", "width", "the loss is read", "time of a step", "times as long", "host in a call"),
        "rows": rows,
    }


def main() -> None:
    """Print a report or, with `--framework`, what this process measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=tuple(FRAMEWORKS), help="measure it in this process")
    parser.add_argument("--order", nargs="+", choices=tuple(READINGS), default=list(READINGS))
    parser.add_argument("--rounds", type=int, default=5, help="processes for each framework and width")
    parser.add_argument("--widths", type=int, nargs="+", default=[256, 4096], help="features of a layer, and examples")
    options = parser.parse_args()
    if options.framework:
        print(json.dumps(time_framework(options.framework, options.widths[0], options.order)))
    else:
        print(json.dumps(report(options.rounds, options.widths)))


if __name__ == "__main__":
    main()

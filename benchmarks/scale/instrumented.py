"""Run the operator with a stopwatch at each step of its event loop: `python -m scale.instrumented FILE`.

On SIGUSR1 it writes the longest steps to FILE as JSON: processor time and wall time, because a busy machine preempts a
step for longer than it runs.
"""

import asyncio
import gc
import heapq
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from accelbench_operator.__main__ import main

KEPT = 20
"""Number of steps that are kept."""

longest: list[tuple[float, float, str]] = []
"""Processor milliseconds, wall milliseconds, and the callback."""


def timed(run: Any) -> Any:
    """Return `run`, asyncio's `Handle._run`, with a stopwatch around each call."""

    def timed_run(handle: Any) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        run(handle)
        record(1e3 * (time.thread_time() - cpu), 1e3 * (time.perf_counter() - wall), _name(handle))

    return timed_run


def record(cpu_milliseconds: float, wall_milliseconds: float, name: str) -> None:
    """Keep a step if it is among the longest."""
    if len(longest) < KEPT:
        heapq.heappush(longest, (cpu_milliseconds, wall_milliseconds, name))
    elif cpu_milliseconds > longest[0][0]:
        heapq.heapreplace(longest, (cpu_milliseconds, wall_milliseconds, name))


def collection_timer() -> Any:
    """Return a callback of the garbage collector that records how long a collection takes.

    A collection is part of the step that triggers it.
    """
    began = 0.0

    def on_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        else:
            spent = 1e3 * (time.thread_time() - began)
            record(spent, spent, f"garbage of generation {info['generation']}, as part of a step")

    return on_collection


def _name(handle: Any) -> str:
    """Return the name of the coroutine or function that the handle runs."""
    callback = handle._callback  # noqa: SLF001 - asyncio shows it nowhere else
    task = getattr(callback, "__self__", None)
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else callback
    return str(getattr(coroutine, "__qualname__", coroutine))[:80]


def dump(*_: object) -> None:
    """Write the steps and begin anew."""
    Path(sys.argv[1]).write_text(json.dumps(sorted(longest, reverse=True)))
    longest.clear()


if __name__ == "__main__":
    asyncio.events.Handle._run = timed(asyncio.events.Handle._run)  # type: ignore[method-assign]  # noqa: SLF001
    gc.callbacks.append(collection_timer())
    signal.signal(signal.SIGUSR1, dump)
    sys.exit(main())

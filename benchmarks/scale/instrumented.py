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

longest: list[tuple[float, float, str]] = []
"""Processor milliseconds, wall milliseconds, and the callback."""


def timed(run: Any) -> Any:
    """Run `Handle._run` with a stopwatch."""

    def timed_run(handle: Any) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        run(handle)
        note(1e3 * (time.thread_time() - cpu), 1e3 * (time.perf_counter() - wall), _name(handle))

    return timed_run


def note(spent: float, passed: float, name: str) -> None:
    """Keep the step if it is among the longest."""
    if len(longest) < KEPT:
        heapq.heappush(longest, (spent, passed, name))
    elif spent > longest[0][0]:
        heapq.heapreplace(longest, (spent, passed, name))


def collecting() -> Any:
    """Time the garbage collector, which is part of the step that triggers it."""
    began = 0.0

    def told(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        else:
            spent = 1e3 * (time.thread_time() - began)
            note(spent, spent, f"garbage of generation {info['generation']}, as part of a step")

    return told


def _name(handle: Any) -> str:
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
    gc.callbacks.append(collecting())
    signal.signal(signal.SIGUSR1, dump)
    sys.exit(main())

"""Load the machine next to a measurement, until killed.

    python benchmarks/load.py spin --share 0.11 --period 0.01 --processor 0 --fifo

It prints a line once it runs, and ends when its parent has ended: a real-time loop that never ends takes a machine
down.
"""

import argparse
import os
import random
import time

ALIVE_SECONDS = 0.05
"""Default period in seconds, after which `spin` checks whether its parent still runs."""
COPIED_BYTES = 256 * 2**20
"""Bytes to copy, far more than a last-level cache."""


def spin(share: float, period: float, parent: int) -> None:
    """Work for a `share` of each `period` seconds, at a random time of the period, until the parent has ended."""
    while os.getppid() == parent:
        work = share * period
        before = random.random() * (period - work)  # noqa: S311 - so that loads of several processors are not in step
        time.sleep(before)
        until = time.perf_counter() + work
        while time.perf_counter() < until:
            pass
        time.sleep(period - work - before)


def copy(parent: int) -> None:
    """Copy memory as fast as one processor can, until the parent has ended."""
    source, target = bytearray(COPIED_BYTES), bytearray(COPIED_BYTES)
    whole = memoryview(source)
    while os.getppid() == parent:
        memoryview(target)[:] = whole


def main() -> None:
    """Set niceness, processor and scheduling class, then work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("spin", "copy"))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--period", type=float, default=ALIVE_SECONDS)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--processor", type=int)
    parser.add_argument("--fifo", action="store_true")
    options = parser.parse_args()
    parent = os.getppid()
    if options.nice:
        os.nice(options.nice)
    if options.processor is not None:
        os.sched_setaffinity(0, {options.processor})
    if options.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print("at work", flush=True)
    if options.kind == "copy":
        copy(parent)
    else:
        spin(options.share, options.period, parent)


if __name__ == "__main__":
    main()

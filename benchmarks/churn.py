"""Measure the operators' memory through a simulated day of a busy cluster, hour by hour.

A run a minute succeeds, fails, is suspended, cancelled or deleted, while one request in a hundred fails:

    PYTHONPATH=tests python benchmarks/churn.py
    PYTHONPATH=tests python benchmarks/churn.py --replicas 2
"""

import argparse
import logging
import time
import tracemalloc
from random import Random

from operator_world.churn import churn, fates, faults, of_a_cluster
from operator_world.world import simulated

SHOWN_COUNTS = ("keys", "known", "versions", "due", "heap", "memories", "Job", "Pod", "BenchmarkResult")
"""Numbers of objects that an operator holds, which the table shows by name."""


def main() -> None:
    """Simulate the day and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    random = Random(options.seed)  # noqa: S311 - a day that can be simulated again
    began = time.process_time()
    tracemalloc.start()
    print("| hour | runs made | finished | there | results | KiB held | KiB allocated |", " | ".join(SHOWN_COUNTS), "|")
    print("|---" * (7 + len(SHOWN_COUNTS)) + "|")
    with simulated(
        seed=options.seed,
        replicas=options.replicas,
        faults=faults(random, 0.01),
        fates=fates(random),
        settings=of_a_cluster(),
    ) as world:
        for hour in churn(world, options.hours):
            kilobytes = " + ".join(f"{size:.0f}" for size in hour.kilobytes)
            numbers = (hour.number, hour.made, hour.finished, hour.runs, hour.results, kilobytes, f"{hour.traced:.0f}")
            counts = (" + ".join(str(replica[name]) for replica in hour.held) for name in SHOWN_COUNTS)
            print("|", " | ".join(map(str, (*numbers, *counts))), "|", flush=True)
        world.heal()
        world.finish()
        world.empty()
    seconds = time.process_time() - began
    hours = world.time.seconds / 3600
    print(f"\n{hours:.0f} simulated hours in {seconds:.0f} s of a processor, {hours / seconds:.2f} a second.")
    print("Laws broken:", "; ".join(world.laws.broken) or "none")


if __name__ == "__main__":
    main()

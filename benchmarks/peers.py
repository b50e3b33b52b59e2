"""Time the same step with accelbench's blocks, torch.utils.benchmark and pyperf, in one process, in turn.

    python benchmarks/peers.py [REPETITIONS] > docs/results/peers.md

A step is a chain of matrix products in eager PyTorch, as the adapter runs it: the same call, threads and settings for
all three. Each repetition runs all three in random order, for a second each: torch's blocked_autorange, a pyperf worker
with its default warm-up and ten values of its default 100 ms, and blocks that are warmed up and planned anew. Each
tool's result is its median. The interval is Student's t on the logarithms of the ratios, one a repetition.
"""

import contextlib
import io
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import pyperf
from real import environment
from step import THREADS, adapter, chain
from torch.utils.benchmark import Timer

from accelbench.stats.interval import student_interval
from accelbench_runner.clock import MonotonicClock
from accelbench_runner.frameworks.pytorch import PyTorch
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks

STEPS = (("10 us", 10e-6, 64), ("1 ms", 1e-3, 64), ("100 ms", 0.1, 512))
"""Target seconds of a step, and the rows of its matrices."""
MARGIN = 0.02
ALPHA = 0.05
MINIMUM_SECONDS = 1.0
"""Time for torch's blocked_autorange, the same as for accelbench's blocks."""
VALUES = 10
"""Values of a pyperf worker, 100 ms each: with its default of three, a short disturbance would change the median."""
Tool = Callable[[Work], float]
"""Function that measures the seconds of a call."""


def work_of(torch_adapter: PyTorch, seconds: float, size: int) -> tuple[Work, int]:
    """Return a chain of about this many seconds, and its number of products."""
    length = max(1, round(seconds / blocks.warm_up(chain(torch_adapter, size, 1), MonotonicClock())))
    return chain(torch_adapter, size, length), length


def accelbench(work: Work) -> float:
    """Return seconds per call, as a launch times its steady phase."""
    clock = MonotonicClock()
    with blocks.garbage_collection_paused():
        planned = blocks.plan(blocks.warm_up(work, clock), blocks.overhead_seconds(work, clock))
        measured = blocks.measure_as_planned(work, planned, clock)
    return statistics.median(measured.seconds) / measured.units * work.units


def torch_benchmark(work: Work) -> float:
    """Return seconds per call by torch.utils.benchmark, with its number of threads set."""
    timer = Timer(
        stmt="state, out = call(state, batches)",
        setup="state = fresh()",
        globals={"call": work.call, "fresh": work.fresh, "batches": work.batches},
        num_threads=THREADS,
    )
    return float(timer.blocked_autorange(min_run_time=MINIMUM_SECONDS).median)


class Pyperf:
    """Run a pyperf worker in this process, calibrated once for each step."""

    def __init__(self) -> None:
        """Create a worker without a number of loops, which is calibrated at the first call for each step."""
        self._runner = pyperf.Runner()
        self._runner.parse_args(["--worker", "--quiet", "--warmups=1", "--loops=1", f"--values={VALUES}"])
        self._loops: dict[int, int] = {}
        self._benchmark_count = 0

    def __call__(self, work: Work) -> float:
        """Return seconds per call."""
        if id(work) not in self._loops:
            self._loops[id(work)] = int(self._bench(work, calibrate=True).get_runs()[0].get_loops())
        self._runner.args.loops = self._loops[id(work)]
        return float(self._bench(work, calibrate=False).median())

    def _bench(self, work: Work, *, calibrate: bool) -> Any:
        """Return pyperf's result for the step: its number of loops if `calibrate`, else its values."""
        call, batches = work.call, work.batches

        def timed(loops: int) -> float:
            state = work.fresh()
            began = pyperf.perf_counter()
            for _ in range(loops):
                state, _out = call(state, batches)
            return float(pyperf.perf_counter() - began)

        self._runner.args.calibrate_loops = calibrate
        self._benchmark_count += 1
        with contextlib.redirect_stdout(io.StringIO()):
            return self._runner.bench_time_func(f"step {self._benchmark_count}", timed)


def ratio(ours: list[float], theirs: list[float]) -> tuple[str, bool]:
    """Return the ratio of two tools' medians with its interval, as text, and whether the interval is within the margin.

    Item i of both arguments is from repetition i.
    """
    log_ratios = [math.log(our_median / their_median) for our_median, their_median in zip(ours, theirs, strict=True)]
    interval = student_interval(log_ratios, ALPHA)
    if interval is None:
        return f"{math.exp(statistics.fmean(log_ratios)):.4f}", False
    within = interval.lower >= 1 / (1 + MARGIN) and interval.upper <= 1 + MARGIN
    cell = f"{interval.estimate:.4f} ({interval.lower:.4f} to {interval.upper:.4f})"
    return cell, within


def spread(seconds: list[float]) -> str:
    """Format median and range over repetitions."""
    scale, unit = 1e6, "us"
    if max(seconds) >= 1:
        scale, unit = 1, "s"
    elif max(seconds) >= 1e-3:  # noqa: PLR2004 - a millisecond
        scale, unit = 1e3, "ms"
    statistics_of_seconds = (min(seconds), statistics.median(seconds), max(seconds))
    smallest, median, largest = (f"{scale * value:.4g}" for value in statistics_of_seconds)
    return f"{median} {unit} ({smallest} to {largest})"


def main(repetitions: int) -> int:
    """Print the report as Markdown; return 1 if a step is not equivalent."""
    began = time.monotonic()
    torch_adapter = adapter()
    tools: dict[str, Tool] = {
        "accelbench": accelbench,
        "torch.utils.benchmark": torch_benchmark,
        "pyperf": Pyperf(),
    }
    rng = random.Random(0)  # noqa: S311 - the order of tools is no secret
    print("# accelbench beside its peers\n")
    print(f"`python benchmarks/peers.py {repetitions}` on {environment()}\n")
    print(
        f"A step is a chain of matrix products in eager PyTorch, {THREADS} threads, float32. {repetitions} repetitions,"
    )
    print(
        "all three tools in each, in random order, in one process. Medians with the range over repetitions; ratios of"
    )
    print("accelbench's to the peer's, with 95 % intervals.\n")
    print("| step | products | accelbench | torch.utils.benchmark | pyperf | over torch | over pyperf | within 2 % |")
    print("|---|---|---|---|---|---|---|---|")
    held = True
    for name, seconds, size in STEPS:
        work, length = work_of(torch_adapter, seconds, size)
        seconds_by_tool: dict[str, list[float]] = {tool: [] for tool in tools}
        for _ in range(repetitions):
            for tool in rng.sample(sorted(tools), len(tools)):
                seconds_by_tool[tool].append(tools[tool](work))
        ours, *theirs = seconds_by_tool.values()
        ratios = [ratio(ours, seconds) for seconds in theirs]
        held &= all(within for _, within in ratios)
        answer = "yes" if all(within for _, within in ratios) else "no"
        cells = [f"{length} of {size}", *map(spread, seconds_by_tool.values()), *(cell for cell, _ in ratios), answer]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\nTook {time.monotonic() - began:.0f} s.")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))

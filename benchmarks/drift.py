"""Simulate how often the drift test rejects stationary series, and how small a drift it detects.

    python benchmarks/drift.py [SERIES] > docs/results/drift.md

Each series is one launch: an AR(1) process with memory, normal or with the long tail of a log-normal. A variant is the
product's own check on launches of such series, after every round from 2 to 20.
"""

import math
import sys
import time

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from accelbench.stats.drift import LIMIT, Drift, launch_drift, trend
from accelbench.validity.unsteady import judge_drifts

Floats = NDArray[np.float64]
SIGMA = 0.02
"""Standard deviation of a launch's log block times."""
MATTERS = 0.01
"""Smallest relative drift that matters."""
BLOCKS = (10, 20, 50, 100, 200)
"""Numbers of blocks in a launch."""
MEMORIES = (-0.5, 0.0, 0.3, 0.5, 0.7, 0.8, 0.9)
"""Lag-1 correlations of blocks."""
BURN_IN = 200
"""Values at the start of a series that are dropped, so that the rest is stationary."""
DRIFTS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
ROUNDS = 20
SHAPES = ("straight", "settling", "step")


def stationary(rng: Generator, series: int, blocks: int, memory: float, *, tail: bool = False) -> Floats:
    """Draw series of blocks, (series, blocks), with deviation 1 and lag-1 correlation `memory`.

    If `tail`, these are the deviation and correlation of the logarithms, so that the blocks have a long tail.
    """
    steps = rng.standard_normal((series, blocks + BURN_IN)) * math.sqrt(1 - memory**2)
    values = np.zeros(series)
    course = np.empty_like(steps)
    for index in range(steps.shape[1]):
        values = memory * values + steps[:, index]
        course[:, index] = values
    course = course[:, BURN_IN:]
    return np.asarray(np.exp(course) if tail else course)


def shape(name: str, blocks: int) -> Floats:
    """Return a drift by 1 over the blocks, in the shape of this name."""
    position = np.linspace(0, 1, blocks)
    courses = {
        "straight": position,
        "settling": np.exp(-3 * position),
        "step": (position > 1 / 2).astype(float),
    }
    return courses[name]


def seconds(logarithms: Floats) -> list[float]:
    """Return the block times of one launch, in seconds, from their logarithms."""
    return [float(value) for value in 0.01 * np.exp(logarithms)]


def false_alarms(series: int, rng: Generator) -> float:
    """Print the shares of rejected series; return the largest of those worth at least eight independent blocks."""
    worst = 0.0
    print("| blocks | tail | " + " | ".join(f"{memory:g}" for memory in MEMORIES) + " |")
    print("|---|---|" + "---|" * len(MEMORIES))
    for blocks in BLOCKS:
        for tail in (False, True):
            cells = []
            for memory in MEMORIES:
                values = stationary(rng, series, blocks, memory, tail=tail)
                share = sum(abs(trend(row)) > LIMIT for row in values) / series
                independent = blocks * (1 - memory) / (1 + memory)
                if independent >= 8:  # noqa: PLR2004 - what the product's docstring promises
                    worst = max(worst, share)
                cells.append(f"{100 * share:.2f}" if independent >= 8 else f"({100 * share:.1f})")  # noqa: PLR2004
            print(f"| {blocks} | {'long' if tail else 'normal'} | {' | '.join(cells)} |", flush=True)
    return worst


def drifts_of(logarithms: Floats) -> list[Drift]:
    """Return the drift of each launch; `logarithms` are those of its block times, (launches, blocks)."""
    drifts = [launch_drift(seconds(row)) for row in logarithms]
    return [drift for drift in drifts if drift is not None]


def rejected_stationary(cases: int, blocks: int, memory: float, rng: Generator) -> float:
    """Return the share of variants without drift that the check rejects after any round."""
    rejected = 0
    for _ in range(cases):
        drifts = drifts_of(SIGMA * stationary(rng, ROUNDS, blocks, memory))
        findings = [judge_drifts(drifts[:count], maximum=MATTERS) for count in range(2, ROUNDS + 1)]
        rejected += any(finding.outcome == "failed" for finding in findings)
    return rejected / cases


def rejected_drifting(drift: float, name: str, launches: int, cases: int, rng: Generator) -> float:
    """Return the share of variants that the check rejects if their launches drift by `drift`, in the shape `name`."""
    course = math.log1p(drift) * shape(name, 100)
    rejected = 0
    for _ in range(cases):
        drifts = drifts_of(SIGMA * stationary(rng, launches, 100, 0.3) + course)
        rejected += judge_drifts(drifts, maximum=MATTERS).outcome == "failed"
    return rejected / cases


def main(series: int) -> int:
    """Print the report as Markdown; return 1 if a promise does not hold."""
    began = time.process_time()
    rng = np.random.default_rng(20260103)
    print("# The drift test, simulated\n")
    print(f"`python benchmarks/drift.py {series}`\n")
    print(f"## One launch: false alarms in percent of {series} stationary series, by their lag-1 correlation\n")
    print("In brackets: series so correlated that they are worth fewer than eight independent blocks.\n")
    worst = false_alarms(series, rng)
    print(f"\nPromised outside the brackets: at most 1. The worst: {100 * worst:.2f}.")
    print("\n## A variant: false alarms of the check `unsteady` in 20 looks, in percent\n")
    print(f"Blocks with noise of {100 * SIGMA:g} %; a drift of {100 * MATTERS:g} % matters.\n")
    print("| blocks | " + " | ".join(f"{memory:g}" for memory in MEMORIES[1:]) + " |")
    print("|---|" + "---|" * len(MEMORIES[1:]))
    cases = series // 10
    worst_variant = 0.0
    for blocks in (10, 50, 200):
        shares = [rejected_stationary(cases, blocks, memory, rng) for memory in MEMORIES[1:]]
        worst_variant = max(worst_variant, *shares)
        print(f"| {blocks} | {' | '.join(f'{100 * share:.2f}' for share in shares)} |", flush=True)
    print("\n## A variant whose launches all drift: found, in percent, by the drift over 100 blocks\n")
    print("| drift | launches | " + " | ".join(f"{100 * drift:g} %" for drift in DRIFTS) + " |")
    print("|---|---|" + "---|" * len(DRIFTS))
    for name in SHAPES:
        for launches in (2, 5, 10):
            cells = [
                f"{100 * rejected_drifting(drift, name, launches, max(50, cases // 5), rng):.0f}" for drift in DRIFTS
            ]
            print(f"| {name} | {launches} | {' | '.join(cells)} |", flush=True)
    print(f"\nTook {time.process_time() - began:.0f} s of one processor.")
    return 0 if worst <= 0.01 and worst_variant <= 0.01 else 1  # noqa: PLR2004 - one in a hundred


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000))

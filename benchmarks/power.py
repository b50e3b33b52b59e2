"""Simulate how often the default rule detects a difference, and equality if there is none.

    python benchmarks/power.py [EXPERIMENTS] > docs/results/power.md

Launches and rule are those of `coverage.py`; verdicts at the default margin are checked against
`accelbench.verdict.rule`.
"""

import math
import sys
import time

import numpy as np
from coverage import DEFAULT, Ended, lower_bound, simulate, speedups, stop
from noise import Model, Orders, heavy, humps, normal, rarely_slow, throttling, wandering
from numpy.random import Generator
from numpy.typing import NDArray

from accelbench.api.result import Certificate, Check
from accelbench.stats.interval import Interval
from accelbench.verdict.rule import INDISPENSABLE, ValidMeasurement

MARGIN = 0.02
ENOUGH = 0.95
"""Promised lower bound of the share of detected differences of 5 %."""
SIGMA = 0.01
"""Standard deviation of the log-seconds of launches."""
SPEEDUPS = (1 / 1.05, 1.0, 1.05)
MODELS: dict[str, Model] = {
    "normal": normal,
    "Student's t, 2.5 degrees of freedom": heavy,
    "bimodal launches, humps 5 % apart": humps(0.5, 0.05),
    "shared drift, random walk": wandering,
    "a throttling step, 30 % slower": throttling(1.3),
    "rare slow launches on both sides": rarely_slow,
}


def verdicts(ended: Ended) -> NDArray[np.str_]:
    """Return a verdict for each experiment."""
    log_margin = math.log1p(MARGIN)
    lower, upper = ended.means - ended.half_widths, ended.means + ended.half_widths
    return np.select(
        [lower > log_margin, upper < -log_margin, (lower >= -log_margin) & (upper <= log_margin)],
        ["faster", "slower", "equivalent"],
        "inconclusive",
    )


def check_against_the_product(ended: Ended) -> None:
    """Check that the verdicts are those of `accelbench.verdict.rule`."""
    checks = tuple(Check(name=name, outcome="passed", reading="simulated") for name in INDISPENSABLE)
    measurement = ValidMeasurement(Certificate(checks=checks), "variant", "baseline")
    for index, verdict in enumerate(verdicts(ended)[:500]):
        interval = Interval(float(ended.means[index]), float(ended.half_widths[index]), int(ended.rounds[index]))
        assert measurement.decide(interval, MARGIN) == verdict


def line(name: str, model: Model, sigma: float, orders: Orders, experiments: int, rng: Generator) -> float:
    """Print a row of the table; return the 99 % lower bound of the share of detected differences, 5 % either way."""
    cells = []
    bounds = []
    for speedup, right_verdict in zip(SPEEDUPS, ("slower", "equivalent", "faster"), strict=True):
        drawn = orders.draw(rng, experiments, DEFAULT.rounds_max)
        ended = stop(speedups(simulate(model, speedup, sigma, drawn, rng)), DEFAULT)
        check_against_the_product(ended)
        share = float((verdicts(ended) == right_verdict).mean())
        cells.append(f"{100 * share:.1f} after {ended.rounds.mean():.1f}")
        if right_verdict != "equivalent":
            bounds.append(lower_bound(share, experiments))
    print(f"| {name} | {100 * sigma:g} % | {' | '.join(cells)} | {100 * min(bounds):.1f} |", flush=True)
    return min(bounds)


def main(experiments: int) -> int:
    """Print the report as Markdown; return 1 if the promise does not hold."""
    began = time.process_time()
    rng = np.random.default_rng(20260102)
    orders = Orders.of_schedule(2000, DEFAULT.rounds_max)
    print("# Power of the verdict, simulated\n")
    print(f"`python benchmarks/power.py {experiments}`: {experiments} experiments a cell. Defaults: 5 to 20 rounds,")
    print(
        "target 1 %, 95 %, margin 2 %. How often the right verdict is given, in percent, and after how many rounds in"
    )
    print("the mean; last, the 99 % lower bound of finding a difference of 5 % either way.\n")
    print(
        "| launches | noise of a launch | 5 % slower | the same | 5 % faster | lower bound |\n|---|---|---|---|---|---|"
    )
    promised = line("normal", normal, SIGMA, orders, experiments, rng)
    for sigma in (0.002, 0.005, 0.015, 0.02, 0.03, 0.05):
        line("normal", normal, sigma, orders, experiments, rng)
    for name, model in list(MODELS.items())[1:]:
        line(name, model, SIGMA, orders, experiments, rng)
    held = promised >= ENOUGH
    print(f"\nPromised for noise of 1 %: at least {100 * ENOUGH:g}. {'Held' if held else 'NOT held'}.")
    print(f"\nTook {time.process_time() - began:.0f} s of one processor.")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))

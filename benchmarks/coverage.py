"""Measure coverage, width and false verdicts of the product's stopping rule by simulation.

    python benchmarks/coverage.py [EXPERIMENTS] > docs/results/coverage.md

Every experiment draws the seconds of launches (`noise.py`), in the order in which the product would start them,
computes log-speedups of rounds, tests the interval after every round from rounds.min on, and stops when it is narrow
enough. Every run checks the vectorised rule against `accelbench.stats`. With large noise no experiment stops early, and
with small noise all stop at once; testing early costs most in between, so every line is the worst over `SIGMAS`.
"""

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from noise import BESIDE, NOT_SURVIVED, PROMISED, Floats, Model, Orders, normal
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import beta

from accelbench.stats.gap import find_gap
from accelbench.stats.independence import MINIMUM_ROUNDS, correlation_limit, lag_one_correlation
from accelbench.stats.interval import log_speedups, student_interval
from accelbench.stats.stopping import StoppingRule

SPEEDUPS = (1.0, 1.01, 1.05, 2.0)
"""True speedups."""
SIGMAS = (0.001, 0.004, 0.006, 0.008, 0.01, 0.014, 0.02, 0.05)
"""Standard deviations of the log-seconds of launches."""
SECONDS = 0.01
"""Typical seconds of the baseline's launches; a ratio does not depend on them."""
DEFAULT = StoppingRule(rounds_min=5, rounds_max=20, target=0.01, confidence=0.95)
SETTINGS = ((2, 20), (3, 10), (3, 50), (5, 10), (5, 50), (10, 20), (10, 50))
"""Other minimum and maximum numbers of rounds."""
ROUNDING = 1e-12
"""Tolerance for rounding of logarithms: equal launches give an interval without width."""
ENOUGH = 0.945
"""Promised lower bound of the coverage, at a confidence of 95 %."""
WIDEST = 1.3
"""Promised maximum of `Ended.width_ratio`."""


@dataclass(frozen=True)
class Ended:
    """Hold the round at which each experiment stopped, and its interval then: arrays of shape (experiments,)."""

    rounds: NDArray[np.intp]
    means: Floats
    half_widths: Floats
    width_ratio: float
    """Median over experiments of the half-width divided by that of an interval whose rounds were fixed in advance."""

    def covered(self, truth: float) -> NDArray[np.bool_]:
        """Return which intervals contain the log-speedup `truth`."""
        return np.abs(self.means - truth) <= self.half_widths + ROUNDING


def stop(log_ratios: Floats, rule: StoppingRule) -> Ended:
    """Apply the product's stopping rule to the log-speedups of all experiments at once: (experiments, rounds)."""
    counts = np.arange(1, log_ratios.shape[1] + 1)
    centre = log_ratios.mean(axis=1, keepdims=True)
    means = np.cumsum(log_ratios - centre, axis=1) / counts
    squares = np.cumsum((log_ratios - centre) ** 2, axis=1) - counts * means**2
    from_minimum = slice(rule.rounds_min - 1, None)
    counts, means = counts[from_minimum], means[:, from_minimum] + centre
    standard_errors = np.sqrt(np.maximum(squares[:, from_minimum], 0) / (counts - 1) / counts)
    widths = stdtrit(counts - 1, 1 - rule.nominal_alpha / 2) * standard_errors
    narrow_enough = widths <= math.asinh(rule.target)
    narrow_enough[:, -1] = True  # after the last round every experiment stops
    stop_index = narrow_enough.argmax(axis=1)
    rows = np.arange(len(log_ratios))
    # Half-widths if the number of rounds had been fixed in advance, by number of rounds.
    fixed = np.median(stdtrit(counts - 1, 1 - rule.alpha / 2) * standard_errors, axis=0)
    ratios = widths[rows, stop_index] / np.maximum(fixed[stop_index], 1e-300)
    return Ended(counts[stop_index], means[rows, stop_index], widths[rows, stop_index], float(np.median(ratios)))


def simulate(model: Model, speedup: float, sigma: float, orders: Orders, rng: Generator) -> Floats:
    """Draw the seconds of each launch, (experiments, rounds, 2)."""
    return np.asarray(SECONDS / np.array([1.0, speedup]) * np.exp(model(rng, orders, sigma)))


def speedups(seconds: Floats) -> Floats:
    """Return the log-speedups of each round, (experiments, rounds), from the seconds of both launches."""
    return np.asarray(np.log(seconds[..., 0]) - np.log(seconds[..., 1]))


def lower_bound(share: float, experiments: int) -> float:
    """Return the 99 % lower bound of a share (Clopper and Pearson, 1934)."""
    hits = round(share * experiments)
    return float(beta.ppf(0.01, hits, experiments - hits + 1)) if hits else 0.0


def check_against_the_product(orders: Orders, rng: Generator) -> None:
    """Check that the vectorised rule stops after as many rounds as the product's, with the same interval."""
    drawn = orders.draw(rng, 60, DEFAULT.rounds_max)
    for sigma in (0.001, 0.01, 0.05):
        seconds = simulate(normal, 1.05, sigma, drawn, rng)
        ended = stop(speedups(seconds), DEFAULT)
        for index, launches in enumerate(seconds):
            for rounds in range(DEFAULT.rounds_min, DEFAULT.rounds_max + 1):
                log_ratios = log_speedups(launches[:rounds, 0].tolist(), launches[:rounds, 1].tolist())
                interval = student_interval(log_ratios, DEFAULT.nominal_alpha)
                assert interval is not None
                if DEFAULT.should_stop(rounds=rounds, relative_half_width=interval.relative_half_width):
                    break
            assert rounds == ended.rounds[index]
            assert math.isclose(interval.log_half_width, ended.half_widths[index], rel_tol=1e-6)
            assert math.isclose(interval.log_estimate, ended.means[index], rel_tol=1e-9, abs_tol=1e-12)


def promises(models: dict[str, Model], orders: Orders, experiments: int, rng: Generator) -> Iterator[bool]:
    """Print a line for each model of noise, and yield whether it keeps all promises."""
    print("| launches | " + " | ".join(f"{speedup:g}" for speedup in SPEEDUPS) + " | lower bound | width | at 1 |")
    print("|---|" + "---|" * (len(SPEEDUPS) + 3))
    for name, model in models.items():
        coverage = dict.fromkeys(SPEEDUPS, 1.0)
        width = false_verdicts = 0.0
        for speedup in SPEEDUPS:
            for sigma in SIGMAS:
                drawn = orders.draw(rng, experiments, DEFAULT.rounds_max)
                ended = stop(speedups(simulate(model, speedup, sigma, drawn, rng)), DEFAULT)
                covered = float(ended.covered(math.log(speedup)).mean())
                coverage[speedup] = min(coverage[speedup], covered)
                width = max(width, ended.width_ratio)
                if speedup == 1.0:
                    false_verdicts = max(false_verdicts, float((~ended.covered(0.0)).mean()))
        bound = lower_bound(min(coverage.values()), experiments)
        cells = [f"{100 * share:.1f}" for share in coverage.values()]
        print(
            f"| {name} | {' | '.join(cells)} | {100 * bound:.1f} | {width:.2f} | {100 * false_verdicts:.1f} |",
            flush=True,
        )
        yield bound >= ENOUGH and width <= WIDEST and false_verdicts <= 1 - DEFAULT.confidence


def reported_doubts(name: str, model: Model, orders: Orders, experiments: int, rng: Generator) -> None:
    """Print how often the interval misses with this model of noise, and how often the report then warns."""
    for sigma in (0.004, 0.01):
        drawn = orders.draw(rng, experiments, DEFAULT.rounds_max)
        seconds = simulate(model, 1.0, sigma, drawn, rng)
        log_ratios = speedups(seconds)
        ended = stop(log_ratios, DEFAULT)
        missed = ~ended.covered(0.0)
        log_margin = math.log1p(0.02)
        wrong = np.abs(ended.means) - ended.half_widths > log_margin
        has_gap, is_correlated = np.zeros(experiments, bool), np.zeros(experiments, bool)
        for index, rounds in enumerate(ended.rounds.tolist()):
            sides = seconds[index, :rounds].T.tolist()
            has_gap[index] = any(find_gap(side, DEFAULT.target) for side in sides)
            correlation = lag_one_correlation(log_ratios[index, :rounds].tolist())
            is_correlated[index] = rounds >= MINIMUM_ROUNDS and correlation > correlation_limit(rounds)
        warned = has_gap | is_correlated
        shares = (~missed, has_gap, is_correlated, missed & ~warned, wrong & ~warned)
        cells = [share.mean() for share in shares]
        print(f"| {name}, {100 * sigma:g} % | " + " | ".join(f"{100 * cell:.1f}" for cell in cells) + " |", flush=True)


def joint_coverage(comparisons: int, experiments: int, rng: Generator) -> float:
    """Return the lowest share of runs in which every interval covers the truth; variants share the baseline's noise."""
    shares = []
    for target in np.geomspace(0.3, 3, 8):
        rule = StoppingRule(rounds_min=5, rounds_max=20, target=target, confidence=0.95, comparisons=comparisons)
        shared = rng.standard_normal((experiments, rule.rounds_max))
        # Here each comparison stops alone. In a run all stop together, which is later, so this share is pessimistic.
        all_covered = np.ones(experiments, bool)
        for _ in range(comparisons):
            all_covered &= stop(shared - rng.standard_normal(shared.shape), rule).covered(0.0)
        shares.append(float(all_covered.mean()))
    return min(shares)


def other_settings(experiments: int, rng: Generator) -> None:
    """Print the coverage with other numbers of rounds and other confidences, with normal noise."""
    print("| rounds | confidence | nominal alpha | without the correction | coverage |\n|---|---|---|---|---|")
    settings = [(minimum, maximum, 0.95) for minimum, maximum in SETTINGS]
    settings += [(5, 20, confidence) for confidence in (0.8, 0.9, 0.99, 0.999)]
    for minimum, maximum, confidence in settings:
        coverages = []
        for target in np.geomspace(0.1, 4, 12):
            rule = StoppingRule(rounds_min=minimum, rounds_max=maximum, target=target, confidence=confidence)
            log_ratios = rng.standard_normal((experiments, maximum))
            naive = float(stop(log_ratios, Naive(**vars(rule))).covered(0.0).mean())
            coverages.append((float(stop(log_ratios, rule).covered(0.0).mean()), naive))
        corrected, naive = (100 * min(shares) for shares in zip(*coverages, strict=True))
        cells = f"{100 * confidence:g} % | {rule.nominal_alpha:.2g} | {naive:.2f} | {corrected:.2f}"
        print(f"| {minimum} to {maximum} | {cells} |", flush=True)


class Naive(StoppingRule):
    """Test after every round at the alpha of a single test, as most tools do."""

    @property
    def nominal_alpha(self) -> float:
        """Return the alpha without any correction."""
        return self.alpha


def main(experiments: int) -> int:
    """Print the report as Markdown; return 1 if a promise does not hold."""
    began = time.process_time()
    rng = np.random.default_rng(20260101)
    orders = Orders.of_schedule(2000, DEFAULT.rounds_max)
    check_against_the_product(orders, rng)
    print("# Coverage of the interval, simulated\n")
    print(f"`python benchmarks/coverage.py {experiments}`: {experiments} experiments a cell, each the worst of launch")
    print(f"noises of {', '.join(f'{100 * sigma:g}' for sigma in SIGMAS)} %. Defaults: 5 to 20 rounds, target 1 %,")
    print(
        "95 %, looking after every round, every look at `StoppingRule.nominal_alpha` (`accelbench/stats/stopping.py`)."
    )
    print(
        "Columns: coverage in percent by the true speedup; the 99 % lower bound of the least of them; the median width"
    )
    print("over that of a Student t whose rounds were fixed in advance; `faster` or `slower` in percent under a true")
    print("speedup of 1 at a margin of nothing, where they are most often said.\n")
    print(f"Promised: a lower bound of at least {100 * ENOUGH:g}, a width of at most {WIDEST}, at most 5 at 1.\n")
    held = list(promises(PROMISED, orders, experiments, rng))
    print("\n## Other launches\n")
    list(promises(BESIDE, orders, experiments, rng))
    print(f"\n{'Every promise is held.' if all(held) else 'NOT every promise is held.'}")
    print("\n## What it does not survive, and what the report says then\n")
    print(
        "A gap in a variant's launches is named in the verdict's own sentence; serial correlation is a failed check, so"
    )
    print(
        f"no verdict, and untested with fewer than {MINIMUM_ROUNDS} rounds, which the certificate says. In percent of"
    )
    print("experiments under a true speedup of 1: coverage; a gap was named; the check failed; the interval misses and")
    print("neither said anything; `faster` or `slower` by a margin of 2 %, wrongly, and neither said anything.\n")
    print("| launches, noise | coverage | gap named | correlation refused | missed, unsaid | wrong verdict, unsaid |")
    print("|---|---|---|---|---|---|")
    for name, model in {"normal": normal, **NOT_SURVIVED}.items():
        reported_doubts(name, model, orders, experiments // 2, rng)
    print(
        "\nFive launches that all came from one of two humps look like five good launches: no method tells them apart,"
    )
    print("and no honest width would cover both. Ask for more rounds (`rounds.min`) where launches are known to fall")
    print("apart.")
    print("\n## Other settings, normal noise, the worst of 12 targets\n")
    other_settings(experiments, rng)
    print("\n## All comparisons of a run together (Bonferroni, one baseline), 5 to 20 rounds\n")
    print("| comparisons | all intervals hold |\n|---|---|")
    for comparisons in (2, 3, 7, 15):
        print(f"| {comparisons} | {100 * joint_coverage(comparisons, experiments, rng):.1f} |", flush=True)
    print(f"\nTook {time.process_time() - began:.0f} s of one processor.")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))

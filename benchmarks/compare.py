"""Measure how often `accelbench compare` is wrong: coverage and false verdicts between runs that do not differ.

    python benchmarks/compare.py [EXPERIMENTS] > docs/results/compare.md

Each run measures a baseline and a variant in pairs and stops by the product's own rule. The variant's launches of two
such runs are then compared as `accelbench compare` does. The variant takes the same time in both, apart from a factor
that all launches of a run share. Between two single runs this factor is invisible; between series it is part of the
spread. Every run checks the vectorised interval against `accelbench.stats.interval`.
"""

import math
import sys

import numpy as np
from coverage import DEFAULT, SIGMAS, lower_bound, stop
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from accelbench.stats.interval import welch_interval

Floats = NDArray[np.float64]
MARGIN = math.log1p(0.02)
MOODS = (0.0, 0.005, 0.01, 0.02)
"""Standard deviations of the logarithm of a run's mood: the factor that all launches of a run share."""
SERIES = (2, 5, 10, 20)
"""Numbers of results in a series."""


def run(
    experiments: int, sigma: float, mood: float, rng: Generator, *, relative: bool = False
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the mean, variance and number of the variant's log-seconds in simulated runs: (experiments,) each.

    `sigma` is the noise of a launch, and `mood` that of the factor which all launches of a run share. If `relative`,
    the log-seconds are relative to the baseline's of the same round, so that the factor cancels.
    """
    noise = rng.normal(scale=sigma, size=(experiments, DEFAULT.rounds_max, 2))
    rounds = stop(noise[..., 0] - noise[..., 1], DEFAULT).rounds
    counted = np.arange(DEFAULT.rounds_max) < rounds[:, None]
    values = noise[..., 1] - noise[..., 0] if relative else noise[..., 1]
    means = np.where(counted, values, 0.0).sum(axis=1) / rounds
    squares = np.where(counted, (values - means[:, None]) ** 2, 0.0).sum(axis=1)
    return means + rng.normal(scale=0.0 if relative else mood, size=experiments), squares / (rounds - 1), rounds


def welch(means: Floats, variances: Floats, counts: NDArray[np.intp], alpha: float) -> tuple[Floats, Floats]:
    """Return the estimates and half-widths of Welch's intervals; the last axis of the arguments has the two runs."""
    variances_of_means = variances / counts
    variance = variances_of_means.sum(axis=-1)
    degrees = variance**2 / (variances_of_means**2 / (counts - 1)).sum(axis=-1)
    return means[..., 0] - means[..., 1], stdtrit(degrees, 1 - alpha / 2) * np.sqrt(variance)


def check_against_the_product(rng: Generator) -> None:
    """Check that the vectorised interval equals that of `accelbench.stats.interval`."""
    for count in (5, 8, 20):
        sides = rng.normal(scale=0.01, size=(2, count))
        expected = welch_interval(sides[0].tolist(), sides[1].tolist(), 0.02)
        estimate, half_width = welch(sides.mean(axis=1), sides.var(axis=1, ddof=1), np.array([count, count]), 0.02)
        assert expected is not None
        assert math.isclose(expected.log_estimate, float(estimate), rel_tol=1e-9, abs_tol=1e-12)
        assert math.isclose(expected.log_half_width, float(half_width), rel_tol=1e-9)


def line(name: str, estimates: list[Floats], half_widths: list[Floats]) -> float:
    """Print the worst coverage and the worst share of false verdicts; return the coverage's 99 % lower bound."""
    pairs = list(zip(map(np.abs, estimates), half_widths, strict=True))
    covered = min(float((error <= half_width).mean()) for error, half_width in pairs)
    wrong = max(float((error - half_width > MARGIN).mean()) for error, half_width in pairs)
    bound = lower_bound(covered, len(estimates[0]))
    width = float(np.median(np.concatenate(half_widths)))
    print(f"| {name} | {100 * covered:.1f} | {100 * bound:.1f} | {100 * wrong:.1f} | {100 * width:.2g} % |", flush=True)
    return bound


def single_runs(experiments: int, mood: float, rng: Generator, *, relative: bool = False) -> float:
    """Compare two runs by their launches, at the alpha that corrects for testing after each round."""
    estimates, half_widths = [], []
    for sigma in SIGMAS:
        sides = [run(experiments, sigma, mood, rng, relative=relative) for _ in range(2)]
        means, variances, counts = (np.stack(each, axis=-1) for each in zip(*sides, strict=True))
        estimate, half_width = welch(means, variances, counts, DEFAULT.nominal_alpha)
        estimates.append(estimate)
        half_widths.append(half_width)
    name = "two runs, relative to the baseline" if relative else "two runs, seconds"
    return line(f"{name}, mood {100 * mood:g} %", estimates, half_widths)


def series(experiments: int, mood: float, results: int, rng: Generator) -> float:
    """Compare two series of equally many results by the means of the results."""
    estimates, half_widths = [], []
    for sigma in SIGMAS[::3]:
        sides = [np.stack([run(experiments, sigma, mood, rng)[0] for _ in range(results)]) for _ in range(2)]
        means = np.stack([side.mean(axis=0) for side in sides], axis=-1)
        variances = np.stack([side.var(axis=0, ddof=1) for side in sides], axis=-1)
        estimate, half_width = welch(means, variances, np.full(means.shape, results), DEFAULT.alpha)
        estimates.append(estimate)
        half_widths.append(half_width)
    return line(f"two series of {results}, mood {100 * mood:g} %", estimates, half_widths)


def main(experiments: int) -> None:
    """Print the report as Markdown."""
    rng = np.random.default_rng(20260101)
    check_against_the_product(rng)
    noises = ", ".join(f"{100 * sigma:g}" for sigma in SIGMAS)
    print("# Comparing runs that do not differ, simulated\n")
    print(f"`python benchmarks/compare.py {experiments}`: {experiments} experiments a cell, normal launches; coverage")
    print(f"and false verdicts are the worst over launch noise of {noises} % (of series: each third).")
    print("A run's mood is a factor, drawn for each run, that all its launches share. Confidence 95 %, margin 2 %.\n")
    print("| compared | coverage, % | 99 % lower bound | `faster` or `slower`, % | half-width, median |")
    print("|---|---|---|---|---|")
    for mood in MOODS:
        single_runs(experiments, mood, rng)
    single_runs(experiments, MOODS[-1], rng, relative=True)
    for results in SERIES:
        for mood in (0.0, 0.02):
            series(experiments, mood, results, rng)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)

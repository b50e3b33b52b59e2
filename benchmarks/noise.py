"""Simulate machines with a known truth: the seconds of every launch, in the order of the product's schedule.

A model draws the noise of the launches of both sides. No model changes the truth, which is the ratio of geometric
means over launches. Arrays have the axes experiments, rounds, and (baseline, variant).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from accelbench.plan.round_order import round_order

Floats = NDArray[np.float64]
Logs = Floats
"""Noise of launches, (experiments, rounds, 2): their log-seconds minus the true ones."""
Model = Callable[[Generator, "Orders", float], Logs]
"""Function that draws the noise; its last argument is the standard deviation of ordinary log-seconds."""

RARELY = 0.05
"""Share of launches that are slow."""
RARE_FACTOR = 1.5
"""Factor of a rare slow launch."""
HUMPS_APART = 0.05
"""Distance of the two humps of bimodal launches, in log-seconds."""
THROTTLED_FACTOR = 1.3
"""Factor by which a throttling machine is slower."""


@dataclass(frozen=True)
class Orders:
    """Hold which side of each round is launched first, by `accelbench.plan.round_order` for many seeds."""

    variant_first: NDArray[np.intp]
    """(experiments, rounds), 1 if the variant is launched before the baseline."""

    @classmethod
    def of_schedule(cls, seeds: int, rounds: int) -> "Orders":
        """Return the orders that the product's schedule has for `seeds` runs of `rounds` rounds."""
        variant_first = np.zeros((seeds, rounds), np.intp)
        for seed in range(seeds):
            for index in range(rounds):
                order = round_order(("baseline", "variant"), seed=seed, case="all", round_number=index + 1)
                variant_first[seed, index] = order[0] == "variant"
        return cls(variant_first)

    def draw(self, rng: Generator, experiments: int, rounds: int) -> "Orders":
        """Draw the orders of this many experiments from these orders."""
        return Orders(self.variant_first[rng.integers(len(self.variant_first), size=experiments), :rounds])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return (experiments, rounds, sides)."""
        experiments, rounds = self.variant_first.shape
        return experiments, rounds, 2

    def sides(self, course: Floats) -> Logs:
        """Map noise in the order of launches, (experiments, launches), to rounds and sides."""
        pairs = course.reshape(self.shape)
        return np.take_along_axis(pairs, np.stack([self.variant_first, 1 - self.variant_first], axis=-1), axis=-1)


def normal(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw normal noise for both sides."""
    return sigma * rng.standard_normal(orders.shape)


def heavy(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw Student's t with 2.5 degrees of freedom, whose variance is barely finite."""
    return sigma * rng.standard_t(2.5, orders.shape) / math.sqrt(5)


def humps(share: float, apart: float | None = None) -> Model:
    """Return a model of launches in two groups, a share of them slower by `apart` log-seconds (by default 5 sigma)."""

    def model(rng: Generator, orders: Orders, sigma: float) -> Logs:
        step = 5 * sigma if apart is None else apart
        return normal(rng, orders, sigma) + step * ((rng.random(orders.shape) < share) - share)

    return model


def wandering(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw normal noise with a drift of the machine: a random walk with steps of one deviation at each launch."""
    experiments, rounds, _ = orders.shape
    walk = np.cumsum(sigma * rng.standard_normal((experiments, 2 * rounds)), axis=1)
    return normal(rng, orders, sigma) + orders.sides(walk)


def drifting(deviations: float) -> Model:
    """Return a model with a drift of the machine: every launch is slower than the one before by `deviations` sigma."""

    def model(rng: Generator, orders: Orders, sigma: float) -> Logs:
        experiments, rounds, _ = orders.shape
        line = np.broadcast_to(deviations * sigma * np.arange(2 * rounds), (experiments, 2 * rounds))
        return normal(rng, orders, sigma) + orders.sides(line)

    return model


def waving(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw normal noise with a drift of the machine: a slow wave of five deviations, such as the temperature's."""
    experiments, rounds, _ = orders.shape
    phase = 2 * math.pi * rng.random((experiments, 1))
    period = rng.uniform(8, 40, (experiments, 1))
    wave = 5 * sigma * np.sin(2 * math.pi * np.arange(2 * rounds) / period + phase)
    return normal(rng, orders, sigma) + orders.sides(wave)


def throttling(factor: float) -> Model:
    """Return a model in which the machine is slower by `factor` from a random launch on, possibly within a round."""

    def model(rng: Generator, orders: Orders, sigma: float) -> Logs:
        experiments, rounds, _ = orders.shape
        begins = rng.integers(0, 2 * rounds, (experiments, 1))
        course = math.log(factor) * (np.arange(2 * rounds) >= begins)
        return normal(rng, orders, sigma) + orders.sides(course)

    return model


def unequal(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw the variant's launches with five times the baseline's spread."""
    return normal(rng, orders, sigma) * np.array([1.0, 5.0])


def rarely_slow(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw normal noise, with one launch in twenty of either side 1.5 times as long."""
    return normal(rng, orders, sigma) + math.log(RARE_FACTOR) * (rng.random(orders.shape) < RARELY)


def uniform(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw uniform noise, which has no tails."""
    return sigma * math.sqrt(3) * rng.uniform(-1, 1, orders.shape)


def exponential(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw launches that are sometimes slower and never faster."""
    return sigma * (rng.exponential(size=orders.shape) - 1)


def lognormal(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw launches that are sometimes slower, with a longer tail."""
    return sigma * (rng.lognormal(size=orders.shape) - math.exp(0.5))


def rounded(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Round times by a clock so coarse that many launches are equal."""
    grain = 2 * sigma
    return np.asarray(grain * np.round(normal(rng, orders, sigma) / grain))


def correlated(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw noise with a lag-1 correlation of 0.7 for the variant, and hardly any for the baseline."""
    logarithms = normal(rng, orders, sigma)
    logarithms[..., 0] *= 0.1
    for number in range(1, logarithms.shape[1]):
        logarithms[:, number, 1] = 0.7 * logarithms[:, number - 1, 1] + math.sqrt(1 - 0.49) * logarithms[:, number, 1]
    return logarithms


def one_side(model: Model) -> Model:
    """Return a model with the noise of `model` for the variant, and normal noise for the baseline."""

    def one_sided(rng: Generator, orders: Orders, sigma: float) -> Logs:
        return np.stack([normal(rng, orders, sigma)[..., 0], model(rng, orders, sigma)[..., 1]], axis=-1)

    return one_sided


def centred_rarely_slow(rng: Generator, orders: Orders, sigma: float) -> Logs:
    """Draw `rarely_slow` minus its mean, so that it does not change the truth if only one side has it."""
    return rarely_slow(rng, orders, sigma) - RARELY * math.log(RARE_FACTOR)


PROMISED: dict[str, Model] = {
    "normal": normal,
    "Student's t, 2.5 degrees of freedom": heavy,
    "bimodal launches, humps 5 % apart": humps(0.5, HUMPS_APART),
    "bimodal launches, humps 5 deviations apart": humps(0.3),
    "shared drift, random walk": wandering,
    "shared drift, 1 deviation a launch": drifting(1.0),
    "shared drift, 5 deviations a launch": drifting(5.0),
    "a throttling step, 30 % slower": throttling(THROTTLED_FACTOR),
    "unequal variances, 1 to 25": unequal,
    "rare slow launches on both sides": rarely_slow,
}
"""Models for which the promised coverage holds."""
BESIDE: dict[str, Model] = {
    "shared drift, a wave": waving,
    "a throttling step, 3 % slower": throttling(1.03),
    "uniform": uniform,
    "exponential": exponential,
    "log-normal": lognormal,
    "rounded by a coarse clock": rounded,
    "one launch in ten in a second hump, 30 % away": humps(0.1, 0.3),
    "one launch in fifty in a second hump, 5 % away": humps(0.02, HUMPS_APART),
    "one side exponential": one_side(exponential),
}
"""Other models, without a promise."""
NOT_SURVIVED: dict[str, Model] = {
    "rounds correlated, lag-1 0.7": correlated,
    "rare slow launches of one side": one_side(centred_rarely_slow),
    "bimodal launches of one side, half and half": one_side(humps(0.5, HUMPS_APART)),
    "bimodal launches of one side, 3 in 10": one_side(humps(0.3, HUMPS_APART)),
    "one side log-normal": one_side(lognormal),
}
"""Models for which the interval covers too rarely."""

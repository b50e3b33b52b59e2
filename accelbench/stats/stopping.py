"""Decide when measuring may stop, and correct the interval for testing after every round.

Stopping as soon as the interval is narrow enough stops too often in rounds where the spread happens to be small, and
then the interval covers less than it claims: 90 % instead of 95 % with at least 3 rounds. The correction is a smaller
nominal alpha:

    nominal = alpha ** (1 + 1.2 / rounds.min)

which is 0.015 for 0.05 at 3 rounds, 0.024 at 5, 0.035 at 10. The form is a fit to the nominal alphas that keep the
error at alpha under normal noise and the worst target, for rounds.min 3 to 10, rounds.max 10 to 50 and alpha 0.2 to
0.0001: the required exponent never exceeds 1 + 1 / min, and comes close to it for large rounds.max. Light tails
(uniform noise) reach it, hence 1.2: coverage then stays above 95 % for every kind of launches that the interval is
meant for, and the width is at most 1.3 times that of an interval with a fixed number of rounds
(docs/results/coverage.md, measured by benchmarks/coverage.py, with the cases that it does not cover). The rule also
holds for other confidences and for Bonferroni's small alphas. If rounds.min equals rounds.max, there is nothing to
correct.
"""

from dataclasses import dataclass

EXPONENT_CORRECTION = 1.2
"""Numerator in the exponent of the nominal alpha, `1 + 1.2 / rounds.min`."""


@dataclass(frozen=True)
class StoppingRule:
    """Hold the numbers of rounds, the target width and the confidence."""

    rounds_min: int
    rounds_max: int
    target: float
    """Relative half-width of the interval at which measuring may stop."""
    confidence: float
    """Confidence of all `comparisons` together (Bonferroni)."""
    comparisons: int = 1

    @property
    def alpha(self) -> float:
        """Return the error probability of each comparison: all share the total equally (Bonferroni)."""
        return (1 - self.confidence) / self.comparisons

    @property
    def nominal_alpha(self) -> float:
        """Return the error probability of each interval: below `alpha`, because an interval is tested after each round.

        With a fixed number of rounds, it is `alpha`. The module's docstring explains the formula.
        """
        if self.rounds_min >= self.rounds_max:
            return self.alpha
        return float(self.alpha ** (1 + EXPONENT_CORRECTION / self.rounds_min))

    def should_stop(self, *, rounds: int, relative_half_width: float) -> bool:
        """Return True if there are enough rounds and the interval is narrow enough."""
        return rounds >= self.rounds_min and relative_half_width <= self.target

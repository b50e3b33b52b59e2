"""When measuring may stop, and what looking after every round costs.

Stopping as soon as the interval is narrow enough stops too often in the rounds where the spread happened to look small,
and then the interval misses more often than it says: 90 % instead of 95 % with at least 3 rounds. It is paid for in
advance, by a smaller nominal alpha for every look:

    nominal = alpha ** (1 + 1.2 / rounds.min)

which is 0.015 for 0.05 at 3 rounds, 0.024 at 5, 0.035 at 10. The form was found by solving for the nominal alpha that
keeps the error at alpha under normal noise and the worst target, over rounds.min 3 to 10, rounds.max 10 to 50 and
alpha 0.2 to 0.0001: the exponent that is needed never exceeds 1 + 1 / min, and comes near it where rounds.max is large.
Under light tails (uniform noise) it is reached, so a fifth more is paid: with it, coverage stays above 95 % for every
kind of launches that the interval is meant for, and the width is at most 1.3 times that of an interval whose rounds
were fixed in advance (docs/results/coverage.md, measured by benchmarks/coverage.py, with what it does not survive). The
rule holds for other confidences and for Bonferroni's small alphas too. Where rounds.min equals rounds.max nobody looks,
and nothing is paid.
"""

from dataclasses import dataclass

PAID = 1.2
"""What looking early costs, as the exponent has it."""


@dataclass(frozen=True)
class StoppingRule:
    """How many rounds, how narrow, how sure."""

    rounds_min: int
    rounds_max: int
    target: float
    """Relative half-width of the interval at which measuring may stop."""
    confidence: float
    """Held by all `comparisons` together (Bonferroni)."""
    comparisons: int = 1

    @property
    def alpha(self) -> float:
        """The error that each comparison may make."""
        return (1 - self.confidence) / self.comparisons

    @property
    def nominal_alpha(self) -> float:
        """The alpha that every interval of the case is computed with, so that looking early stays within `alpha`."""
        if self.rounds_min >= self.rounds_max:
            return self.alpha
        return float(self.alpha ** (1 + PAID / self.rounds_min))

    def met(self, *, rounds: int, relative_half_width: float) -> bool:
        """Whether one interval is narrow enough to stop."""
        return rounds >= self.rounds_min and relative_half_width <= self.target

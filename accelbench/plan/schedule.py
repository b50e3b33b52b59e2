"""Rounds: the order in which a case's variants are launched, random but the same for the same seed.

Every second round is the one before it backwards, so that whatever drifts steadily while the two are measured favours
no variant: what a place in the round costs in one, it gives back in the other. With drift of three standard deviations
a launch, intervals over rounds in independent orders cover 89.5 to 94.4 %, over such pairs nearly always
(docs/results/coverage.md).
"""

import hashlib
import random
from collections.abc import Sequence


def round_order(variants: Sequence[str], *, seed: int, case: str, number: int) -> tuple[str, ...]:
    """The variants in the order of round `number`, from 1: uniform over permutations, odd rounds independent."""
    pair, second = divmod(number - 1, 2)
    key = hashlib.sha256(f"{seed}/{case}/{pair}".encode()).digest()
    order = list(variants)
    random.Random(key).shuffle(order)  # noqa: S311 - an experiment's order, no secret
    return tuple(reversed(order)) if second else tuple(order)

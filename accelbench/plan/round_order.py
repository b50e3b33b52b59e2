"""Order a round's variants: random, and the same for the same seed.

Every second round reverses the one before, so that steady drift over the two favours no variant: it gains in one round
what it loses in the other. With a drift of three standard deviations per launch, intervals over independent orders
cover 89.5 to 94.4 %, over such pairs nearly always (docs/results/coverage.md).
"""

import hashlib
import random
from collections.abc import Sequence


def round_order(variants: Sequence[str], *, seed: int, case: str, number: int) -> tuple[str, ...]:
    """Return the variants in the order of round `number`, from 1.

    The order is uniform over permutations; odd rounds are independent of each other.
    """
    pair, second = divmod(number - 1, 2)
    key = hashlib.sha256(f"{seed}/{case}/{pair}".encode()).digest()
    order = list(variants)
    random.Random(key).shuffle(order)  # noqa: S311 - an experiment's order, no secret
    return tuple(reversed(order)) if second else tuple(order)

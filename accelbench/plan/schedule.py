"""Rounds: the order in which a case's variants are launched, random but the same for the same seed."""

import hashlib
import random
from collections.abc import Sequence


def round_order(variants: Sequence[str], *, seed: int, case: str, number: int) -> tuple[str, ...]:
    """The variants in the order of round `number`: uniform over permutations, independent between rounds and cases."""
    key = hashlib.sha256(f"{seed}/{case}/{number}".encode()).digest()
    order = list(variants)
    random.Random(key).shuffle(order)  # noqa: S311 - an experiment's order, no secret
    return tuple(order)

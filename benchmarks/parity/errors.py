"""Put errors into right outputs, in several sizes and in several shares of the elements."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accelbench.api.case import Precision
from accelbench.workload import Array
from accelbench_runner.judge.arithmetic import is_float, round_array

SIZES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Relative sizes of errors."""
REACHES = ("one", "1 %", "all")
"""How many elements are wrong."""
OFF_BY_ONE = 1.0
"""Size of an error in an integer; a wrong boolean is inverted."""


@dataclass(frozen=True)
class Injected:
    """Hold an output with errors of a relative size in some of its elements."""

    size: float
    reach: str
    output: Array


def inject(output: Array, precision: Precision, rng: np.random.Generator) -> Iterator[Injected]:
    """Yield the output with each kind of error, except for those that rounding to the policy's type removes.

    Args:
        output: A right output.
        precision: Type to which the wrong numbers are rounded.
        rng: It draws the elements, and the direction of each error.
    """
    sizes = SIZES if is_float(output) else (OFF_BY_ONE,)
    candidates = np.flatnonzero(output) if is_float(output) else np.arange(output.size)
    counts = (1, max(1, output.size // 100), output.size)
    for size in sizes:
        for reach, count in zip(REACHES, counts, strict=True):
            wrong = output.copy().ravel()
            where = rng.choice(candidates, min(count, candidates.size), replace=False)
            if is_float(output):
                wrong[where] = round_array(wrong[where] * (1 + size * rng.choice([-1, 1], where.size)), precision)
            else:
                wrong[where] = ~wrong[where] if wrong.dtype == bool else wrong[where] + 1
            if not np.array_equal(wrong, output.ravel()):
                yield Injected(size, reach, wrong.reshape(output.shape))

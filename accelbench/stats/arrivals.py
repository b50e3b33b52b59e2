"""Schedule the arrivals of requests in an open loop, whose times do not depend on how fast requests are served.

All variants of a round get the same schedule, so that random arrivals favour none of them; each round has another
schedule. The random numbers are those of the standard library, which are the same in every version of Python.
"""

import hashlib
import itertools
import math
import random
from typing import Literal

ArrivalProcess = Literal["poisson", "constant"]
"""Intervals between arrivals: exponentially distributed, or all equal."""


def arrival_times(
    *, rate_per_second: float, process: ArrivalProcess, requests: int, seed: int, case: str, round_number: int
) -> tuple[float, ...]:
    """Return the seconds after the start at which requests arrive, in order.

    Args:
        rate_per_second: The mean number of arrivals in a second.
        process: `poisson` for independent requests, `constant` for one in each interval.
        requests: The number of requests.
        seed: The case's seed.
        case: The case's name.
        round_number: The round's number. Every round of a Poisson process has intervals of its own.

    Returns:
        One time for each request; the first one is an interval after the start.
    """
    if process == "constant":
        return tuple(number / rate_per_second for number in range(1, requests + 1))
    digest = hashlib.sha256(f"{seed}/{case}/{round_number}/arrivals".encode()).digest()
    generator = random.Random(digest)  # noqa: S311 - an experiment's schedule, no secret
    # By inversion: 1 - random() is above 0, so the logarithm is finite.
    intervals = (-math.log(1.0 - generator.random()) / rate_per_second for _ in range(requests))
    return tuple(itertools.accumulate(intervals))

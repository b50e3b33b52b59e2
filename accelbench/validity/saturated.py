"""Check that each variant can serve requests faster than they arrive; otherwise its queue grows for as long as it runs.

The response then depends on how many requests were made, not only on the program, so it is no property of the variant.
"""

import math
import statistics
from collections.abc import Iterator, Sequence

from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, passed, percent, untested
from accelbench.validity.evidence import Evidence

MAXIMUM_UTILISATION = 0.9
"""Maximum share of the time in which requests are served. Waiting grows as 1 / (1 - utilisation)."""


def mean_service_seconds(launches: Sequence[LaunchRecord]) -> float:
    """Return the mean seconds of a request's service, in the median launch."""
    return statistics.median(statistics.fmean(block.seconds for block in launch.blocks) for launch in launches)


def utilisation(launches: Sequence[LaunchRecord], rate_per_second: float) -> float:
    """Return the share of time in which a variant serves requests: their rate times the mean seconds of a service.

    At 1 or above, requests arrive at least as fast as they can be served.
    """
    return rate_per_second * mean_service_seconds(launches)


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail each variant that requests keep busy for too much of the time; untested if no request was timed."""
    arrivals = evidence.case.measurement.arrivals
    for variant in evidence.variants:
        launches = [launch for launch in evidence.launches_of(variant) if launch.blocks]
        if arrivals is None or not launches:
            yield variant, untested("no request was timed")
        else:
            yield variant, _judge(launches, arrivals.rate_per_second)


def _judge(launches: Sequence[LaunchRecord], rate_per_second: int) -> Finding:
    """Fail if the variant is busy for too much of the time, and name the highest rate that it can serve."""
    busy_share = utilisation(launches, rate_per_second)
    reading = f"busy for {percent(busy_share)} of the time at {rate_per_second:,} requests a second"
    if busy_share <= MAXIMUM_UTILISATION:
        return passed(reading)
    highest_rate = math.floor(MAXIMUM_UTILISATION / mean_service_seconds(launches))
    if highest_rate < 1:
        return failed(f"{reading}; even one a second is too many")
    return failed(f"{reading}; at most {highest_rate:,} a second would do")


CHECK = CaseCheck(
    name="saturated",
    threshold=f"busy for at most {MAXIMUM_UTILISATION:.0%} of the time (rate of arrivals times mean service)",
    reason=(
        "a queue is stable only below 100 %. Near that, waiting grows without bound and depends on the number of "
        "requests; at 90 % of Poisson arrivals and equal services, a request waits for 4.5 services on average"
    ),
    evaluate=_evaluate,
    measured_only=True,
    arrivals_only=True,
    remedy=(
        "lower measurement.arrivals.ratePerSecond to the lowest rate that the readings of this check name: one rate "
        "holds for all variants"
    ),
)

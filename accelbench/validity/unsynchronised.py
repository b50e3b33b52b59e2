"""Check that a block's work is done when its clock stops: outputs are ready, device and processor are idle.

Each launch makes separate runs of calls for this, so that waiting for late work disturbs no block. On CUDA the host's
time of every block is compared with the device's events as well.
"""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import Synchronisation, WatchedRun
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, passed, untested
from accelbench.validity.evidence import Evidence

MAXIMUM_LATE_SHARE = 0.05
"""Maximum lateness as a share of the run of calls; `MAXIMUM_LATE_SECONDS` is allowed in any case."""
MAXIMUM_LATE_SECONDS = 0.005
"""Maximum lateness of a short run: thread pools spin for less than this before they sleep."""
MINIMUM_RATIO = 0.98
"""Minimum of host time over device time. The host's time includes both events, so it should never be the shorter."""


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail each variant whose work continued after the clock stopped."""
    for variant in evidence.variants:
        yield variant, _judge((*evidence.launches_of(variant), *evidence.quarantined_of(variant)))


def _judge(launches: tuple[LaunchRecord, ...]) -> Finding:
    """Judge one variant by all its launches: fail if work continued after the clock stopped."""
    facts = [launch.facts.synchronisation for launch in launches]
    readings = [fact for fact in facts if not isinstance(fact, Unreadable)]
    if not readings:
        unreadable = [fact for fact in facts if isinstance(fact, Unreadable)]
        # False sorts before True: `min` prefers a fact that is missing without a failed probe. Such a fact fails the
        # variant; after a failed probe, the check is untested.
        return failed(min(unreadable, key=lambda fact: fact.probe_failed))
    if any(reading.ready is False for reading in readings):
        return failed("an output was not ready after synchronisation")
    ratios = [launch.facts.host_over_device for launch in launches]
    lowest_ratio = min((ratio.least for ratio in ratios if not isinstance(ratio, Unreadable)), default=None)
    if lowest_ratio is not None and lowest_ratio < MINIMUM_RATIO:
        return failed(f"the host timed a block at {lowest_ratio:.2f} of the time between the device's events")
    run = _decisive_run(readings)
    lateness = f"busy for {1000 * max(0.0, run.late_seconds):.3g} ms after {1000 * run.seconds:.3g} ms of calls"
    if _relative_lateness(run) <= 1:
        return passed(lateness)
    # Another program may have delayed a single launch.
    return failed(lateness) if len(readings) > 1 else untested(f"{lateness}, but in a single launch")


def _decisive_run(readings: list[Synchronisation]) -> WatchedRun:
    """Return the run of calls after which work continued for longest, without runs that chance delayed.

    Each launch has a short run, as long as a block, and in the first rounds a long one. Only the least late short run
    and the least late long one count: chance delays some of them, a program that does not wait delays all.
    """
    short_runs = [reading.runs[0] for reading in readings]
    long_runs = [reading.runs[1] for reading in readings if len(reading.runs) > 1]
    least_late_short = min(short_runs, key=_relative_lateness)
    if not long_runs:
        return least_late_short
    least_late_long = min(long_runs, key=_relative_lateness)
    return max(least_late_short, least_late_long, key=_relative_lateness)


def _relative_lateness(run: WatchedRun) -> float:
    """Return how long work continued after the run, divided by the allowed time."""
    return run.late_seconds / max(MAXIMUM_LATE_SECONDS, MAXIMUM_LATE_SHARE * run.seconds)


CHECK = CaseCheck(
    name="unsynchronised",
    threshold=(
        f"outputs ready; busy for at most {MAXIMUM_LATE_SHARE:.0%} of a run of calls or "
        f"{1000 * MAXIMUM_LATE_SECONDS:g} ms afterwards; host time at least {MINIMUM_RATIO:g} of device time"
    ),
    reason=(
        "work after the clock stops is not timed. Thread pools spin for some milliseconds before they sleep, and "
        "another program may delay one launch, so a late run is repeated and its least lateness counts"
    ),
    evaluate=_evaluate,
    measured_only=True,
    remedy=(
        "return everything that the step computes, and start no thread, stream or callback that works on after it has "
        "returned"
    ),
)

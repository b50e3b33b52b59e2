"""Check that a block's work is done when its clock stops: outputs are ready, device and processor are idle.

Each launch makes separate runs of calls for this, so that waiting for late work disturbs no block. On CUDA the host's
time of every block is compared with the device's events as well.
"""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import WatchedRun
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested
from accelbench.validity.evidence import Evidence

ALLOWED_SHARE = 0.05
ALLOWED_SECONDS = 0.005
"""Longer than thread pools spin before they sleep after a call that left nothing undone, which is subtracted."""
LEAST_RATIO = 0.98
"""Host time over device time. Events are recorded inside what the host times, so that time is never shorter."""


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    for variant in evidence.variants:
        yield variant, _judge((*evidence.launches_of(variant), *evidence.quarantined_of(variant)))


def _judge(launches: tuple[LaunchRecord, ...]) -> Finding:
    """Fail if work is late in every launch; another program can delay it in one launch."""
    facts = [launch.facts.synchronisation for launch in launches]
    looks = [fact for fact in facts if not isinstance(fact, Unreadable)]
    if not looks:
        unreadable = (fact for fact in facts if isinstance(fact, Unreadable))
        return failed(min(unreadable, key=lambda fact: fact.probe_failed))
    if any(look.ready is False for look in looks):
        return failed("an output was not ready after synchronisation")
    ratios = [launch.facts.host_over_device for launch in launches]
    least = min((ratio.least for ratio in ratios if not isinstance(ratio, Unreadable)), default=None)
    if least is not None and least < LEAST_RATIO:
        return failed(f"the host timed a block at {least:.2f} of the time between the device's events")
    short, long = [look.runs[0] for look in looks], [look.runs[1] for look in looks if len(look.runs) > 1]
    run = max((min(runs, key=_relative_lateness) for runs in (short, long) if runs), key=_relative_lateness)
    reading = f"busy for {1000 * max(0.0, run.late_seconds):.3g} ms after {1000 * run.seconds:.3g} ms of calls"
    if _relative_lateness(run) <= 1:
        return passed(reading)
    return failed(reading) if len(looks) > 1 else untested(f"{reading}, but in a single launch")


def _relative_lateness(run: WatchedRun) -> float:
    """Return the lateness over the allowed lateness."""
    return run.late_seconds / max(ALLOWED_SECONDS, ALLOWED_SHARE * run.seconds)


CHECK = CaseCheck(
    name="unsynchronised",
    threshold=(
        f"outputs ready; busy for at most {ALLOWED_SHARE:.0%} of a run of calls or {1000 * ALLOWED_SECONDS:g} ms "
        f"afterwards; host time at least {LEAST_RATIO:g} of device time"
    ),
    reason=(
        "work after the clock stops is not timed. Thread pools spin for some milliseconds before they sleep, and "
        "another program may delay one launch, so a late run is repeated and its least lateness counts"
    ),
    evaluate=_evaluate,
    measured_only=True,
)

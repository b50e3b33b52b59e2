"""When a block's clock stops, its work is done: the outputs are there, and neither device nor processor goes on.

Each launch makes runs of calls of their own for this, apart from the blocks, so that waiting for what may come disturbs
none; on CUDA every block's time by the host's clock is held against the device's events as well.
"""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import WatchedRun
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested
from accelbench.validity.evidence import Evidence

ALLOWED_SHARE = 0.05
ALLOWED_SECONDS = 0.005
"""More than thread pools turn round before they sleep after a call that left nothing undone; that is taken off."""
LEAST_RATIO = 0.98
"""Of the host's clock to the device's: events are recorded inside what the host times, so it is never shorter."""


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    for variant in evidence.variants:
        yield variant, _of((*evidence.of(variant), *evidence.quarantined_of(variant)))


def _of(launches: tuple[LaunchRecord, ...]) -> Finding:
    """What escapes does so in every launch; what a neighbour delays, in one."""
    told = [launch.facts.synchronisation for launch in launches]
    looks = [each for each in told if not isinstance(each, Unreadable)]
    unreadable = [each for each in told if isinstance(each, Unreadable)]
    if not looks:
        return failed(min(unreadable, key=lambda each: each.probe_failed))
    if any(look.ready is False for look in looks):
        return failed("an output was not ready after synchronisation")
    ratios = [launch.facts.host_over_device for launch in launches]
    least = min((each.least for each in ratios if not isinstance(each, Unreadable)), default=None)
    if least is not None and least < LEAST_RATIO:
        return failed(f"the host timed a block at {least:.2f} of what the device's own events say")
    short, long = [look.runs[0] for look in looks], [look.runs[1] for look in looks if len(look.runs) > 1]
    run = max((min(runs, key=_excess) for runs in (short, long) if runs), key=_excess)
    reading = f"at work for {1000 * max(0.0, run.late_seconds):.3g} ms after {1000 * run.seconds:.3g} ms of calls"
    if _excess(run) <= 1:
        return passed(reading)
    return failed(reading) if len(looks) > 1 else untested(f"{reading}, in one launch alone")


def _excess(run: WatchedRun) -> float:
    """How late, over what is allowed."""
    return run.late_seconds / max(ALLOWED_SECONDS, ALLOWED_SHARE * run.seconds)


CHECK = CaseCheck(
    name="unsynchronised",
    threshold=(
        f"outputs ready; at work for at most {ALLOWED_SHARE:.0%} of a run of calls, or {1000 * ALLOWED_SECONDS:g} ms; "
        f"host at least {LEAST_RATIO:g} of the device's time"
    ),
    reason=(
        "work that goes on after the clock stops is not timed, in any launch. How long thread pools spin before they "
        "sleep varies by milliseconds, and another program may delay one launch, so a run that seems late is repeated "
        "and its least lateness counts"
    ),
    evaluate=_evaluate,
    measured_only=True,
)

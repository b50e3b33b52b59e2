"""Every call does its work: it remembers no results, skips no calls, and does not look whether it is being timed.

What is counted is what the framework was asked to run, which takes no clock: a compiled call is one operation, and a
call that returns what it has kept is none.
"""

from collections.abc import Iterator

from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested
from accelbench.validity.evidence import Dependence, Evidence, Launch, Replay, Unreadable, fact

LEAST_SHARE = 0.8
"""Of the first call's operations, in each call after it: one call in three that does nothing is a share of 0.67."""
SAME = 1e-5
"""Results as far apart as this share of their size are the same, however far apart repetitions are..."""
REPEATABLE = 10.0
"""...and so are those up to so many times as far apart as repetitions are, where sums are added in any order."""


def _look(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    for variant in evidence.variants:
        findings = [_of(launch) for launch in evidence.tried_unseen_inputs(variant)]
        worst = next((each for outcome in ("failed", "untested") for each in findings if each.outcome == outcome), None)
        yield variant, worst or (findings[-1] if findings else untested("no launch was given other inputs"))


def _of(launch: Launch) -> Finding:
    found = fact(launch, "dependence", Dependence)
    if isinstance(found, Unreadable):
        return failed(found)
    if found.unable or found.raised:
        return untested(found.unable or f"it raises on inputs that it was not built from: {found.raised}")
    if found.replay and (different := _different(found.replay)):
        return failed(different)
    if found.once is None or found.repeated is None:
        return untested("its framework does not say what it runs")
    if not found.once:
        return failed("a call runs no operation of its framework")
    wanted = found.repeated_calls * found.once
    reading = f"{found.repeated} of {wanted} operations in {found.repeated_calls} more calls on the same inputs"
    return failed(f"{reading}: it remembers, or skips") if found.repeated < LEAST_SHARE * wanted else passed(reading)


def _different(replay: Replay) -> str:
    if replay.timed is None or replay.timed <= max(SAME, REPEATABLE * (replay.untimed or 0.0)):
        return ""
    return (
        f"{replay.calls} timed calls give other results than the same calls untimed, {replay.timed:.2g} of their size "
        f"apart: it may tell that it is being timed, or keep something between calls"
    )


CHECK = CaseCheck(
    name="work-skipped",
    threshold=f"in repeated calls at least {LEAST_SHARE:.0%} of the first one's operations; timed as untimed",
    reason="what is kept between calls is computed once and timed a thousand times",
    look=_look,
)

"""Every call does its work: it remembers no results, skips no calls, and does not look whether it is being timed.

What is counted is what the framework was asked to run, which takes no clock: a compiled call is one operation, and a
call that returns what it has kept is none.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested
from accelbench.validity.evidence import Dependence, Evidence, Launch, Replay, Unreadable, fact

REPEATED = 0.8
"""Of each operation of a first call, when it is made again on the same inputs: the same step does the same."""
LATER = 0.2
"""Of the operations of a first call, in the calls after it: an optimizer sets itself up in its first step."""
EVEN = 0.5
"""Of the busiest call after the first, in each of them: one that does nothing now and then is found out."""
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
    return _counted(found)


def _counted(found: Dependence) -> Finding:
    first, again = found.dispatched, found.again
    if not first:
        return untested("a call runs no operation of its framework: what it does cannot be counted")
    for repeated in (found.seen, *again[:1]):
        if repeated and (fewer := _fewer(first, repeated)):
            return failed(f"a repeated call runs {fewer}: it remembers results, or tells its inputs apart")
    if len(again) < 2:  # noqa: PLR2004 - one run has no later calls
        return untested("a call takes too long to be repeated")
    later = [after.total() - before.total() for before, after in pairwise(map(Counter, again))]
    if max(later) < LATER * Counter(first).total() or min(later) < EVEN * max(later):
        counts = ", ".join(map(str, later))
        return failed(f"{Counter(first).total()} operations in a call, {counts} in those after it: it skips work")
    many = Counter(found.many).total()
    if found.many_calls and many < EVEN * found.many_calls * min(later):
        return failed(f"{many} operations in {found.many_calls} calls, at {min(later)} in a call: it skips work")
    return passed(f"{Counter(first).total()} operations in a call, and as many when it is repeated")


def _fewer(first: Mapping[str, int], repeated: Mapping[str, int]) -> str:
    """The operation that a repeated call runs least of, as against the first: `0 of 3 mm`."""
    share, name = min((repeated.get(name, 0) / number, name) for name, number in first.items())
    return f"{repeated.get(name, 0)} of {first[name]} {name}" if share < REPEATED else ""


def _different(replay: Replay) -> str:
    if replay.timed is None or replay.timed <= max(SAME, REPEATABLE * (replay.untimed or 0.0)):
        return ""
    return (
        f"{replay.calls} timed calls give other results than the same calls untimed, {replay.timed:.2g} of their size "
        f"apart: it may tell that it is being timed, or keep something between calls"
    )


CHECK = CaseCheck(
    name="work-skipped",
    threshold=(
        f"a repeated call runs at least {REPEATED:.0%} of each operation of the first, every later call at least "
        f"{EVEN:.0%} of the busiest; timed calls give what untimed ones give"
    ),
    reason="what is kept between calls is computed once and timed a thousand times",
    look=_look,
)

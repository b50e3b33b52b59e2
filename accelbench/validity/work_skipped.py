"""Every call does its work: it remembers no results, skips no calls, and does not look whether it is being timed.

What is counted is what the framework was asked to run, which takes no clock: a compiled call is one operation, and a
call that returns what it has kept is none.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import Dependence, Replay
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

REPEATED = 0.8
"""Of each operation of a first call, when it is made again on the same inputs: the same step does the same."""
LATER = 0.2
"""Of the operations of a first call, in the calls after it: an optimizer sets itself up in its first step."""
EVEN = 0.5
"""Of the first call, or of the busiest one after it if that is less, in each later call: one that does nothing now and
then is found out. Of each of the `HEAVY` operations as well: a cheap one must not stand for them."""
HEAVY = {
    *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "matmul", "dot_general"),
    *("_matmul", "einsum", "_einsum", "tensordot", "conv_general_dilated"),
}
"""Products and convolutions, as the frameworks name them."""
DEFERRED = 1.5
"""Times as many operations on the way out of several calls as of one: what is left for it grows with the calls."""
SAME = 1e-5
"""Results as far apart as this share of their size are the same, however far apart repetitions are..."""
REPEATABLE = 10.0
"""...and so are those up to so many times as far apart as repetitions are, where sums are added in any order."""


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    found = launch.facts.dependence
    if isinstance(found, Unreadable):
        return failed(found)
    if found.replay and (different := _different(found.replay)):
        return failed(different)
    if found.unable or found.raised:
        return untested(found.unable or f"it raises on inputs that it was not built from: {found.raised}")
    return _counted(found)


def _counted(found: Dependence) -> Finding:
    first, again = found.dispatched, found.again
    if not first and not any(again):
        return untested("a call runs no operation of its framework: what it does cannot be counted")
    for repeated in (found.seen, *again[:1]):
        if repeated is not None and (fewer := _fewer(first, repeated)):
            return failed(f"a repeated call runs {fewer}: it remembers results, or tells its inputs apart")
    if not again:
        return untested("a call was not repeated")
    if skips := _skips(found):
        return failed(f"{skips}: it skips work")
    return _left_for_export(found) or passed(
        f"{Counter(first).total()} operations in a call, and as many when it is repeated"
    )


def _skips(found: Dependence) -> str:
    """What later calls run less of; empty where they do not, or take so long that a block holds none."""
    first = Counter(found.dispatched).total()
    later = [after.total() - before.total() for before, after in pairwise(map(Counter, found.again))]
    if later and (not first or max(later) < LATER * first or min(later) < EVEN * min(first, max(later))):
        return f"{first} operations in a call, {', '.join(map(str, later))} in those after it"
    for before, after in pairwise(found.again):
        added = {name: after.get(name, 0) - before.get(name, 0) for name in HEAVY & found.dispatched.keys()}
        if fewer := _fewer({name: found.dispatched[name] for name in added}, added, EVEN):
            return f"a later call runs {fewer}"
    many = Counter(found.many).total()
    if later and found.many_calls and many < EVEN * found.many_calls * min(later):
        return f"{many} operations in {found.many_calls} calls, at {min(later)} in a call"
    return ""


def _left_for_export(found: Dependence) -> Finding | None:
    """What the way out runs more of, the more calls were made; and products, however many."""
    after = [Counter(exported).total() for exported in found.exported]
    if after and after[-1] > DEFERRED * after[0]:
        said = f"export runs {after[0]} operations after one call and {after[-1]} after several: nobody times those"
        return failed(said)
    products = sorted(HEAVY & {name for exported in found.exported for name in exported})
    return untested(f"export runs {', '.join(products)}, and nobody times that") if products else None


def _fewer(first: Mapping[str, int], repeated: Mapping[str, int], least: float = REPEATED) -> str:
    """The operation that a repeated call runs least of, as against the first: `0 of 3 mm`."""
    shares = [(repeated.get(name, 0) / number, name) for name, number in first.items()]
    share, name = min(shares, default=(1.0, ""))
    return f"{repeated.get(name, 0)} of {first[name]} {name}" if share < least else ""


def _different(replay: Replay) -> str:
    if replay.timed is None or replay.timed <= max(SAME, REPEATABLE * (replay.untimed or 0.0)):
        return ""
    return (
        f"{replay.calls} timed calls give other results than the same calls untimed, {replay.timed:.2g} of their size "
        f"apart: it may tell that it is being timed, or keep something between calls"
    )


CHECK = LaunchCheck(
    name="work-skipped",
    threshold=(
        f"a repeated call runs at least {REPEATED:.0%} of each operation of the first, every later call at least "
        f"{EVEN:.0%} of the busiest; timed calls give what untimed ones give; export runs no products, and no more "
        "after many calls than after one"
    ),
    reason="a result that is kept between calls is computed once and timed a thousand times",
    evaluate=_evaluate,
    always=True,
    of=lambda facts: facts.dependence,
)

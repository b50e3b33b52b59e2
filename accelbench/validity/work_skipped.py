"""Check that every call does its work: no kept results, no skipped calls, no other work while it is timed.

The check counts the operations that the framework is asked to run, which needs no clock: a compiled call is one
operation, and a call that returns a kept result runs none.
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
"""Share of each operation of a first call when it is repeated on the same inputs: the same step does the same."""
LATER = 0.2
"""Share of the first call's operations, in the calls after it: an optimizer sets itself up in its first step."""
EVEN = 0.5
"""Share of the operations of the first call, or of the busiest call after it if that ran fewer, in each later call.

A call that sometimes skips its work runs fewer. The share holds for each of the `HEAVY` operations too, so that cheap
operations cannot replace them.
"""
HEAVY = {
    *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "matmul", "dot_general"),
    *("_matmul", "einsum", "_einsum", "tensordot", "conv_general_dilated"),
}
"""Products and convolutions, by the frameworks' names."""
DEFERRED = 1.5
"""Multiple of the export's operations after several calls over those after one: deferred work grows with the calls."""
SAME = 1e-5
"""Relative difference below which results are the same, however repeatable the program is."""
REPEATABLE = 10.0
"""Multiple of the difference between repetitions below which results are the same: sums may add in any order."""


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable):
        return failed(dependence)
    if dependence.replay and (different := _describe_difference(dependence.replay)):
        return failed(different)
    if dependence.unable or dependence.raised:
        return untested(dependence.unable or f"it raises on inputs that it was not built from: {dependence.raised}")
    return _judge_counts(dependence)


def _judge_counts(dependence: Dependence) -> Finding:
    first, again = dependence.dispatched, dependence.again
    if not first and not any(again):
        return untested("a call runs no operation of its framework: what it does cannot be counted")
    for repeated in (dependence.seen, *again[:1]):
        if repeated is not None and (fewer := _describe_fewer(first, repeated)):
            return failed(f"a repeated call runs {fewer}: it keeps results, or recognises its inputs")
    if not again:
        return untested("a call was not repeated")
    if skips := _describe_skips(dependence):
        return failed(f"{skips}: it skips work")
    return _judge_export(dependence) or passed(
        f"{Counter(first).total()} operations in a call, and as many when it is repeated"
    )


def _describe_skips(dependence: Dependence) -> str:
    """Describe what later calls run less of; empty if they do not, or if a block holds a single call."""
    first = Counter(dependence.dispatched).total()
    later = [after.total() - before.total() for before, after in pairwise(map(Counter, dependence.again))]
    if later and (not first or max(later) < LATER * first or min(later) < EVEN * min(first, max(later))):
        return f"{first} operations in a call, {', '.join(map(str, later))} in those after it"
    for before, after in pairwise(dependence.again):
        added = {name: after.get(name, 0) - before.get(name, 0) for name in HEAVY & dependence.dispatched.keys()}
        if fewer := _describe_fewer({name: dependence.dispatched[name] for name in added}, added, EVEN):
            return f"a later call runs {fewer}"
    many = Counter(dependence.many).total()
    if later and dependence.many_calls and many < EVEN * dependence.many_calls * min(later):
        return f"{many} operations in {dependence.many_calls} calls, at {min(later)} in a call"
    return ""


def _judge_export(dependence: Dependence) -> Finding | None:
    """Fail if export runs more after more calls; return untested if it runs products, None otherwise."""
    after = [Counter(exported).total() for exported in dependence.exported]
    if after and after[-1] > DEFERRED * after[0]:
        return failed(f"export, which is not timed, runs {after[0]} operations after one call and {after[-1]} later")
    products = sorted(HEAVY & {name for exported in dependence.exported for name in exported})
    return untested(f"export, which is not timed, runs {', '.join(products)}") if products else None


def _describe_fewer(first: Mapping[str, int], repeated: Mapping[str, int], least: float = REPEATED) -> str:
    """Name the operation that a repeated call runs least of, compared with the first: `0 of 3 mm`."""
    shares = [(repeated.get(name, 0) / number, name) for name, number in first.items()]
    share, name = min(shares, default=(1.0, ""))
    return f"{repeated.get(name, 0)} of {first[name]} {name}" if share < least else ""


def _describe_difference(replay: Replay) -> str:
    if replay.timed is None or replay.timed <= max(SAME, REPEATABLE * (replay.untimed or 0.0)):
        return ""
    return (
        f"{replay.calls} timed calls give other results than the same calls untimed, {replay.timed:.2g} of their size "
        f"apart: it may detect the timing, or keep state between calls"
    )


CHECK = LaunchCheck(
    name="work-skipped",
    threshold=(
        f"a repeated call runs at least {REPEATED:.0%} of each operation of the first, every later call at least "
        f"{EVEN:.0%} of the busiest; timed calls give the results of untimed ones; export runs no products, and no "
        "more after many calls than after one"
    ),
    reason="a result that is kept between calls is computed once and timed a thousand times",
    evaluate=_evaluate,
    include_quarantined=True,
    fact=lambda facts: facts.dependence,
)

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

MINIMUM_REPEATED_SHARE = 0.8
"""Minimum share of each operation of the first call in a repetition on the same inputs."""
MINIMUM_BUSIEST_LATER_SHARE = 0.2
"""Minimum share of the first call's operations in the busiest later call: an optimizer sets itself up in its first
step, so later calls may run far fewer."""
MINIMUM_LATER_SHARE = 0.5
"""Minimum share in every later call: of the first call's operations, or of the busiest later call's if those are fewer.

A call that sometimes skips its work runs fewer. For each of the `PRODUCTS` the share is of the first call's number, so
that cheap operations cannot replace them.
"""
PRODUCTS = {
    *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "matmul", "dot_general"),
    *("_matmul", "einsum", "_einsum", "tensordot", "conv_general_dilated"),
}
"""Products and convolutions, by the frameworks' names."""
MAXIMUM_EXPORT_GROWTH = 1.5
"""Maximum of the export's operations after several calls over those after one: deferred work grows with the calls."""
NEGLIGIBLE_DIFFERENCE = 1e-5
"""Maximum relative difference of results that count as equal, however repeatable the program is."""
MAXIMUM_REPETITION_MULTIPLE = 10.0
"""Maximum difference of results that count as equal, as a multiple of that between two repetitions: sums may add in any
order."""


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if timed calls give other results than untimed ones, or if repeated or later calls run too little."""
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable):
        return failed(dependence)
    if dependence.replay and (difference := _describe_difference(dependence.replay)):
        return failed(difference)
    if dependence.unable or dependence.raised:
        return untested(dependence.unable or f"it raises on inputs that it was not built from: {dependence.raised}")
    return _judge_counts(dependence)


def _judge_counts(dependence: Dependence) -> Finding:
    """Judge the operations of repeated calls, of later calls and of the export, in this order."""
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
    """Describe what later calls, or the calls of a whole block, run too few of; empty if they run enough.

    `again` counts runs of one, two, three calls, so the differences are the operations of the second, third call.
    Empty also if only one call could be repeated.
    """
    first = Counter(dependence.dispatched).total()
    later = [after.total() - before.total() for before, after in pairwise(map(Counter, dependence.again))]
    if later and (
        not first
        or max(later) < MINIMUM_BUSIEST_LATER_SHARE * first
        or min(later) < MINIMUM_LATER_SHARE * min(first, max(later))
    ):
        return f"{first} operations in a call, {', '.join(map(str, later))} in those after it"
    for before, after in pairwise(dependence.again):
        added = {name: after.get(name, 0) - before.get(name, 0) for name in PRODUCTS & dependence.dispatched.keys()}
        if fewer := _describe_fewer({name: dependence.dispatched[name] for name in added}, added, MINIMUM_LATER_SHARE):
            return f"a later call runs {fewer}"
    many = Counter(dependence.many).total()
    if later and dependence.many_calls and many < MINIMUM_LATER_SHARE * dependence.many_calls * min(later):
        return f"{many} operations in {dependence.many_calls} calls, at {min(later)} in a call"
    return ""


def _judge_export(dependence: Dependence) -> Finding | None:
    """Judge the operations of export, which is not timed; None if there is nothing to report.

    Fails if they exceed `MAXIMUM_EXPORT_GROWTH` times those after one call; untested if there are products among them.
    """
    after = [Counter(exported).total() for exported in dependence.exported]
    if after and after[-1] > MAXIMUM_EXPORT_GROWTH * after[0]:
        return failed(f"export, which is not timed, runs {after[0]} operations after one call and {after[-1]} later")
    products = sorted(PRODUCTS & {name for exported in dependence.exported for name in exported})
    return untested(f"export, which is not timed, runs {', '.join(products)}") if products else None


def _describe_fewer(
    first: Mapping[str, int], repeated: Mapping[str, int], minimum_share: float = MINIMUM_REPEATED_SHARE
) -> str:
    """Name the operation that `repeated` runs the smallest share of: `0 of 3 mm`; empty if that is enough."""
    shares = [(repeated.get(name, 0) / number, name) for name, number in first.items()]
    share, name = min(shares, default=(1.0, ""))
    return f"{repeated.get(name, 0)} of {first[name]} {name}" if share < minimum_share else ""


def _describe_difference(replay: Replay) -> str:
    """Describe by how much timed calls differ from untimed ones; empty if that is allowed."""
    maximum = max(NEGLIGIBLE_DIFFERENCE, MAXIMUM_REPETITION_MULTIPLE * (replay.untimed or 0.0))
    if replay.timed is None or replay.timed <= maximum:
        return ""
    return (
        f"{replay.calls} timed calls give other results than the same calls untimed, {replay.timed:.2g} of their size "
        f"apart: it may detect the timing, or keep state between calls"
    )


CHECK = LaunchCheck(
    name="work-skipped",
    threshold=(
        f"a repeated call runs at least {MINIMUM_REPEATED_SHARE:.0%} of each operation of the first; the busiest later "
        f"call at least {MINIMUM_BUSIEST_LATER_SHARE:.0%} of the first, and every later call at least "
        f"{MINIMUM_LATER_SHARE:.0%} of the first or of the busiest, whichever ran fewer; timed calls give the results "
        f"of untimed ones; export runs at most {MAXIMUM_EXPORT_GROWTH:g} times as much after several calls as after "
        "one, and no products (else untested)"
    ),
    reason="a result that is kept between calls is computed once and timed a thousand times",
    evaluate=_evaluate,
    include_quarantined=True,
    fact=lambda facts: facts.dependence,
)

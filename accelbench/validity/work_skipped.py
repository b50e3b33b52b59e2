"""Check that every call does its work: it returns no stored result, and does no other work while it is timed.

The check counts the operations that the framework is asked to run, which needs no clock: a compiled call is one
operation, and a call that returns a stored result runs none.
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
"""Minimum share that a repetition of the first call has to run, of each operation of the first call."""
MINIMUM_BUSIEST_LATER_SHARE = 0.2
"""Minimum share that the busiest later call has to run, of the first call's operations. It is small because an
optimizer sets itself up in its first step."""
MINIMUM_LATER_SHARE = 0.5
"""Minimum share that every later call has to run, of the operations of the first call or of the busiest later call,
whichever ran fewer.

For each of the `PRODUCTS` it is the minimum share of the first call's number, so that cheap operations cannot replace
products.
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
    """Fail if timed calls give other results than untimed ones, or repeated or later calls do too little work.

    Untested if the program could not run on new inputs, so that its calls were not counted.
    """
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable):
        return failed(dependence)
    difference = _describe_difference(dependence.replay) if dependence.replay else ""
    if difference:
        return failed(difference)
    if dependence.unable:
        return untested(dependence.unable)
    if dependence.raised:
        return untested(f"it raises on inputs that it was not built from: {dependence.raised}")
    return _judge_counts(dependence)


def _judge_counts(dependence: Dependence) -> Finding:
    """Fail if repeated or later calls run too few operations; else judge whether export does the step's work.

    Operations are counted by name: `dependence.dispatched` has those of the first call on new inputs, `dependence.seen`
    those of a call on the original inputs, and `dependence.again[n]` those of a repeated run of n + 1 calls.
    """
    first = dependence.dispatched
    if not first and not any(dependence.again):
        return untested("a call runs no operation of its framework: what it does cannot be counted")
    for repeated in (dependence.seen, *dependence.again[:1]):  # like `first`, each counts a single call
        shortfall = "" if repeated is None else _describe_shortfall(first, repeated)
        if shortfall:
            return failed(f"a repeated call runs {shortfall}: it keeps results, or recognises its inputs")
    if not dependence.again[1:]:
        return untested("no run of two calls was made")
    skipped = _describe_skipped_work(dependence)
    if skipped:
        return failed(f"{skipped}: it skips work")
    reading = f"{Counter(first).total()} operations in a call, and as many when it is repeated"
    return _judge_export(dependence) or passed(reading)


def _describe_skipped_work(dependence: Dependence) -> str:
    """Describe calls after the first one that run too few operations; empty if there are none.

    Three comparisons are made, in this order:

    1. all operations of each later call with those of the first call or of the busiest later call;
    2. the products of each later call with those of the first call;
    3. the operations of a block of calls with those of as many calls like the least busy later call.
    """
    first_total = Counter(dependence.dispatched).total()
    # `again[n]` counts a run of n + 1 calls, so each difference belongs to one later call: the second, the third and so
    # on. The caller has checked that there is a run of two calls.
    totals = [Counter(counts).total() for counts in dependence.again]
    later_totals = [max(0, after - before) for before, after in pairwise(totals)]
    busiest, least_busy = max(later_totals), min(later_totals)
    all_run_too_few = busiest < MINIMUM_BUSIEST_LATER_SHARE * first_total
    one_runs_too_few = least_busy < MINIMUM_LATER_SHARE * min(first_total, busiest)
    first_runs_none = first_total == 0  # although a repeated call runs some, as the caller has checked
    if first_runs_none or all_run_too_few or one_runs_too_few:
        return f"{first_total} operations in a call, {', '.join(map(str, later_totals))} in those after it"
    first_products = {name: count for name, count in dependence.dispatched.items() if name in PRODUCTS}
    for before, after in pairwise(dependence.again):
        later_products = {name: after.get(name, 0) - before.get(name, 0) for name in first_products}
        shortfall = _describe_shortfall(first_products, later_products, MINIMUM_LATER_SHARE)
        if shortfall:
            return f"a later call runs {shortfall}"
    # `many` counts the operations of `many_calls` calls.
    block_operations = Counter(dependence.many).total()
    if dependence.many_calls and block_operations < MINIMUM_LATER_SHARE * dependence.many_calls * least_busy:
        return f"{block_operations} operations in {dependence.many_calls} calls, at {least_busy} in a call"
    return ""


def _judge_export(dependence: Dependence) -> Finding | None:
    """Return a finding if export, which is not timed, may do the step's work; else None.

    `dependence.exported` counts the export's operations by name, after one call and then after several.
    """
    totals = [Counter(exported).total() for exported in dependence.exported]
    if totals and totals[-1] > MAXIMUM_EXPORT_GROWTH * totals[0]:
        return failed(f"export, which is not timed, runs {totals[0]} operations after one call and {totals[-1]} later")
    names = {name for exported in dependence.exported for name in exported}
    products = sorted(PRODUCTS & names)
    return untested(f"export, which is not timed, runs {', '.join(products)}") if products else None


def _describe_shortfall(
    first: Mapping[str, int], repeated: Mapping[str, int], minimum_share: float = MINIMUM_REPEATED_SHARE
) -> str:
    """Describe the operation that `repeated` runs least often relative to `first`, as `0 of 3 mm`.

    Both count operations by name. The text is empty if `repeated` runs at least `minimum_share` of the count of each
    operation.
    """
    shares = [(repeated.get(name, 0) / count, name) for name, count in first.items()]
    smallest_share, name = min(shares, default=(1.0, ""))
    if smallest_share >= minimum_share:
        return ""
    return f"{repeated.get(name, 0)} of {first[name]} {name}"


def _describe_difference(replay: Replay) -> str:
    """Describe how much the results of timed and untimed calls differ; empty if rounding may be the reason."""
    maximum_difference = max(NEGLIGIBLE_DIFFERENCE, MAXIMUM_REPETITION_MULTIPLE * (replay.untimed or 0.0))
    if replay.timed is None or replay.timed <= maximum_difference:
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
    remedy=(
        "compute every result in the step, from its arguments, in every call: keep none for later, do nothing "
        "differently while it is timed, and only name arrays in export"
    ),
    fact=lambda facts: facts.dependence,
)

"""Define the rules by which numbers of two variants explain that one is faster; each gives a sentence, or nothing.

A sentence states what was counted or measured on both sides. A rule also tests that the difference is large enough to
matter for the difference in time, because a true sentence at this place is read as the reason.
"""

from collections.abc import Callable

from accelbench import figures
from accelbench.explanation.side import Side

Rule = Callable[[Side, Side], str | None]
"""Takes the faster and the slower side of a comparison; returns a sentence, or None if the rule does not apply."""

FEWER = 2.0
"""Minimum factor by which the slower side has to run more operations and to move more bytes."""
SHARE_OF_DIFFERENCE = 0.5
"""Minimum share of the difference in time that a rule's reason takes: extra bytes, one operation, or idle time."""
NEGLIGIBLE_WORK = 0.1
"""Maximum share of a call's time for which the declared work is negligible."""
SMALL_OPERATION_SECONDS = 20e-6
"""Mean time of an operation above which its cost is not that of starting it.

Starting one takes 0.3 to 10 microseconds, depending on framework and device.
"""
SMALLEST_COUNT = 10
"""Fewer operations have no meaningful mean."""
MORE_PRODUCTS = 1.5
"""Minimum factor by which the slower side has to make more matrix products."""
MOSTLY_ARITHMETIC = 0.5
"""Share of the device's arithmetic limit from which arithmetic takes most of a call's time."""
CLOSE_TO_LIMIT = 0.8
"""Share of a limit from which a variant is close to it."""
DOMINATING = 0.5
"""Share of a profiled call from which one operation, or the time in which none runs, is most of it."""


def fewer_passes(faster: Side, slower: Side) -> str | None:
    """Compare the passes over memory: operations, and the bytes that they read and write.

    None unless the slower side has far more of both, and moving its extra bytes, at the memory's limit, explains the
    difference in time.
    """
    if not (faster.operations and slower.operations and faster.accessed_bytes and slower.accessed_bytes):
        return None
    if slower.bytes_per_second is None:
        return None
    runs_more = slower.operations >= FEWER * faster.operations
    moves_more = slower.accessed_bytes >= FEWER * faster.accessed_bytes
    extra_seconds = (slower.accessed_bytes - faster.accessed_bytes) / slower.bytes_per_second
    explains_time = extra_seconds >= SHARE_OF_DIFFERENCE * (slower.seconds - faster.seconds)
    if not (runs_more and moves_more and explains_time):
        return None
    return f"In a call, {_describe_passes(slower)}; {_describe_passes(faster)}."


def _describe_passes(side: Side) -> str:
    """Return the operations and bytes of a call: `jax/jit runs 1 kernel that reads and writes 33.6 MB`.

    The caller has checked that both are known.
    """
    verbs = "reads and writes" if side.operations == 1 else "read and write"
    return f"{side.name} {side.work} that {verbs} {figures.quantity(side.accessed_bytes or 0, 'B')}"


def cost_of_operations(faster: Side, slower: Side) -> str | None:
    """Compare the time per operation if the slower side runs many small ones, whose declared work is negligible."""
    needed_seconds = slower.needed_seconds
    if needed_seconds is None or not slower.operations or slower.operations < SMALLEST_COUNT:
        return None
    is_small = slower.seconds / slower.operations <= SMALL_OPERATION_SECONDS
    if not is_small or needed_seconds > NEGLIGIBLE_WORK * slower.seconds:
        return None
    sentence = (
        f"At the device's limits, the work of a call would take {figures.seconds(needed_seconds)}. "
        f"{slower.name} {slower.work} in {figures.seconds(slower.seconds)}{_mean_time(slower)}"
    )
    if faster.operations:
        sentence += f"; {faster.name} {faster.work} in {figures.seconds(faster.seconds)}{_mean_time(faster)}"
    return f"{sentence}."


def _mean_time(side: Side) -> str:
    """Return the mean time of an operation, `, 2.25 µs each`; empty for a single one."""
    count = side.operations or 1
    return f", {figures.seconds(side.seconds / count)} each" if count > 1 else ""


def more_products(faster: Side, slower: Side) -> str | None:
    """Compare numbers of matrix products; None unless arithmetic takes the time and the slower side makes far more."""
    if not (faster.products and slower.products) or not _is_mostly_arithmetic(faster, slower):
        return None
    if slower.products < MORE_PRODUCTS * faster.products:
        return None
    products = figures.count(slower.products, "matrix product")
    return f"In a call, {slower.name} makes {products} and {faster.name} {figures.count(faster.products)}."


def same_products(faster: Side, slower: Side) -> str | None:
    """Compare the rates at which both sides make the same matrix products, if arithmetic takes the time."""
    if not faster.products or faster.products != slower.products or not _is_mostly_arithmetic(faster, slower):
        return None
    return f"Both make {figures.count(faster.products, 'matrix product')} in a call: {_shares(faster, slower)}."


def close_to_limit(faster: Side, slower: Side) -> str | None:
    """Compare the shares of the device's limit if one limit bounds both sides, and the faster one is close to it."""
    have_same_bound = faster.bound is not None and faster.bound == slower.bound
    if not have_same_bound or not faster.share_of_limit or not slower.share_of_limit:
        return None
    return f"{_shares(faster, slower)}." if faster.share_of_limit >= CLOSE_TO_LIMIT else None


def slow_operation(faster: Side, slower: Side) -> str | None:
    """Name the operation that takes most of the slower side's call, if it explains the difference.

    Its time, less the faster side's whole call, has to be at least half of the difference in time, because the faster
    side may spend its call on the same operation. Each of its runs has to take longer than starting an operation does.
    An operation that a compiler merged from several is not named: its name is not that of one of them.
    """
    operation = slower.longest
    if operation is None or operation.merged or operation.share < DOMINATING or not operation.runs:
        return None
    seconds = operation.share * slower.seconds
    is_small = seconds / operation.runs <= SMALL_OPERATION_SECONDS
    explains_time = seconds - faster.seconds >= SHARE_OF_DIFFERENCE * (slower.seconds - faster.seconds)
    if is_small or not explains_time:
        return None
    sentence = (
        f"{operation.label} takes {figures.percent(operation.share)} of {slower.name}'s call of "
        f"{figures.seconds(slower.seconds)}; a whole call of {faster.name} takes {figures.seconds(faster.seconds)}"
    )
    counterpart = faster.longest
    if counterpart is not None and not counterpart.merged and counterpart.share >= DOMINATING:
        sentence += f", {figures.percent(counterpart.share)} of it in {counterpart.label}"
    return f"{sentence}."


def time_between(faster: Side, slower: Side) -> str | None:
    """Compare the time in which nothing runs, if it is most of the slower side's call and explains the difference."""
    if slower.idle_share is None or slower.idle_share < DOMINATING:
        return None
    idle_seconds = slower.idle_share * slower.seconds
    # If the faster side's idle time is unknown, assume the most.
    faster_idle_seconds = faster.seconds * (1.0 if faster.idle_share is None else faster.idle_share)
    if idle_seconds - faster_idle_seconds < SHARE_OF_DIFFERENCE * (slower.seconds - faster.seconds):
        return None
    return (
        f"During at least {figures.percent(slower.idle_share)} of {slower.name}'s call of "
        f"{figures.seconds(slower.seconds)}, none of its operations runs; "
        f"a whole call of {faster.name} takes {figures.seconds(faster.seconds)}."
    )


def _is_mostly_arithmetic(faster: Side, slower: Side) -> bool:
    """Return True if arithmetic bounds both sides, whose shares are known, and takes most of the faster side's time."""
    bound_by_arithmetic = faster.bound == slower.bound == "compute"
    return bound_by_arithmetic and bool(slower.share_of_limit) and (faster.share_of_limit or 0) >= MOSTLY_ARITHMETIC


def _shares(faster: Side, slower: Side) -> str:
    """Return both sides' shares of the limit that bounds them; the caller has checked that both are known."""
    limit = "the device can compute" if faster.bound == "compute" else "the device's memory can move"
    shares = [figures.percent(side.share_of_limit or 0) for side in (faster, slower)]
    return f"{faster.name} reaches {shares[0]} of what {limit}, {slower.name} {shares[1]}"


RULES: tuple[tuple[Rule, ...], ...] = (
    (fewer_passes,),
    (time_between, cost_of_operations),
    (more_products, same_products, close_to_limit, slow_operation),
)
"""Groups of rules; of each group, the first rule that applies gives a sentence."""

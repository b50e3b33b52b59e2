"""Describe one side of a comparison by the numbers that explanations need, each for one call."""

from dataclasses import dataclass

from accelbench import figures
from accelbench.api.numbers import Numbers
from accelbench.api.operation_times import OperationTimes
from accelbench.api.result import Bound, Comparison, Result, VariantResult
from accelbench.verdict.redaction import compared_seconds

MAXIMUM_SLOWDOWN = 1.25
"""How many times as long a call may take under the profiler, so that its shares are those of the timed call."""


@dataclass(frozen=True)
class LongestOperation:
    """Describe the operation that takes most of a call."""

    name: str
    share: float
    """Share of the call's time."""
    runs: float
    """How often it runs in a call."""
    source: str = ""
    merged: bool = False
    """True if a compiler made it of several operations, so that its name is not that of one."""

    @property
    def label(self) -> str:
        """Return its name, with the lines that it comes from: `sort (rows.py:12)`."""
        return f"{self.name} ({self.source})" if self.source else self.name


@dataclass(frozen=True)
class Side:
    """Hold what is known about one call of a variant; None for what is unknown."""

    name: str
    seconds: float
    operations: int | None = None
    """Kernels that a compiled program runs, or operations that are dispatched one by one."""
    accessed_bytes: int | None = None
    """Bytes that these operations read and write."""
    compiled: bool = False
    """True if `operations` counts kernels of a compiled program."""
    products: int | None = None
    """Matrix products."""
    needed_seconds: float | None = None
    """Seconds that the declared arithmetic and bytes take at the device's limits."""
    bytes_per_second: float | None = None
    """The most bytes that the device's memory moves in a second."""
    bound: Bound | None = None
    share_of_limit: float | None = None
    longest: LongestOperation | None = None
    """The operation that takes most; None without the profiler, or if it slowed the call down too much."""
    idle_share: float | None = None
    """Smallest share of the call in which no operation runs; None where that cannot be known."""

    @property
    def work(self) -> str:
        """Return what the variant runs in a call: `runs 1 kernel`, or `dispatches 30 operations`."""
        count = self.operations or 0
        return f"runs {figures.count(count, 'kernel')}" if self.compiled else f"dispatches {_operations(count)}"


def _operations(count: int) -> str:
    """Return a number of operations as text."""
    return figures.count(count, "operation")


def faster_and_slower(result: Result, comparison: Comparison) -> tuple[Side, Side] | None:
    """Return the faster and the slower side of a comparison.

    None unless the verdict is `faster` or `slower`, and calls of both sides have the same number of units of work, so
    that their numbers for a call can be compared.
    """
    times = compared_seconds(result, comparison)
    if times is None or comparison.verdict not in ("faster", "slower"):
        return None
    variants = {variant.name: variant for variant in result.variants}
    baseline, variant = variants[comparison.baseline], variants[comparison.variant]
    if baseline.numbers.units_per_call != variant.numbers.units_per_call:
        return None
    baseline_seconds, variant_seconds = times
    baseline_side, variant_side = _side(baseline, baseline_seconds), _side(variant, variant_seconds)
    # The verdict is on the variant.
    return (variant_side, baseline_side) if comparison.verdict == "faster" else (baseline_side, variant_side)


def _side(variant: VariantResult, seconds_per_unit: float) -> Side:
    """Return what is known about a call of the variant, whose unit of work takes `seconds_per_unit`."""
    numbers = variant.numbers
    compiled = numbers.kernels_per_call is not None
    seconds = seconds_per_unit * (numbers.units_per_call or 1)
    operation_times = variant.operation_times  # None without a launch under the profiler
    longest: LongestOperation | None = None
    idle_share: float | None = None
    if operation_times is not None:
        idle_share = _idle_share(operation_times, seconds)
        # If the profiler slows the call down too much, the shares are not those of the timed call.
        if float(operation_times.seconds_per_call) <= MAXIMUM_SLOWDOWN * seconds:
            longest = _longest(operation_times)
    return Side(
        name=variant.name,
        seconds=seconds,
        operations=numbers.kernels_per_call if compiled else numbers.dispatched_per_call,
        accessed_bytes=_compiled_bytes(numbers) if compiled else numbers.dispatched_bytes,
        compiled=compiled,
        products=numbers.products_per_call,
        needed_seconds=_needed_seconds(numbers),
        bytes_per_second=numbers.value("limit_bytes_per_second"),
        bound=variant.bound,
        share_of_limit=numbers.value("share_of_limit"),
        longest=longest,
        idle_share=idle_share,
    )


def _idle_share(operation_times: OperationTimes, seconds: float) -> float | None:
    """Return a lower bound of the share of a call in which no operation runs; None if no busy share was recorded.

    `seconds` is the time of a call without the profiler. Operations take no less time under the profiler, so the call
    without it was busy for `busy_seconds` at most.
    """
    if operation_times.busy_share is None:
        return None
    busy_seconds = float(operation_times.busy_share) * float(operation_times.seconds_per_call)
    return max(0.0, 1 - busy_seconds / seconds)


def _longest(operation_times: OperationTimes) -> LongestOperation | None:
    """Return the operation that takes most of a profiled call; None if none was recorded."""
    if not operation_times.operations:
        return None
    operation = operation_times.operations[0]  # they are sorted, longest first
    return LongestOperation(
        name=operation.name,
        share=operation_times.share(operation),
        runs=float(operation.runs),
        source=operation.source or "",
        merged=operation.merged,
    )


def _compiled_bytes(numbers: Numbers) -> int | None:
    """Return the bytes that a compiled program reads and writes in a call; None if it has a loop or a branch.

    XLA counts the bytes of a loop's body once, however often it runs.
    """
    # Without loops and branches, as many kernels run in a call as the program has.
    return numbers.accessed_bytes if numbers.kernels == numbers.kernels_per_call else None


def _needed_seconds(numbers: Numbers) -> float | None:
    """Return the seconds that a call's declared work takes at the device's limits: the larger of arithmetic and bytes.

    None if the limit of a declared amount is unknown, or if the workload declares no work.
    """
    seconds_per_unit = 0.0
    for work, limit in (
        ("flops_per_unit", "limit_flops_per_second"),
        ("bytes_per_unit", "limit_bytes_per_second"),
    ):
        amount, rate = numbers.value(work), numbers.value(limit)
        if amount is None:
            continue
        if not rate:
            return None
        seconds_per_unit = max(seconds_per_unit, amount / rate)
    units_per_call = numbers.units_per_call or 1
    return seconds_per_unit * units_per_call or None  # 0 without declared work

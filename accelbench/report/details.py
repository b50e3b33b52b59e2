"""Build the tables below the verdict: requests, slowest calls, operations, first calls, work, programs, spread.

Nothing is computed that the result does not state.
"""

from collections.abc import Iterable

from accelbench import figures
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.operation_times import OperationTimes
from accelbench.api.result import Bound, OutlierCounts, Payback, PhaseTime, Result, Spread
from accelbench.explanation.side import MAXIMUM_SLOWDOWN
from accelbench.report import view
from accelbench.report.table import Table, TableColumn, make_table
from accelbench.stats.payback import NEGLIGIBLE_SECONDS, may_never_pay_back
from accelbench.verdict.redaction import step_seconds

FIRST_CALL = {"compile", "first-step"}
"""Phases of a launch that together are its first call."""
SMALLEST_SHARE = 0.01
"""Smallest share of a call that an operation is shown with."""


def tables(result: Result) -> tuple[Table, ...]:
    """Return the tables that a report shows below the verdict, without empty ones."""
    all_tables = (
        requests(result),
        tail(result),
        operation_times(result),
        first_calls(result),
        work(result),
        programs(result),
        spread(result),
    )
    return tuple(table for table in all_tables if table is not None)


def requests(result: Result) -> Table | None:
    """Return the table of the service times and the response times of requests; None if no requests arrive.

    A response is the wait for earlier requests and the service. A closed loop, in which a request begins when the one
    before it has ended, would show the service alone.
    """
    arrivals = result.case.measurement.arrivals
    if arrivals is None:
        return None
    rows = []
    for variant in view.baseline_first(result):
        numbers = variant.numbers
        if variant.seconds is None or numbers.utilisation is None:
            continue
        times = (numbers.service_seconds, numbers.service_p99_seconds, numbers.p99_seconds)
        service, service_p99, response_p99 = map(_format_seconds, times)
        response = figures.seconds(float(variant.seconds.geometric_mean_seconds))
        busy_share = figures.percent(float(numbers.utilisation))
        rows.append((variant.name, busy_share, service, service_p99, response, response_p99))
    columns = (
        TableColumn("variant"),
        TableColumn("busy", number=True),
        TableColumn("service p50", number=True),
        TableColumn("service p99", number=True),
        TableColumn("response p50", number=True),
        TableColumn("response p99", number=True),
    )
    caption = (
        f"Requests at {arrivals.rate_per_second:,} a second "
        f"({arrivals.process}; a response is the wait for earlier requests and the service)"
    )
    return make_table(caption, columns, rows)


def _format_seconds(seconds: str | None) -> str:
    """Format a decimal string of seconds; empty if it is None."""
    return "" if seconds is None else figures.seconds(float(seconds))


def tail(result: Result) -> Table | None:
    """Return the table of the 99th percentile of call times; None if the protocol does not time single calls.

    The last column has the interval of a variant's own percentile, over its launches.
    """
    own_intervals = {variant.name: _tail_interval(variant.spread) for variant in result.variants}
    rows = [
        (row.name, row.verdict, row.speedup, row.interval, row.seconds, own_intervals[row.name])
        for row in view.tail_rows(result)
    ]
    columns = (
        TableColumn("variant"),
        TableColumn("verdict", kind="verdict"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn("p99", number=True),
        TableColumn("interval of p99", kind="nowrap"),
    )
    return make_table(f"The slowest 1 % of calls (p99, seconds per {result.unit})", columns, rows)


def _tail_interval(spread: Spread | None) -> str:
    """Format the interval of a variant's 99th percentile, such as `4.1 ms to 5.2 ms`; empty if it is unknown."""
    if spread is None or spread.lower_p99_seconds is None or spread.upper_p99_seconds is None:
        return ""
    lower, upper = float(spread.lower_p99_seconds), float(spread.upper_p99_seconds)
    return f"{figures.seconds(lower)} to {figures.seconds(upper)}"


def first_calls(result: Result) -> Table | None:
    """Return a table of first calls: their times, and the number of steps after which a slower one has paid back.

    Returns None if neither a number of steps nor a time with a warm cache is known.
    """
    payback_by_variant = {
        comparison.variant: comparison.pays_back for comparison in result.comparisons if comparison.pays_back
    }
    if not payback_by_variant and not any(variant.warm_phases for variant in result.variants):
        return None
    rows = []
    for variant in view.baseline_first(result):
        if not variant.phases:
            continue
        payback_cell = ""  # a column whose cells are all empty is not shown
        if payback_by_variant and variant.name == result.case.baseline:
            payback_cell = "baseline"
        elif variant.name in payback_by_variant:
            payback_cell = payback_text(payback_by_variant[variant.name], result.unit)
        cold_time, warm_time = first_call_time(variant.phases), first_call_time(variant.warm_phases)
        rows.append((variant.name, payback_cell, cold_time, warm_time))
    columns = (
        TableColumn("variant"),
        TableColumn("pays back", kind="sentence"),
        TableColumn("cold", number=True),
        TableColumn("warm cache", number=True),
    )
    return make_table("First call (compiling included)", columns, rows)


def payback_text(payback: Payback, unit: str) -> str:
    """Say when faster steps have made up for the extra time of the first call: `after 1,240 steps (1,180 to 1,310)`."""
    if abs(float(payback.extra_seconds)) < NEGLIGIBLE_SECONDS:
        return "costs nothing more"
    # `or 1` below is only for the type checker: where `lower` or `steps` is used, it is not None.
    if may_never_pay_back(payback.answer, payback.lower, payback.upper):
        return f"after {figures.count(payback.lower or 1, unit)} at the earliest, if ever"
    match payback.answer:
        case "never" | "at-once":
            return payback.answer.replace("-", " ")
        case "after" | "until":
            return f"{payback.answer} {figures.count(payback.steps or 1, unit)}{_interval_of_steps(payback)}"


def _interval_of_steps(payback: Payback) -> str:
    """Return the interval of a number of steps, ` (1,180 to 1,310)`; empty unless both ends are known and differ."""
    if payback.lower is None or payback.upper is None or payback.lower == payback.upper:
        return ""
    return f" ({figures.count(payback.lower)} to {figures.count(payback.upper)})"


def first_call_time(phases: Iterable[PhaseTime]) -> str:
    """Format the time of the first call: median time of compiling plus that of the first step; empty without either."""
    seconds = [float(time.median_seconds) for time in phases if time.phase in FIRST_CALL]
    return view.phase_seconds(sum(seconds)) if seconds else ""


def operation_times(result: Result) -> Table | None:
    """Return the table of the operations that take most of each variant's call, a column for each variant.

    The last row is how many times as long a call took under the profiler. Returns None if no variant was profiled.
    """
    profiles = {
        variant.name: variant.operation_times for variant in view.baseline_first(result) if variant.operation_times
    }
    if not profiles:
        return None
    slowdowns = {name: _slowdown(result, name) for name in profiles}
    row_count = max(_operations_to_show(profile) for profile in profiles.values())
    rows = []
    for rank in range(row_count):
        cells = (_operation_cell(profile, rank, slowdowns[name]) for name, profile in profiles.items())
        rows.append((str(rank + 1), *cells))
    slowdown_cells = (figures.speedup(slowdown) if slowdown else "" for slowdown in slowdowns.values())
    rows.append(("profiled/timed", *slowdown_cells))
    columns = (TableColumn("operation"), *(TableColumn(name, kind="sentence") for name in profiles))
    caption = (
        "Operations that take most (share of a call, runs in a call, source; no shares if the profiler makes a call "
        f"more than {MAXIMUM_SLOWDOWN} times as long)"
    )
    return make_table(caption, columns, rows)


def _operations_to_show(profile: OperationTimes) -> int:
    """Return how many operations take at least `SMALLEST_SHARE` of the call; a profile has the longest ones first."""
    return sum(profile.share(operation) >= SMALLEST_SHARE for operation in profile.operations)


def _operation_cell(profile: OperationTimes, rank: int, slowdown: float | None) -> str:
    """Describe the operation number `rank`, from 0: `92 % aten::sort, 1x, rows.py:12`; empty if it is not to be shown.

    The share is left out if the profiler slowed the call down too much, or by an unknown factor.
    """
    if rank >= _operations_to_show(profile):
        return ""
    operation = profile.operations[rank]
    has_share = slowdown is not None and slowdown <= MAXIMUM_SLOWDOWN
    share = f"{figures.percent(profile.share(operation))} " if has_share else ""
    runs = f"{float(operation.runs):,.4g}x"
    return ", ".join(filter(None, (f"{share}{operation.name}", runs, operation.source)))


def _slowdown(result: Result, name: str) -> float | None:
    """Return how many times as long a call of a variant took under the profiler; None without a time."""
    variant = next(variant for variant in result.variants if variant.name == name)
    seconds = step_seconds(variant)
    if seconds is None or variant.operation_times is None:
        return None
    return float(variant.operation_times.seconds_per_call) / (seconds * (variant.numbers.units_per_call or 1))


def work(result: Result, *, brief: bool = False) -> Table | None:
    """Return a table of rates, shares of the device's limit, and memory; if `brief`, with the main columns only.

    None if no number is known.
    """
    return _numbers_table("Work and memory", "work", result, brief=brief)


def programs(result: Result) -> Table | None:
    """Return a table of the numbers that describe each variant's compiled program; None if no number is known."""
    return _numbers_table("What was compiled", "program", result)


def _numbers_table(caption: str, table_name: str, result: Result, *, brief: bool = False) -> Table | None:
    """Return a table with a row for each variant, and a column for each number that belongs to the table `table_name`.

    If `brief`, only the main numbers have a column.
    """
    numbers = {field: number for field, number in MEASURED.items() if number.table == table_name}
    if brief:
        numbers = {field: number for field, number in numbers.items() if number.brief}
    currency = result.case.accelerator.currency
    columns = [
        TableColumn(number.heading.format(unit=result.unit, currency=currency), number=True)
        for number in numbers.values()
    ]
    rows = (
        (variant.name, *(number_text(variant.numbers, field, variant.bound) for field in numbers))
        for variant in view.baseline_first(result)
    )
    return make_table(caption, (TableColumn("variant"), *columns), rows)


def number_text(numbers: Numbers, field: str, bound: Bound | None = None) -> str:
    """Format the value of a field of `Numbers` with its unit; empty if it was not measured.

    A share is a fraction of the device's limit `bound`: 0.41 of the limit `compute` is `41 % compute`.
    """
    return format_number(field, numbers.value(field), bound)


def format_number(field: str, value: float | None, bound: Bound | None = None) -> str:
    """Format a value of a field of `Numbers`, as `number_text` does: empty if it is None, `none` for 0 of a unit."""
    unit = MEASURED[field].unit
    if value is None:
        return ""
    match unit:
        case "":
            return f"{value:,}"
        case "currency":
            return figures.significant(value)
        case "share":
            return f"{figures.percent(value)} {bound}"
        case _:
            return figures.quantity(value, unit) if value else "none"


def spread(result: Result) -> Table | None:
    """Return a table of how the times of each variant spread: outliers, and variance between launches."""
    columns = (
        TableColumn("variant"),
        TableColumn("launches", number=True),
        TableColumn("outliers among blocks"),
        TableColumn("among launches"),
        TableColumn("variance between launches", number=True),
        TableColumn("effective independent blocks per launch", number=True),
    )
    rows = (_spread_row(variant.name, variant.spread) for variant in view.baseline_first(result) if variant.spread)
    return make_table("How times spread (outliers by Tukey's fences, kept in all statistics)", columns, rows)


def _spread_row(name: str, spread: Spread) -> tuple[str, ...]:
    """Return the row of a variant in the table of `spread`."""
    return (
        name,
        str(spread.launch_outliers.of),
        outliers(spread.block_outliers),
        outliers(spread.launch_outliers),
        figures.percent(float(spread.between_launches)) if spread.between_launches else "",
        figures.significant(float(spread.effective_blocks)) if spread.effective_blocks else "",
    )


def outliers(counts: OutlierCounts) -> str:
    """Describe numbers of outliers: `12 of 240 (3 far out, 2 of them fast)`, where 3 and 2 are both parts of the 12."""
    severe_count = counts.low_severe + counts.high_severe
    fast_count = counts.low_severe + counts.low_mild  # a low time is a fast one
    outlier_count = severe_count + counts.low_mild + counts.high_mild
    details = []
    if severe_count:
        details.append(f"{severe_count} far out")
    if fast_count:
        details.append(f"{fast_count} of them fast")
    text = f"{outlier_count or 'none'} of {counts.of}"
    return f"{text} ({', '.join(details)})" if details else text

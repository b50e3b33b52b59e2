"""Build the tables below the verdict: slowest calls, first calls, work and memory, programs, spread of times. Pure.

Nothing is computed that the result does not state.
"""

from collections.abc import Iterable

from accelbench import figures
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.result import Bound, OutlierCounts, Payback, PhaseTime, Result, Spread
from accelbench.report import view
from accelbench.report.table import Table, TableColumn, make_table
from accelbench.stats.payback import NEGLIGIBLE_SECONDS, may_never_pay_back

FIRST_CALL = {"compile", "first-step"}


def tables(result: Result) -> tuple[Table, ...]:
    """Return all tables that are not empty."""
    all_tables = (tail(result), first_calls(result), work(result), programs(result), spread(result))
    return tuple(table for table in all_tables if table is not None)


def tail(result: Result) -> Table | None:
    """Return the table of the 99th percentile of calls, if there is one."""
    rows = [(row.name, row.verdict, row.speedup, row.interval, row.seconds) for row in view.tail_rows(result)]
    columns = (
        TableColumn("variant"),
        TableColumn("verdict", kind="verdict"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn("p99", number=True),
    )
    return make_table(f"The slowest 1 % of calls (p99, seconds per {result.unit})", columns, rows)


def first_calls(result: Result) -> Table | None:
    """Return a table of first calls: their times, and when they pay back."""
    answers = {comparison.variant: comparison.pays_back for comparison in result.comparisons if comparison.pays_back}
    if not answers and not any(variant.warm_phases for variant in result.variants):
        return None
    rows = []
    for variant in view.baseline_first(result):
        if not variant.phases:
            continue
        text = ""
        if answers and variant.name == result.case.baseline:
            text = "baseline"
        elif variant.name in answers:
            text = pays_back(answers[variant.name], result.unit)
        rows.append((variant.name, text, _first_call_seconds(variant.phases), _first_call_seconds(variant.warm_phases)))
    columns = (
        TableColumn("variant"),
        TableColumn("pays back", kind="sentence"),
        TableColumn("cold", number=True),
        TableColumn("warm cache", number=True),
    )
    return make_table("First call (compiling included)", columns, rows)


def pays_back(answer: Payback, unit: str) -> str:
    """Return when the first call pays back, as `after 1,240 steps (1,180 to 1,310)`."""
    if abs(float(answer.extra_seconds)) < NEGLIGIBLE_SECONDS:
        return "costs nothing more"
    if may_never_pay_back(answer.answer, answer.lower, answer.upper):
        return f"after {figures.count(answer.lower or 1, unit)} at the earliest, if ever"
    match answer.answer:
        case "never" | "at-once":
            return answer.answer.replace("-", " ")
        case _:
            return f"{answer.answer} {figures.count(answer.steps or 1, unit)}{_interval_of_steps(answer)}"


def _interval_of_steps(answer: Payback) -> str:
    """Return the interval as ` (1,180 to 1,310)`, if it has two different ends."""
    if answer.lower is None or answer.upper is None or answer.lower == answer.upper:
        return ""
    return f" ({figures.count(answer.lower)} to {figures.count(answer.upper)})"


def _first_call_seconds(phases: Iterable[PhaseTime]) -> str:
    """Return the median seconds of compiling plus the first step."""
    seconds = [float(time.median_seconds) for time in phases if time.phase in FIRST_CALL]
    return view.phase_seconds(sum(seconds)) if seconds else ""


def work(result: Result, *, brief: bool = False) -> Table | None:
    """Return a table of rates, shares of the device's limit, and memory.

    If `brief`, it has only the main columns.
    """
    return _numbers_table("Work and memory", "work", result, brief=brief)


def programs(result: Result) -> Table | None:
    """Return a table of the numbers that describe each variant's compiled program."""
    return _numbers_table("What was compiled", "program", result)


def _numbers_table(caption: str, table_name: str, result: Result, *, brief: bool = False) -> Table | None:
    """Return a table of the numbers of `MEASURED` that belong to `table_name`."""
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
    """Format a number of `MEASURED` with its unit; empty if it was not measured.

    `bound` is the limit of the device that a share refers to, as `compute`.
    """
    value, unit = numbers.value(field), MEASURED[field].unit
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
    """Return a table of outliers and of variance between launches."""
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
    """Return a variant's row of the table of spread."""
    return (
        name,
        str(spread.launch_outliers.of),
        outliers(spread.block_outliers),
        outliers(spread.launch_outliers),
        figures.percent(float(spread.between_launches)) if spread.between_launches else "",
        figures.significant(float(spread.effective_blocks)) if spread.effective_blocks else "",
    )


def outliers(counts: OutlierCounts) -> str:
    """Count outliers, as `12 of 240 (3 far out, 2 of them fast)`.

    Low outliers are fast, whether mild or severe.
    """
    severe_count = counts.low_severe + counts.high_severe
    fast_count = counts.low_severe + counts.low_mild
    outlier_count = severe_count + counts.low_mild + counts.high_mild
    details = []
    if severe_count:
        details.append(f"{severe_count} far out")
    if fast_count:
        details.append(f"{fast_count} of them fast")
    text = f"{outlier_count or 'none'} of {counts.of}"
    return f"{text} ({', '.join(details)})" if details else text

"""What stands below the verdict, table by table: the tail, the first call, what work costs, how times spread. Pure.

Nothing is computed here that the result does not state.
"""

from collections.abc import Iterable

from accelbench import figures
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.result import Bound, OutlierCounts, Payback, PhaseTime, Result, Spread
from accelbench.report import view
from accelbench.report.table import Table, TableColumn, filled
from accelbench.stats.payback import NOTHING_SECONDS, maybe_never

FIRST_CALL = {"compile", "first-step"}


def tables(result: Result) -> tuple[Table, ...]:
    """All of them that have something to say."""
    found = (tail(result), first_calls(result), work(result), programs(result), spread(result))
    return tuple(table for table in found if table is not None)


def tail(result: Result) -> Table | None:
    """The 99th percentile of the calls, where the protocol is latency; the verdict itself is by the median call."""
    rows = [(row.name, row.verdict, row.speedup, row.interval, row.seconds) for row in view.tail_rows(result)]
    columns = (
        TableColumn("variant"),
        TableColumn("verdict", kind="verdict"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn("p99", number=True),
    )
    return filled(f"The slowest 1 % of calls (p99, seconds per {result.unit})", columns, rows)


def first_calls(result: Result) -> Table | None:
    """What the first call takes, with empty caches and with those that a launch left, and when that pays back."""
    answers = {comparison.variant: comparison.pays_back for comparison in result.comparisons}
    if not any(variant.warm_phases for variant in result.variants) and not any(answers.values()):
        return None
    rows = []
    for variant in view.ordered(result):
        answer = answers.get(variant.name)
        # An empty cell would look as if it had been forgotten.
        says = "baseline" if variant.name == result.case.baseline else pays_back(answer, result.unit) if answer else ""
        if variant.phases:
            rows.append((variant.name, says, _first_call(variant.phases), _first_call(variant.warm_phases)))
    if not any(answers.values()):
        rows = [(row[0], "", *row[2:]) for row in rows]
    columns = (
        TableColumn("variant"),
        TableColumn("pays back", kind="sentence"),
        TableColumn("cold", number=True),
        TableColumn("warm cache", number=True),
    )
    return filled("First call (compiling included)", columns, rows)


def pays_back(answer: Payback, unit: str) -> str:
    """`after 1,240 steps (1,180 to 1,310)`, `never`, `at once`; of first calls that cost the same that they do."""
    if abs(float(answer.extra_seconds)) < NOTHING_SECONDS:
        return "costs nothing more"
    if maybe_never(answer.answer, answer.lower, answer.upper):
        return f"after {figures.count(answer.lower or 1, unit)} at the earliest, if ever"
    match answer.answer:
        case "never" | "at-once":
            return answer.answer.replace("-", " ")
        case _:
            return f"{answer.answer} {figures.count(answer.steps or 1, unit)}{_range(answer)}"


def _range(answer: Payback) -> str:
    if answer.lower is None or answer.upper is None or answer.lower == answer.upper:
        return ""
    return f" ({figures.count(answer.lower)} to {figures.count(answer.upper)})"


def _first_call(phases: Iterable[PhaseTime]) -> str:
    seconds = [float(time.median_seconds) for time in phases if time.phase in FIRST_CALL]
    return view.phase_seconds(sum(seconds)) if seconds else ""


def work(result: Result, *, whole: bool = True) -> Table | None:
    """Work in a second, its share of what the device can do, memory; the `whole` of it has compiling and energy too."""
    return _numbers("Work and memory", "work", result, whole=whole)


def programs(result: Result) -> Table | None:
    """What was compiled for a call, as far as anybody could count it."""
    return _numbers("What was compiled", "program", result)


def _numbers(caption: str, table: str, result: Result, *, whole: bool = True) -> Table | None:
    """A column for each measured number that belongs there."""
    shown = {field: each for field, each in MEASURED.items() if each.table == table and (whole or each.brief)}
    currency = result.case.accelerator.currency
    columns = [
        TableColumn(each.heading.format(unit=result.unit, currency=currency), number=True) for each in shown.values()
    ]
    rows = (
        (variant.name, *(number(variant.numbers, field, variant.bound) for field in shown))
        for variant in view.ordered(result)
    )
    return filled(caption, (TableColumn("variant"), *columns), rows)


def number(numbers: Numbers, field: str, bound: Bound | None = None) -> str:
    """A measured number in its unit, empty where there is none; a share is one of what `bound` names."""
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
    """Outliers, all of which are kept, and where the variance comes from."""
    columns = (
        TableColumn("variant"),
        TableColumn("launches", number=True),
        TableColumn("outliers among blocks"),
        TableColumn("among launches"),
        TableColumn("variance between launches", number=True),
        TableColumn("effective independent blocks per launch", number=True),
    )
    rows = (_spread_row(variant.name, variant.spread) for variant in view.ordered(result) if variant.spread)
    return filled("How times spread (outliers by Tukey's fences, kept in all statistics)", columns, rows)


def _spread_row(name: str, found: Spread) -> tuple[str, ...]:
    return (
        name,
        str(found.launch_outliers.of),
        outliers(found.block_outliers),
        outliers(found.launch_outliers),
        figures.percent(float(found.between_launches)) if found.between_launches else "",
        figures.significant(float(found.effective_blocks)) if found.effective_blocks else "",
    )


def outliers(counts: OutlierCounts) -> str:
    """`12 of 240 (3 far out, 2 of them fast)`; `none of 240`."""
    severe, low = counts.low_severe + counts.high_severe, counts.low_severe + counts.low_mild
    beyond = severe + counts.low_mild + counts.high_mild
    parts = [f"{severe} far out"] if severe else []
    parts += [f"{low} of them fast"] if low else []
    return f"{beyond or 'none'} of {counts.of}" + (f" ({', '.join(parts)})" if parts else "")

"""What stands below the verdict, table by table: the tail, the first call, what work costs, how times spread. Pure.

Nothing is computed here that the result does not state.
"""

from collections.abc import Iterable

from accelbench import figures
from accelbench.api.result import Cost, Executable, OutlierCounts, PaysBack, PhaseTime, Result, Spread, VariantResult
from accelbench.report import view
from accelbench.report.table import Column, Table, filled
from accelbench.stats.amortisation import NOTHING_SECONDS

FIRST_CALL = {"compile", "first-step"}


def tables(result: Result) -> tuple[Table, ...]:
    """All of them that have something to say."""
    found = (tail(result), first_calls(result), costs(result), programs(result), spread(result))
    return tuple(table for table in found if table is not None)


def tail(result: Result) -> Table | None:
    """The 99th percentile of the calls, where the protocol is latency; the verdict itself is by the median call."""
    rows = [(row.name, row.verdict, row.speedup, row.interval, row.seconds) for row in view.tail_rows(result)]
    columns = (
        Column("variant"),
        Column("verdict", kind="verdict"),
        Column("speedup", number=True),
        Column("interval", kind="nowrap"),
        Column("p99", number=True),
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
        Column("variant"),
        Column("pays back", kind="sentence"),
        Column("cold", number=True),
        Column("warm cache", number=True),
    )
    return filled("First call (compiling included)", columns, rows)


def pays_back(answer: PaysBack, unit: str) -> str:
    """`after 1,240 steps (1,180 to 1,310)`, `never`, `at once`; of first calls that cost the same that they do."""
    if abs(float(answer.extra_seconds)) < NOTHING_SECONDS:
        return "costs nothing more"
    match answer.answer:
        case "never" | "at-once":
            return answer.answer.replace("-", " ")
        case "after" if answer.upper is None and answer.lower is not None:
            return f"after {figures.count(answer.lower, unit)} at the earliest, if ever"
        case _:
            return f"{answer.answer} {figures.count(answer.steps or 1, unit)}{_range(answer)}"


def _range(answer: PaysBack) -> str:
    if answer.lower is None or answer.upper is None or answer.lower == answer.upper:
        return ""
    return f" ({figures.count(answer.lower)} to {figures.count(answer.upper)})"


def _first_call(phases: Iterable[PhaseTime]) -> str:
    seconds = [float(time.median_seconds) for time in phases if time.phase in FIRST_CALL]
    return view.phase_seconds(sum(seconds)) if seconds else ""


def costs(result: Result, *, whole: bool = True) -> Table | None:
    """Work in a second, its share of what the device can do, memory; the `whole` of it has compiling and energy too."""
    columns = (
        Column("variant"),
        Column("rate", number=True),
        Column("bandwidth", number=True),
        Column("share of limit", kind="nowrap"),
        Column("memory", number=True),
        Column("while compiling", number=True),
        Column("reserved", number=True),
        Column(f"energy per {result.unit}", number=True),
    )
    shown = len(columns) if whole else 5
    rows = (_cost_row(variant)[:shown] for variant in view.ordered(result))
    return filled("Work and memory", columns[:shown], rows)


def _cost_row(variant: VariantResult) -> tuple[str, ...]:
    cost = variant.cost or Cost()
    return (
        variant.name,
        _quantity(cost.flops_per_second or variant.flops_per_second, "FLOP/s"),
        _quantity(cost.bytes_per_second, "B/s"),
        f"{figures.percent(float(cost.share))} {cost.bound}" if cost.share and cost.bound else "",
        _quantity(variant.peak_memory_bytes, "B"),
        _quantity(variant.compile_peak_memory_bytes, "B"),
        _quantity(variant.reserved_memory_bytes, "B"),
        _quantity(cost.joules_per_unit, "J"),
    )


def _quantity(value: str | float | None, unit: str) -> str:
    return figures.quantity(float(value), unit) if value else ""


def programs(result: Result) -> Table | None:
    """What was compiled for a call, as far as anybody could count it."""
    columns = (
        Column("variant"),
        Column("kernels in a call", number=True),
        Column("matrix products", number=True),
        Column("operations given to the compiler", number=True),
        Column("temporary", number=True),
        Column("outputs that reuse input buffers", number=True),
    )
    rows = (_program_row(variant) for variant in view.ordered(result))
    return filled("What was compiled", columns, rows)


def _program_row(variant: VariantResult) -> tuple[str, ...]:
    known = variant.executable or Executable()
    counts = (known.kernels_per_call, variant.products_per_call, known.program_size)
    return (
        variant.name,
        *("" if count is None else f"{count:,}" for count in counts),
        *("none" if size == 0 else _quantity(size, "B") for size in (known.temporary_bytes, known.aliased_bytes)),
    )


def spread(result: Result) -> Table | None:
    """Outliers, all of which are kept, and where the variance comes from."""
    columns = (
        Column("variant"),
        Column("launches", number=True),
        Column("outliers among blocks"),
        Column("among launches"),
        Column("variance between launches", number=True),
        Column("effective independent blocks per launch", number=True),
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
    """`12 of 240 (3 severe, 2 low)`; `none of 240`."""
    severe, low = counts.low_severe + counts.high_severe, counts.low_severe + counts.low_mild
    beyond = severe + counts.low_mild + counts.high_mild
    parts = [f"{severe} severe"] if severe else []
    parts += [f"{low} low"] if low else []
    return f"{beyond or 'none'} of {counts.of}" + (f" ({', '.join(parts)})" if parts else "")

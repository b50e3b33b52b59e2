"""Show a comparison of runs: findings, a table, differences, change points. Pure.

Times are compared or, for the quantity `relative`, times divided by the baseline's of the same round. Such a ratio is
shown by its inverse, the speedup over the baseline.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from accelbench import figures
from accelbench.history import comparability
from accelbench.history.change_points import SeriesChange
from accelbench.history.comparability import Difference
from accelbench.history.runs import RunComparison, VariantChange
from accelbench.history.sample import Sample, short_label
from accelbench.report import terminal
from accelbench.report.table import Table, TableColumn, make_table

MAXIMUM_CELL = 60
"""Maximum characters of a value in the table of differences."""
MAXIMUM_IN_SENTENCE = 30
"""Maximum characters of a value in a sentence; longer values are left out."""
SUFFIXES = {"p99": " p99", "relative": ", relative"}
"""Text after a variant's name in the table, by quantity; the usual quantities, `median` or `p50`, need none."""
ONE_RUN = (
    "a machine drifts from run to run, and rows in seconds do not allow for that: their intervals are too narrow. The "
    "relative rows do, and so do series of runs (docs/concepts/verdict.md)"
)


def verdict_table(comparison: RunComparison) -> Table | None:
    """Return the table of verdicts on how each variant changed between two runs; None if nothing was compared."""
    cases = [change.case for change in comparison.changes]
    columns = (
        TableColumn("variant"),
        TableColumn("case"),
        TableColumn("verdict", kind="verdict"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn(comparison.before.name, number=True),
        TableColumn(comparison.after.name, number=True),
    )
    digits_of_times, digits_of_speedups = _digits_of_times(comparison), _digits_of_speedups(comparison)
    rows = []
    for change in comparison.changes:
        interval = change.interval
        digits = digits_of_speedups if change.quantity == "relative" else digits_of_times
        rows.append(
            (
                f"{change.variant}{SUFFIXES.get(change.quantity, '')}",
                short_label(change.case, cases),
                _verdict_text(change),
                figures.speedup(interval.estimate) if interval else "",
                figures.interval(interval.lower, interval.upper) if interval else "",
                _format_sample(change, change.before, digits),
                _format_sample(change, change.after, digits),
            )
        )
    return make_table(f"Each variant in {comparison.before.name} and in {comparison.after.name}", columns, rows)


def _verdict_text(change: VariantChange) -> str:
    """Return the verdict, or `invalid: CHECK` with the failed checks, or `no verdict`."""
    if change.verdict is not None:
        return change.verdict
    return f"invalid: {', '.join(change.invalid)}" if change.invalid else "no verdict"


def _format_sample(change: VariantChange, sample: Sample, digits: int) -> str:
    """Format a variant's time before or after the change or, for `relative`, its speedup over the baseline.

    The text is empty without times, and without an interval: the row then shows no speedup of the change either.
    """
    if not change.interval or not sample.seconds:
        return ""
    if change.quantity == "relative":
        return figures.speedup(_speedup_over_baseline(sample.seconds), digits)
    return figures.seconds(sample.seconds, digits)


def _speedup_over_baseline(relative_seconds: float) -> float:
    """Return a variant's speedup over its baseline: the inverse of its time divided by the baseline's time."""
    return 1 / relative_seconds


def _digits_of_times(comparison: RunComparison) -> int:
    """Return how many digits of times to print, so that dividing the two times of a row gives its speedup."""
    changes = [change for change in comparison.changes if change.quantity != "relative"]
    return figures.digits_that_agree(_before_after_and_ratio(changes))


def _digits_of_speedups(comparison: RunComparison) -> int:
    """Return how many digits of speedups to print: in each `relative` row, the two speedups must give the ratio."""
    changes = [change for change in comparison.changes if change.quantity == "relative"]
    quotients = (
        # The later speedup is the dividend: a ratio above 1 says that the variant has become faster.
        (_speedup_over_baseline(after), _speedup_over_baseline(before), ratio)
        for before, after, ratio in _before_after_and_ratio(changes)
    )
    return figures.digits_that_agree(quotients, figures.speedup)


def _before_after_and_ratio(changes: Iterable[VariantChange]) -> Iterator[tuple[float, float, float]]:
    """Yield (seconds before, seconds after, estimate of before / after) for each variant that has an interval."""
    for change in changes:
        before_seconds, after_seconds = change.before.seconds, change.after.seconds
        if change.interval and before_seconds and after_seconds:
            yield before_seconds, after_seconds, change.interval.estimate


def sample_sizes(comparison: RunComparison) -> str:
    """Return how many launches or results the intervals are computed from: `from 6 launches in A and 8 launches in B`.

    If a side has several results (a series), the intervals are computed from results instead of launches. If these
    numbers differ between variants, return `VARIANTS from ... and ...` for each pair of numbers. The text is empty
    without intervals.
    """
    variants_by_sizes: dict[str, list[str]] = {}
    for change in comparison.changes:
        if change.interval is not None:
            is_series = len(change.before.logarithms_by_result) > 1 or len(change.after.logarithms_by_result) > 1
            before = _sample_size(change.before, is_series=is_series)
            after = _sample_size(change.after, is_series=is_series)
            sizes = f"{before} in {comparison.before.name} and {after} in {comparison.after.name}"
            variants_by_sizes.setdefault(sizes, []).append(change.variant)
    if len(variants_by_sizes) == 1:
        return f"from {next(iter(variants_by_sizes))}"
    return "; ".join(f"{', '.join(dict.fromkeys(names))} from {sizes}" for sizes, names in variants_by_sizes.items())


def _sample_size(sample: Sample, *, is_series: bool) -> str:
    """Count what the interval is computed from: `6 launches` or, for a series of results, `6 results`."""
    if is_series:
        results = len(sample.logarithms_by_result)
        return "1 result" if results == 1 else f"{results} results"
    launches = len(sample.launch_logarithms)
    return "1 launch" if launches == 1 else f"{launches} launches"


def differences_table(comparison: RunComparison) -> Table | None:
    """Return the table of settings and fingerprint entries that differ between two runs; None if none differs."""
    headings = ("differs", comparison.before.name, comparison.after.name, "group", "effect")
    columns = tuple(map(TableColumn, headings))
    rows = [
        (
            difference.name,
            *map(_format_values, difference.formatted),
            difference.group or "",
            _effect(difference, comparison),
        )
        for difference in comparison.differences
    ]
    return make_table("What differs", columns, rows)


def _format_values(values: Sequence[str]) -> str:
    """Join the values of a setting for a table's cell, cut to `MAXIMUM_CELL` characters."""
    text = " | ".join(values) or "not recorded"
    return text if len(text) <= MAXIMUM_CELL else f"{text[: MAXIMUM_CELL - 1]}…"


def _effect(difference: Difference, comparison: RunComparison) -> str:
    """Return `refuses` if the difference prevents the comparison, `allowed` if the user permits it, else `none`."""
    if difference in comparison.refused:
        return "refuses"
    return "allowed" if difference.matters else "none"


def sentences(comparison: RunComparison) -> tuple[str, ...]:
    """Return a sentence for each compared variant, or sentences that say why nothing is compared."""
    if comparison.refused:
        return _describe_refusal(comparison)
    if comparison.before.results == comparison.after.results:
        return (
            f"{comparison.before.name} and {comparison.after.name} are the same results: there is nothing to compare.",
        )
    if not comparison.changes:
        return (f"{comparison.before.name} and {comparison.after.name} have no variant of a case in common.",)
    return tuple(change.sentence for change in comparison.changes)


def _describe_refusal(comparison: RunComparison) -> tuple[str, ...]:
    """Return sentences that say which differences prevent the comparison, and which option allows them."""
    never_allowed = [difference.name for difference in comparison.refused if difference.group in comparability.NEVER]
    groups: dict[str, list[Difference]] = {}
    for difference in comparison.refused:
        groups.setdefault(difference.group or difference.name, []).append(difference)
    descriptions = ", ".join(_describe_group(name, differences) for name, differences in groups.items())
    lines = [f"Not compared, because these conditions differ: {descriptions}."]
    # Advise an option only if it helps: a difference that is never allowed would still prevent the comparison.
    if never_allowed:
        names = " and ".join(never_allowed)
        lines.append(f"Times that differ in {names} are not the same quantity, and are never compared.")
    elif groups:
        lines.append(f"To compare anyway, add {' '.join(f'--allow-different {name}' for name in groups)}")
    return tuple(lines)


def _describe_group(name: str, differences: Sequence[Difference]) -> str:
    """Describe the differences of a group of settings, such as `limits`: `limits (cpusUsed: 2 against 1)`."""
    entries = "; ".join(filter(None, (_describe_entry(difference, group=name) for difference in differences)))
    return f"{name} ({entries})" if entries else name


def _describe_entry(difference: Difference, *, group: str) -> str:
    """Describe a difference inside its group: `cpusUsed: 2 against 1`, without the name if it is the group's.

    The values are left out unless each side has a single, short one.
    """
    before, after = difference.formatted
    name = "" if difference.name == group else difference.name
    values = ""
    if len(before) == len(after) == 1 and max(len(before[0]), len(after[0])) <= MAXIMUM_IN_SENTENCE:
        values = f"{before[0]} against {after[0]}"
    return ": ".join(filter(None, (name, values)))


class ComparisonReport:
    """Show a comparison of runs on a terminal of 80 columns or more."""

    def __init__(self, comparison: RunComparison, series_changes: Iterable[SeriesChange], notes: Iterable[str]) -> None:
        """Keep what the report shows; `series_changes` are the change points of each side's results over time."""
        self.comparison = comparison
        self.series_changes = tuple(series_changes)
        self.notes = tuple(notes)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines and tables of the report for rich to print."""
        del console, options
        style = terminal.BAD if self.comparison.refused else ""
        for side in (self.comparison.before, self.comparison.after):
            yield Text.assemble((side.name, "bold"), f": {side.path}")
        yield Text()
        yield from (Text(sentence, style=style) for sentence in sentences(self.comparison))
        for table in (verdict_table(self.comparison), differences_table(self.comparison)):
            if table is not None:
                yield Padding(terminal.FittedTable(table), (1, 0, 0, 0))
        if sizes := sample_sizes(self.comparison):
            yield Text(f"\n{sizes}", style="dim")
        if self.series_changes or self.notes or self.comparison.unmatched:
            yield Text()
        yield from (Text(change.sentence) for change in self.series_changes)
        yield from (Text(f"note: {note}", style="dim") for note in (*self.notes, *self.comparison.unmatched))

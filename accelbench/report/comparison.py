"""Show a comparison of runs: findings, a table, differences, change points. Pure."""

from collections.abc import Iterable, Mapping, Sequence

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
from accelbench.report.table import Table, TableColumn, filled

MAXIMUM_CELL = 60
"""Most characters of a value in the table of differences."""
MAXIMUM_IN_SENTENCE = 30
"""Most characters of a value in a sentence; longer values are left out."""
SUFFIXES = {"p99": " p99", "relative": ", relative"}
ONE_RUN = (
    "a machine drifts from run to run, and rows in seconds do not allow for that: their intervals are too narrow. The "
    "relative rows do, and so do series of runs (docs/concepts/verdict.md)"
)


def verdicts(comparison: RunComparison) -> Table | None:
    """Return the table of findings, a row for each variant of each case."""
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
    digits = {relative: _digits(comparison, relative=relative) for relative in (False, True)}
    rows = [
        (
            f"{change.variant}{SUFFIXES.get(change.quantity, '')}",
            short_label(change.case, cases),
            change.verdict or (f"invalid: {', '.join(change.invalid)}" if change.invalid else "no verdict"),
            figures.speedup(change.interval.estimate) if change.interval else "",
            figures.interval(change.interval.lower, change.interval.upper) if change.interval else "",
            _seconds(change, change.before, digits),
            _seconds(change, change.after, digits),
        )
        for change in comparison.changes
    ]
    return filled(f"Each variant in {comparison.before.name} and in {comparison.after.name}", columns, rows)


def _seconds(change: VariantChange, side: Sample, digits: Mapping[bool, int]) -> str:
    """Return a side's time or, if `seconds` are a ratio, its speedup over its baseline; empty without an interval.

    `digits` has the number of digits by True (relative) and False.
    """
    if not change.interval or not side.seconds:
        return ""
    if change.quantity == "relative":
        return figures.speedup(1 / side.seconds, digits[True])
    return figures.seconds(side.seconds, digits[False])


def _digits(comparison: RunComparison, *, relative: bool) -> int:
    """Return the digits that times (`relative`: speedups) need so that their ratios are the speedups of the table."""
    pairs = [
        (change.before.seconds, change.after.seconds, change.interval.estimate)
        for change in comparison.changes
        if change.interval
        and change.before.seconds
        and change.after.seconds
        and (change.quantity == "relative") is relative
    ]
    if relative:
        return figures.digits_that_agree(
            ((1 / after, 1 / before, speedup) for before, after, speedup in pairs), figures.speedup
        )
    return figures.digits_that_agree(pairs)


def basis(comparison: RunComparison) -> str:
    """Return the samples of the intervals, `from 6 launches in A and 8 launches in B`; by variant if they differ."""
    variants_by_basis: dict[str, list[str]] = {}
    for change in comparison.changes:
        if change.interval is not None:
            series = len(change.before.logs) + len(change.after.logs) > 2  # noqa: PLR2004 - more than one a side
            numbers = [len(side.logs if series else side.launches) for side in (change.before, change.after)]
            unit = "result" if series else "launch"
            before, after = (f"{number} {unit}{'' if number == 1 else 's' if series else 'es'}" for number in numbers)
            words = f"{before} in {comparison.before.name} and {after} in {comparison.after.name}"
            variants_by_basis.setdefault(words, []).append(change.variant)
    if len(variants_by_basis) == 1:
        return f"from {next(iter(variants_by_basis))}"
    return "; ".join(f"{', '.join(dict.fromkeys(names))} from {words}" for words, names in variants_by_basis.items())


def differing(comparison: RunComparison) -> Table | None:
    """Return the table of differences, those that matter first."""
    heads = ("differs", comparison.before.name, comparison.after.name, "group", "effect")
    columns = tuple(map(TableColumn, heads))
    rows = [
        (difference.name, *map(_values, difference.formatted), difference.group or "", _effect(difference, comparison))
        for difference in comparison.differences
    ]
    return filled("What differs", columns, rows)


def _values(values: Sequence[str]) -> str:
    """Return the values of one side in a cell; `not recorded` if there are none."""
    text = " | ".join(values) or "not recorded"
    return text if len(text) <= MAXIMUM_CELL else f"{text[: MAXIMUM_CELL - 1]}…"


def _effect(difference: Difference, comparison: RunComparison) -> str:
    """Return `refuses`, `allowed` (it matters, and the user allowed it) or `none`."""
    if difference in comparison.refused:
        return "refuses"
    return "allowed" if difference.matters else "none"


def sentences(comparison: RunComparison) -> tuple[str, ...]:
    """Return the findings, or why there are none."""
    if comparison.refused:
        return refusal(comparison)
    if comparison.before.results == comparison.after.results:
        return (
            f"{comparison.before.name} and {comparison.after.name} are the same results: there is nothing to compare.",
        )
    if not comparison.changes:
        return (f"{comparison.before.name} and {comparison.after.name} have no variant of a case in common.",)
    return tuple(change.sentence for change in comparison.changes)


def refusal(comparison: RunComparison) -> tuple[str, ...]:
    """Return which differences refuse the comparison, and how to compare anyway."""
    never = [difference.name for difference in comparison.refused if difference.group in comparability.NEVER]
    groups: dict[str, list[Difference]] = {}
    for difference in comparison.refused:
        groups.setdefault(difference.group or difference.name, []).append(difference)
    others = [name for name in groups if name not in comparability.NEVER]
    descriptions = ", ".join(_describe_group(name, differences) for name, differences in groups.items())
    lines = [f"Not compared, because what matters differs: {descriptions}."]
    if never:
        lines.append(f"Times that differ in {' and '.join(never)} are not the same quantity, and are never compared.")
    elif others:
        lines.append(f"To compare anyway, add {' '.join(f'--allow-different {name}' for name in others)}")
    return tuple(lines)


def _describe_group(name: str, differences: Sequence[Difference]) -> str:
    """Return a group with its differences: `limits (cpusUsed: 2 against 1)`."""
    entries = "; ".join(filter(None, (_describe_entry(difference, group=name) for difference in differences)))
    return f"{name} ({entries})" if entries else name


def _describe_entry(difference: Difference, *, group: str) -> str:
    """Return `cpusUsed: 2 against 1`, without a name that repeats the group's and without several or long values."""
    before, after = difference.formatted
    values = (*before, *after)
    fits = len(before) == len(after) == 1 and max(map(len, values)) <= MAXIMUM_IN_SENTENCE
    name = "" if difference.name == group else difference.name
    return ": ".join(filter(None, (name, " against ".join(values) if fits else "")))


class ComparisonReport:
    """Show a comparison of runs on a terminal of 80 columns or more."""

    def __init__(self, comparison: RunComparison, changes: Iterable[SeriesChange], notes: Iterable[str]) -> None:
        """Show `changes`, the change points of series, and `notes` at the end."""
        self.comparison = comparison
        self.changes = tuple(changes)
        self.notes = tuple(notes)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield findings, table, differences, change points and notes."""
        del console, options
        style = terminal.BAD if self.comparison.refused else ""
        for side in (self.comparison.before, self.comparison.after):
            yield Text.assemble((side.name, "bold"), f": {side.path}")
        yield Text()
        yield from (Text(sentence, style=style) for sentence in sentences(self.comparison))
        for table in (verdicts(self.comparison), differing(self.comparison)):
            if table is not None:
                yield Padding(terminal.FittedTable(table), (1, 0, 0, 0))
        if words := basis(self.comparison):
            yield Text(f"\n{words}", style="dim")
        if self.changes or self.notes or self.comparison.unmatched:
            yield Text()
        yield from (Text(change.sentence) for change in self.changes)
        yield from (Text(f"note: {note}", style="dim") for note in (*self.notes, *self.comparison.unmatched))

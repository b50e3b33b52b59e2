"""What `accelbench compare` shows: findings, a table, what differs, steps. From values to tables and lines; pure."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from accelbench import figures
from accelbench.history import comparability
from accelbench.history.change_points import SeriesStep
from accelbench.history.comparability import Difference
from accelbench.history.runs import Compared, RunComparison
from accelbench.history.sample import Sample, told_apart
from accelbench.report import terminal
from accelbench.report.table import Table, TableColumn, filled

SENTENCES = 3
VALUE = 60
SHORT = 30
"""Characters of a value that a sentence has room for."""
SUFFIXES = {"p99": " p99", "relative": ", relative"}
ONE_RUN = (
    "a machine drifts from run to run, and rows in seconds do not allow for that: their intervals are too narrow. The "
    "relative rows do, and so do series of runs (docs/concepts/verdict.md)"
)


def verdicts(found: RunComparison) -> Table | None:
    """A row for each variant of each case."""
    cases = [each.case for each in found.compared]
    columns = (
        TableColumn("variant"),
        TableColumn("case"),
        TableColumn("verdict", kind="verdict"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn(found.before.name, number=True),
        TableColumn(found.after.name, number=True),
    )
    digits = {relative: _digits(found, relative=relative) for relative in (False, True)}
    rows = [
        (
            f"{each.variant}{SUFFIXES.get(each.quantity, '')}",
            told_apart(each.case, cases),
            each.verdict or (f"invalid: {', '.join(each.invalid)}" if each.invalid else "no verdict"),
            figures.speedup(each.interval.estimate) if each.interval else "",
            figures.interval(each.interval.lower, each.interval.upper) if each.interval else "",
            _seconds(each, each.before, digits),
            _seconds(each, each.after, digits),
        )
        for each in found.compared
    ]
    return filled(f"Each variant in {found.before.name} and in {found.after.name}", columns, rows)


def _seconds(each: Compared, side: Sample, digits: Mapping[bool, int]) -> str:
    """Nothing beside an invalid side: its time means nothing. Relative seconds are shown as the speedup they are."""
    if not each.interval or not side.seconds:
        return ""
    if each.quantity == "relative":
        return figures.speedup(1 / side.seconds, digits[True])
    return figures.seconds(side.seconds, digits[False])


def _digits(found: RunComparison, *, relative: bool) -> int:
    """Enough for those shown to divide to the speedups shown."""
    pairs = [
        (each.before.seconds, each.after.seconds, each.interval.estimate)
        for each in found.compared
        if each.interval and each.before.seconds and each.after.seconds and (each.quantity == "relative") is relative
    ]
    if relative:
        return figures.digits_that_agree(((1 / after, 1 / before, of) for before, after, of in pairs), figures.speedup)
    return figures.digits_that_agree(pairs)


def basis(found: RunComparison) -> str:
    """What the intervals come from: `6 launches in A and 8 launches in B`; of several kinds, each with its variant."""
    said: dict[str, list[str]] = {}
    for each in found.compared:
        if each.interval is not None:
            series = len(each.before.logs) + len(each.after.logs) > 2  # noqa: PLR2004 - more than one a side
            numbers = [len(side.logs if series else side.launches) for side in (each.before, each.after)]
            kind = "result" if series else "launch"
            before, after = (f"{number} {kind}{'' if number == 1 else 's' if series else 'es'}" for number in numbers)
            words = f"{before} in {found.before.name} and {after} in {found.after.name}"
            said.setdefault(words, []).append(each.variant)
    if len(said) == 1:
        return f"from {next(iter(said))}"
    return "; ".join(f"{', '.join(dict.fromkeys(variants))} from {words}" for words, variants in said.items())


def differing(found: RunComparison) -> Table | None:
    """What is not alike, what matters first."""
    heads = ("differs", found.before.name, found.after.name, "group", "effect")
    columns = tuple(map(TableColumn, heads))
    rows = [
        (each.name, *map(_values, each.formatted), each.group or "", _effect(each, found)) for each in found.differences
    ]
    return filled("What differs", columns, rows)


def _values(values: Sequence[str]) -> str:
    said = " | ".join(values) or "not recorded"
    return said if len(said) <= VALUE else f"{said[: VALUE - 1]}…"


def _effect(each: Difference, found: RunComparison) -> str:
    if each in found.refused:
        return "refuses"
    return "allowed" if each.matters else "none"


def sentences(found: RunComparison) -> tuple[str, ...]:
    """The findings, or why there is none."""
    if found.refused:
        return refusal(found)
    if found.before.results == found.after.results:
        return (f"{found.before.name} and {found.after.name} are the same results: there is nothing to compare.",)
    if not found.compared:
        return (f"{found.before.name} and {found.after.name} have no variant of a case in common.",)
    return tuple(each.sentence for each in found.compared)


def refusal(found: RunComparison) -> tuple[str, ...]:
    """What must be alike and is not, and how to insist."""
    never = [each.name for each in found.refused if each.group in comparability.NEVER]
    groups: dict[str, list[Difference]] = {}
    for each in found.refused:
        groups.setdefault(each.group or each.name, []).append(each)
    others = [name for name in groups if name not in comparability.NEVER]
    what = ", ".join(_group(name, of_it) for name, of_it in groups.items())
    said = [f"Not compared, because what matters differs: {what}."]
    if never:
        said.append(f"Times that differ in {' and '.join(never)} are not the same quantity, and are never compared.")
    elif others:
        said.append(f"To compare anyway, add {' '.join(f'--allow-different {name}' for name in others)}")
    return tuple(said)


def _group(name: str, differences: Sequence[Difference]) -> str:
    """What differs of a group, under the name that `--allow-different` takes: `limits (cpusUsed: 2 against 1)`."""
    entries = "; ".join(filter(None, (_entry(each, group=name) for each in differences)))
    return f"{name} ({entries})" if entries else name


def _entry(each: Difference, *, group: str) -> str:
    """An entry with both values where a sentence has room for them; no name where it is that of the group."""
    before, after = each.formatted
    values = (*before, *after)
    told = len(each.before) == len(each.after) == 1 and max(map(len, values)) <= SHORT
    named = "" if each.name == group else each.name
    return ": ".join(filter(None, (named, " against ".join(values) if told else "")))


class ComparedReport:
    """The comparison for the terminal, readable from 80 columns on."""

    def __init__(self, found: RunComparison, steps: Iterable[SeriesStep], notes: Iterable[str]) -> None:
        """`notes` stand at the end."""
        self.found = found
        self.steps = tuple(steps)
        self.notes = tuple(notes)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Findings, table, differences, steps, notes."""
        del console, options
        style = terminal.BAD if self.found.refused else ""
        for side in (self.found.before, self.found.after):
            yield Text.assemble((side.name, "bold"), f": {side.path}")
        yield Text()
        yield from (Text(sentence, style=style) for sentence in sentences(self.found))
        for table in (verdicts(self.found), differing(self.found)):
            if table is not None:
                yield Padding(terminal.Fitted(table), (1, 0, 0, 0))
        if words := basis(self.found):
            yield Text(f"\n{words}", style="dim")
        if self.steps or self.notes or self.found.alone:
            yield Text()
        yield from (Text(step.sentence) for step in self.steps)
        yield from (Text(f"note: {note}", style="dim") for note in (*self.notes, *self.found.alone))

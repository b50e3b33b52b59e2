"""What `accelbench check` says of a result: of each variant what passed, what failed and what is untested. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.result import Check, CheckOutcome, Result
from accelbench.local.exits import Exit
from accelbench.report.details import number_text
from accelbench.report.terminal import MARKS
from accelbench.report.view import title

STYLES = {outcome: style for outcome, (_, style) in MARKS.items()}


@dataclass(frozen=True)
class Checked:
    """What was found out about one variant."""

    variant: str
    failure: str
    """Why it did not run to its end; empty: it did."""
    checks: tuple[Check, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def of(self, outcome: CheckOutcome) -> tuple[Check, ...]:
        """The checks with that outcome."""
        return tuple(check for check in self.checks if check.outcome == outcome)

    @property
    def failed(self) -> bool:
        """Something is wrong with it."""
        return bool(self.failure or self.of("failed"))


def checked(result: Result) -> tuple[Checked, ...]:
    """Every variant of the result; one that failed has passed nothing."""
    found = []
    for variant in result.variants:
        if failure := variant.failure:
            phase = f" in phase {failure.phase}" if failure.phase else ""
            found.append(Checked(variant.name, f"{failure.reason}{phase}: {failure.message}"))
        else:
            checks = tuple(each for each in result.certificate.checks if each.variant in {variant.name, None})
            found.append(Checked(variant.name, "", checks, variant.numbers))
    return tuple(found)


def exit_for(variants: Sequence[Checked]) -> Exit:
    """What a script is told; what could not be checked is not wrong."""
    codes = [Exit.VARIANT_FAILED for each in variants if each.failure]
    codes += [Exit.INVALID_MEASUREMENT for each in variants if each.of("failed")]
    return Exit.worst(codes)


def conclusion(variants: Sequence[Checked]) -> str:
    """The finding in a sentence."""
    if failed := [each.variant for each in variants if each.failed]:
        return f"Failed: {', '.join(failed)}."
    if any(each.of("untested") or not each.checks for each in variants):
        return "Nothing failed, but not everything could be checked."
    return "Every check passed."


def report(result: Result) -> RenderableType:
    """The case for the terminal."""
    variants = checked(result)
    parts: list[RenderableType] = [Text(title(result.case), style="bold")]
    for each in variants:
        parts += [Text(), Text(f"{each.variant}: {_counts(each)}"), Padding(_table(each), (0, 0, 0, 2))]
    if result.notes:
        parts += [Text(), *(Text(f"note: {note}", style="dim") for note in result.notes)]
    failed = any(each.failed for each in variants)
    parts += [Text(), Text(conclusion(variants), style=STYLES["failed"] if failed else "bold")]
    return Group(*parts)


def as_json(result: Result) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "case": result.case.name,
        "notes": list(result.notes),
        "variants": [
            {
                "name": each.variant,
                "failure": each.failure or None,
                "checks": [
                    {"name": check.name, "outcome": check.outcome, "reading": check.reading} for check in each.checks
                ],
                "compiled": _compiled(each.numbers) or None,
            }
            for each in checked(result)
        ],
    }


def _counts(variant: Checked) -> str:
    """`10 passed, 1 failed, 1 untested`."""
    if variant.failure:
        return "failed"
    counted = [f"{len(found)} {outcome}" for outcome in get_args(CheckOutcome) if (found := variant.of(outcome))]
    return ", ".join(counted) or "nothing checked"


def _table(variant: Checked) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for outcome, name, what in _rows(variant):
        table.add_row(Text(name, style=STYLES[outcome]), Text(what))
    return table


def _rows(variant: Checked) -> Iterator[tuple[CheckOutcome, str, str]]:
    if variant.failure:
        yield "failed", "failed", variant.failure
        return
    for outcome in ("failed", "untested"):
        yield from ((check.outcome, check.outcome, _line(check)) for check in variant.of(outcome))
    if passed := variant.of("passed"):
        yield "passed", "passed", ", ".join(check.name for check in passed)
    if compiled := _compiled(variant.numbers):
        told = (f"{MEASURED[field].heading}: {number_text(variant.numbers, field)}" for field in compiled)
        yield "passed", "compiled", ", ".join(told)


def _line(check: Check) -> str:
    return f"{check.name}: {check.reading}"


def _compiled(numbers: Numbers) -> dict[str, int | float]:
    """What is known of the program, by field."""
    program = (field for field, number in MEASURED.items() if number.table == "program")
    return {field: value for field in program if (value := numbers.value(field)) is not None}

"""Report the outcome of each check of each variant, for `accelbench check`. Pure."""

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
    """Hold the checks of one variant."""

    variant: str
    failure: str
    """Reason why it did not finish; empty: it finished."""
    checks: tuple[Check, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def of(self, outcome: CheckOutcome) -> tuple[Check, ...]:
        """Return the checks with that outcome."""
        return tuple(check for check in self.checks if check.outcome == outcome)

    @property
    def failed(self) -> bool:
        """Return True if the variant or one of its checks failed."""
        return bool(self.failure or self.of("failed"))


def checked(result: Result) -> tuple[Checked, ...]:
    """Return the checks of every variant; a failed variant has none."""
    variants = []
    for variant in result.variants:
        if failure := variant.failure:
            phase = f" in phase {failure.phase}" if failure.phase else ""
            variants.append(Checked(variant.name, f"{failure.reason}{phase}: {failure.message}"))
        else:
            checks = tuple(check for check in result.certificate.checks if check.variant in {variant.name, None})
            variants.append(Checked(variant.name, "", checks, variant.numbers))
    return tuple(variants)


def exit_for(variants: Sequence[Checked]) -> Exit:
    """Return the exit code; untested checks do not change it."""
    codes = [Exit.VARIANT_FAILED for variant in variants if variant.failure]
    codes += [Exit.INVALID_MEASUREMENT for variant in variants if variant.of("failed")]
    return Exit.worst(codes)


def conclusion(variants: Sequence[Checked]) -> str:
    """Return the conclusion as a sentence."""
    if failed := [checked.variant for checked in variants if checked.failed]:
        return f"Failed: {', '.join(failed)}."
    if any(variant.of("untested") or not variant.checks for variant in variants):
        return "Nothing failed, but not everything could be checked."
    return "Every check passed."


def report(result: Result) -> RenderableType:
    """Return the report of a case for the terminal."""
    variants = checked(result)
    parts: list[RenderableType] = [Text(title(result.case), style="bold")]
    for variant in variants:
        parts += [Text(), Text(f"{variant.variant}: {_counts(variant)}"), Padding(_table(variant), (0, 0, 0, 2))]
    if result.notes:
        parts += [Text(), *(Text(f"note: {note}", style="dim") for note in result.notes)]
    failed = any(variant.failed for variant in variants)
    parts += [Text(), Text(conclusion(variants), style=STYLES["failed"] if failed else "bold")]
    return Group(*parts)


def as_json(result: Result) -> dict[str, Any]:
    """Return the report of a case for scripts."""
    return {
        "case": result.case.name,
        "notes": list(result.notes),
        "variants": [
            {
                "name": variant.variant,
                "failure": variant.failure or None,
                "checks": [
                    {"name": check.name, "outcome": check.outcome, "reading": check.reading} for check in variant.checks
                ],
                "compiled": _compiled(variant.numbers) or None,
            }
            for variant in checked(result)
        ],
    }


def _counts(variant: Checked) -> str:
    """Return, for example, `10 passed, 1 failed, 1 untested`."""
    if variant.failure:
        return "failed"
    counted = [f"{len(checks)} {outcome}" for outcome in get_args(CheckOutcome) if (checks := variant.of(outcome))]
    return ", ".join(counted) or "nothing checked"


def _table(variant: Checked) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for outcome, heading, text in _rows(variant):
        table.add_row(Text(heading, style=STYLES[outcome]), Text(text))
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
        numbers = (f"{MEASURED[field].heading}: {number_text(variant.numbers, field)}" for field in compiled)
        yield "passed", "compiled", ", ".join(numbers)


def _line(check: Check) -> str:
    return f"{check.name}: {check.reading}"


def _compiled(numbers: Numbers) -> dict[str, int | float]:
    """Return the numbers that describe the compiled program, by field."""
    program = (field for field, number in MEASURED.items() if number.table == "program")
    return {field: value for field in program if (value := numbers.value(field)) is not None}

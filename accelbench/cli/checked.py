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

STYLE_OF_OUTCOME = {outcome: style for outcome, (_, style) in MARKS.items()}


@dataclass(frozen=True)
class CheckedVariant:
    """Hold the checks of one variant."""

    name: str
    failure: str
    """Why the variant did not finish; empty if it finished."""
    checks: tuple[Check, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def checks_with(self, outcome: CheckOutcome) -> tuple[Check, ...]:
        """Return the checks with that outcome."""
        return tuple(check for check in self.checks if check.outcome == outcome)

    @property
    def has_failed(self) -> bool:
        """Return True if the variant or one of its checks failed."""
        return bool(self.failure or self.checks_with("failed"))


def checked_variants(result: Result) -> tuple[CheckedVariant, ...]:
    """Return the checks of every variant."""
    variants = []
    for variant in result.variants:
        failure = variant.failure
        if failure:
            phase = f" in phase {failure.phase}" if failure.phase else ""
            variants.append(CheckedVariant(variant.name, f"{failure.reason}{phase}: {failure.message}"))
        else:
            # A check without a variant is about all variants.
            checks = tuple(check for check in result.certificate.checks if check.variant in {variant.name, None})
            variants.append(CheckedVariant(variant.name, "", checks, variant.numbers))
    return tuple(variants)


def exit_code(variants: Sequence[CheckedVariant]) -> Exit:
    """Return the exit code for failed variants and checks.

    Untested checks are no failure.
    """
    codes = [Exit.VARIANT_FAILED for variant in variants if variant.failure]
    codes += [Exit.INVALID_MEASUREMENT for variant in variants if variant.checks_with("failed")]
    return Exit.worst(codes)


def conclusion(variants: Sequence[CheckedVariant]) -> str:
    """Return one sentence that sums up the checks."""
    failed_names = [variant.name for variant in variants if variant.has_failed]
    if failed_names:
        return f"Failed: {', '.join(failed_names)}."
    if any(variant.checks_with("untested") or not variant.checks for variant in variants):
        return "Nothing failed, but not everything could be checked."
    return "Every check passed."


def report(result: Result) -> RenderableType:
    """Return the report of a case for the terminal."""
    variants = checked_variants(result)
    blocks: list[RenderableType] = [Text(title(result.case), style="bold")]
    for variant in variants:
        heading = Text(f"{variant.name}: {_count_outcomes(variant)}")
        blocks += [Text(), heading, Padding(_table(variant), (0, 0, 0, 2))]
    if result.notes:
        blocks += [Text(), *(Text(f"note: {note}", style="dim") for note in result.notes)]
    any_failed = any(variant.has_failed for variant in variants)
    blocks += [Text(), Text(conclusion(variants), style=STYLE_OF_OUTCOME["failed"] if any_failed else "bold")]
    return Group(*blocks)


def as_json(result: Result) -> dict[str, Any]:
    """Return the report of a case for scripts."""
    return {
        "case": result.case.name,
        "notes": list(result.notes),
        "variants": [
            {
                "name": variant.name,
                "failure": variant.failure or None,
                "checks": [
                    {"name": check.name, "outcome": check.outcome, "reading": check.reading} for check in variant.checks
                ],
                "compiled": _program_numbers(variant.numbers) or None,
            }
            for variant in checked_variants(result)
        ],
    }


def _count_outcomes(variant: CheckedVariant) -> str:
    """Return how many checks had each outcome, such as `10 passed, 1 failed`."""
    if variant.failure:
        return "failed"
    counts = {outcome: len(variant.checks_with(outcome)) for outcome in get_args(CheckOutcome)}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing checked"


def _table(variant: CheckedVariant) -> Table:
    """Return the table of a variant's checks, with the colour of each outcome."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for outcome, heading, text in _rows(variant):
        table.add_row(Text(heading, style=STYLE_OF_OUTCOME[outcome]), Text(text))
    return table


def _rows(variant: CheckedVariant) -> Iterator[tuple[CheckOutcome, str, str]]:
    """Yield the outcome, the heading and the text of each row.

    The outcome sets the colour.
    """
    if variant.failure:
        yield "failed", "failed", variant.failure
        return
    for check in (*variant.checks_with("failed"), *variant.checks_with("untested")):
        yield check.outcome, check.outcome, f"{check.name}: {check.reading}"
    passed_checks = variant.checks_with("passed")
    if passed_checks:
        yield "passed", "passed", ", ".join(check.name for check in passed_checks)
    fields = _program_numbers(variant.numbers)
    if fields:
        texts = [f"{MEASURED[field].heading}: {number_text(variant.numbers, field)}" for field in fields]
        yield "passed", "compiled", ", ".join(texts)


def _program_numbers(numbers: Numbers) -> dict[str, int | float]:
    """Return the measured values of the compiled program, by field."""
    values = {field: numbers.value(field) for field, number in MEASURED.items() if number.table == "program"}
    return {field: value for field, value in values.items() if value is not None}

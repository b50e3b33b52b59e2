"""Report the outcome of each check of each variant, for `accelbench check` and notebooks. Pure.

Each failure has a remedy. Types and shapes of outputs, and captured arrays, come from the records of launches.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Check, CheckOutcome, Failure, Result, VariantResult
from accelbench.launch.fact import value_or_none
from accelbench.launch.record import CANONICAL, REFERENCE, LaunchRecord
from accelbench.local.exits import Exit
from accelbench.report import certificate
from accelbench.report.details import number_text
from accelbench.report.terminal import MARKS
from accelbench.report.view import title

STYLE_OF_OUTCOME = {outcome: style for outcome, (_, style) in MARKS.items()}
CAPTURED = "not an argument, so a compiler may compute with it in advance; pass it as one to time the work with it"
FUNCTIONS = frozenset({REFERENCE, CANONICAL})
"""Functions of a workload that may be to blame in place of a variant."""
MAXIMUM_OUTPUTS = 6
"""Maximum number of outputs whose types and shapes are shown."""


@dataclass(frozen=True)
class CheckedVariant:
    """Hold the checks of one variant."""

    name: str
    failure: str
    """Why the variant did not finish; empty if it finished."""
    failure_remedy: str = ""
    environment_failed: bool = False
    """True if it did not run because its environment cannot be used."""
    checks: tuple[Check, ...] = ()
    remedies: Mapping[str, str] = field(default_factory=dict)
    """What to do about each failed check, by the check's name."""
    numbers: Numbers = field(default_factory=Numbers)
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Type and shape of each output by name, such as `float32 (512, 512)`."""
    captured: tuple[str, ...] = ()
    """Arrays that the program uses and that are not among its arguments."""
    failed_function: str = ""
    """The workload's function whose failure made its parity fail, `reference()` or `canonical()`; empty if none did."""

    def checks_with(self, outcome: CheckOutcome) -> tuple[Check, ...]:
        """Return the checks with that outcome.

        The first is `parity`, the comparison with the reference, because other checks follow from it.
        """
        checks = [check for check in self.checks if check.outcome == outcome]
        parity_checks = [check for check in checks if check.name == "parity"]
        other_checks = [check for check in checks if check.name != "parity"]
        return (*parity_checks, *other_checks)

    @property
    def is_to_blame(self) -> bool:
        """Return True if the variant or one of its checks failed.

        A broken environment does not count, nor does a failure of `parity` that a function of the workload caused.
        """
        if self.environment_failed:
            return False
        failed_names = {check.name for check in self.checks_with("failed")}
        if self.failed_function:  # then parity failed because of that function
            failed_names.discard("parity")
        return bool(self.failure or failed_names)


def checked_variants(result: Result, launches: Sequence[LaunchRecord] = ()) -> tuple[CheckedVariant, ...]:
    """Return every variant with its checks, and with the outputs that its launches report."""
    variants = []
    for variant in result.variants:
        if variant.failure:
            variants.append(_failed_variant(variant.name, variant.failure))
        else:
            variant_launches = [launch for launch in launches if launch.variant == variant.name and not launch.failure]
            variants.append(_finished_variant(variant, result, variant_launches))
    return tuple(variants)


def _failed_variant(name: str, failure: Failure) -> CheckedVariant:
    """Return a variant that did not finish: it has a failure and no checks."""
    phase = f" in phase {failure.phase}" if failure.phase else ""
    text = f"{failure.reason}{phase}: {failure.message}"
    return CheckedVariant(
        name,
        text,
        failure_remedy=_remedy_sentence(failure.reason),
        environment_failed=failure.reason == FailureReason.ENVIRONMENT,
    )


def _finished_variant(variant: VariantResult, result: Result, launches: Sequence[LaunchRecord]) -> CheckedVariant:
    """Return a variant that did not fail, with its checks and with the outputs that its `launches` report."""
    # A check without a variant is about all variants.
    checks = tuple(check for check in result.certificate.checks if check.variant in {variant.name, None})
    failed_names = {check.name for check in checks if check.outcome == "failed"}
    parities = [launch.parity for launch in launches if launch.parity is not None]
    failed_references = [parity.failed_reference for parity in parities if parity.failed_reference]
    if failed_references:
        # The text of the parity check already says what to do about a reference that could not be computed.
        failed_names.discard("parity")
    # A workload without a reference is compared with a variant's program. If that fails, `failed_references` has the
    # variant's name, which is not the name of a function.
    failed_functions = [name for name in failed_references if name in FUNCTIONS]
    return CheckedVariant(
        variant.name,
        "",
        checks=checks,
        remedies={name: certificate.remedy_sentence(name, result) for name in failed_names},
        numbers=variant.numbers,
        outputs=_describe_outputs(launches),
        captured=_captured_arrays(launches),
        failed_function=failed_functions[0] if failed_functions else "",
    )


def _remedy_sentence(reason: FailureReason) -> str:
    """Return a sentence with the remedy for the failure; empty if none is known."""
    remedy = reason.remedy
    return f"What to do: {remedy[0].lower()}{remedy[1:]}." if remedy else ""


def _describe_outputs(launches: Sequence[LaunchRecord]) -> dict[str, str]:
    """Return the type and shape of each output by name, from the first launch that reports types; empty without one."""
    for launch in launches:
        types = value_or_none(launch.facts.output_types)
        shapes = value_or_none(launch.facts.output_shapes) or {}
        if types:
            return {name: f"{dtype} {_format_shape(shapes.get(name))}".rstrip() for name, dtype in types.items()}
    return {}


def _format_shape(shape: Sequence[int] | None) -> str:
    """Return a shape as text, such as `(512, 512)`; empty for None."""
    return "" if shape is None else str(tuple(shape))


def _captured_arrays(launches: Sequence[LaunchRecord]) -> tuple[str, ...]:
    """Return the names of the arrays that the variant's program uses besides its arguments, each once."""
    names: dict[str, None] = {}
    for launch in launches:
        dependence = value_or_none(launch.facts.dependence)
        if dependence:
            names.update(dict.fromkeys(dependence.captured))
    return tuple(names)


def exit_code(variants: Sequence[CheckedVariant]) -> Exit:
    """Return the exit code for failed variants and failed checks; an untested check does not count as failed."""
    codes = [Exit.VARIANT_FAILED for variant in variants if variant.failure]
    codes += [Exit.INVALID_MEASUREMENT for variant in variants if variant.checks_with("failed")]
    return Exit.worst(codes)


def conclusion(variants: Sequence[CheckedVariant]) -> str:
    """Return a sentence that sums up the checks, and one about environments that cannot be used."""
    failed_names = list(dict.fromkeys(variant.failed_function for variant in variants if variant.failed_function))
    failed_names += [variant.name for variant in variants if variant.is_to_blame]
    unusable_names = [variant.name for variant in variants if variant.environment_failed]
    sentences = [f"Failed: {', '.join(failed_names)}."] if failed_names else []
    if unusable_names:
        sentences.append(f"Not checked, as the environment cannot be used: {', '.join(unusable_names)}.")
    if sentences:
        return " ".join(sentences)
    if any(variant.checks_with("untested") or not variant.checks for variant in variants):
        return "Nothing failed, but not everything could be checked."
    return "Every check passed."


def report(result: Result, launches: Sequence[LaunchRecord] = ()) -> RenderableType:
    """Return the report of a case on the terminal: the checks of each variant, then a conclusion."""
    variants = checked_variants(result, launches)
    blocks: list[RenderableType] = [Text(title(result.case), style="bold")]
    for variant in variants:
        heading = Text(f"{variant.name}: {_count_outcomes(variant)}")
        blocks += [Text(), heading, Padding(_table(variant), (0, 0, 0, 2))]
    if result.notes:
        blocks += [Text(), *(Text(f"note: {note}", style="dim") for note in result.notes)]
    style = "bold" if exit_code(variants) is Exit.SUCCESS else STYLE_OF_OUTCOME["failed"]
    blocks += [Text(), Text(conclusion(variants), style=style)]
    return Group(*blocks)


def as_json(result: Result, launches: Sequence[LaunchRecord] = ()) -> dict[str, Any]:
    """Return the report of a case for scripts, as a JSON document."""
    return {
        "case": result.case.name,
        "notes": list(result.notes),
        "variants": [_variant_document(variant) for variant in checked_variants(result, launches)],
    }


def _variant_document(variant: CheckedVariant) -> dict[str, Any]:
    """Return a variant and its checks as an object for JSON."""
    return {
        "name": variant.name,
        "failure": variant.failure or None,
        "checks": [
            {
                "name": check.name,
                "outcome": check.outcome,
                "reading": check.reading,
                "remedy": variant.remedies.get(check.name) or None,
            }
            for check in variant.checks
        ],
        "outputs": dict(variant.outputs),
        "captured": list(variant.captured),
        "compiled": _program_numbers(variant.numbers) or None,
    }


def _count_outcomes(variant: CheckedVariant) -> str:
    """Return how many checks had each outcome, such as `10 passed, 1 failed`, or `failed` if the variant failed."""
    if variant.failure:
        return "failed"
    counts = {outcome: len(variant.checks_with(outcome)) for outcome in get_args(CheckOutcome)}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing checked"


def _table(variant: CheckedVariant) -> Table:
    """Return the table of a variant's checks."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # not cut, however long a word is
    for row in _rows(variant):
        table.add_row(Text(row.heading, style=STYLE_OF_OUTCOME[row.colour_of]), Text(row.text))
    return table


class _Row(NamedTuple):
    """Hold a row of a variant's table."""

    heading: str
    text: str
    colour_of: CheckOutcome
    """Outcome whose colour the heading has."""


def _rows(variant: CheckedVariant) -> Iterator[_Row]:
    """Yield the rows of a variant's table: failed, untested and passed checks, then facts about its program."""
    if variant.failure:
        yield _Row("failed", _join_lines(variant.failure, variant.failure_remedy), "failed")
        return
    for check in (*variant.checks_with("failed"), *variant.checks_with("untested")):
        text = _join_lines(f"{check.name}: {check.reading}", variant.remedies.get(check.name, ""))
        yield _Row(check.outcome, text, check.outcome)
    passed_checks = variant.checks_with("passed")
    if passed_checks:
        yield _Row("passed", ", ".join(check.name for check in passed_checks), "passed")
    fields = _program_numbers(variant.numbers)
    if fields:
        texts = [f"{MEASURED[field].heading}: {number_text(variant.numbers, field)}" for field in fields]
        yield _Row("compiled", ", ".join(texts), "passed")
    if variant.outputs:
        yield _Row("outputs", _list_outputs(variant.outputs), "passed")
    if variant.captured:
        yield _Row("captured", f"{', '.join(variant.captured)}: {CAPTURED}", "untested")


def _join_lines(first: str, second: str) -> str:
    """Return both texts on lines of their own; only the first if the second is empty."""
    return f"{first}\n{second}" if second else first


def _list_outputs(outputs: Mapping[str, str]) -> str:
    """List outputs with their types and shapes, as `y0 int32 (1000,), y1 float32 (1000,), and 3 more`."""
    texts = [f"{name} {description}" for name, description in outputs.items()]
    shown_texts = texts[:MAXIMUM_OUTPUTS]
    if len(texts) > len(shown_texts):
        shown_texts.append(f"and {len(texts) - len(shown_texts)} more")
    return ", ".join(shown_texts)


def _program_numbers(numbers: Numbers) -> dict[str, int | float]:
    """Return the measured numbers that describe the compiled program, by field of `Numbers`; without unknown ones."""
    values = {field: numbers.value(field) for field, number in MEASURED.items() if number.table == "program"}
    return {field: value for field, value in values.items() if value is not None}

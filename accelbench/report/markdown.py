"""Render a run's report as Markdown, for a page or a pull request. Pure."""

import re
from collections.abc import Iterable, Sequence

from accelbench.api.result import Result
from accelbench.document import on_one_line
from accelbench.report import certificate, details, machine, targets, view
from accelbench.report.table import Table
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

_MARKUP = re.compile(r"[\\`*<>\[\]~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
"""Characters to escape anywhere; Markdown leaves an underscore between letters or digits alone."""
_BLOCK = re.compile(r"^(\d*)(#|[-+](?=[\s-]|$)|=|(?<=\d)[.)](?=\s|$))")
"""What to escape at the start of a line: a heading, a list item, a rule."""


def report(name: str, measured: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> str:
    """Return the whole document; `name` is the run's name."""
    parts = [f"# {escaped(name)}"]
    if not measured:
        parts.append("No case has a result.")
    for result, outcomes in measured:
        if not targets.is_compiled(result):
            parts += _case(result, outcomes)
    compiled = [(result, outcomes) for result, outcomes in measured if targets.is_compiled(result)]
    if compiled:
        parts += _compiled(compiled)
    return "\n\n".join(parts) + "\n"


def _case(result: Result, outcomes: Sequence[ExpectationOutcome]) -> list[str]:
    """Return the part about one measured case."""
    result = redact_invalid(result)
    parts = [f"## {escaped(view.title(result.case))}"]
    if partial := view.state(result):
        parts.append(f"**{escaped(partial)}**")
    if view.nothing_measured(result):
        return [*parts, *_notes(result, *view.remarks(result), *(outcome.sentence for outcome in outcomes))]
    parts += [escaped(sentence) for sentence in view.sentences(result)]
    if observed := view.observation_table(result):
        parts += [_rows(observed), *_paragraph((view.basis(result),))]
    else:
        parts += [_rows(view.verdict_table(result)), *_paragraph((view.basis(result), *view.time_notes(result)))]
        if phases := view.phase_table(result):
            parts.append(_rows(phases, first="phases"))
        for table in details.tables(result):
            parts += _table(table)
    notes = [
        certificate.summary(result),
        *certificate.failure_lines(result),
        *view.remarks(result),
        *(outcome.sentence for outcome in outcomes),
    ]
    return [*parts, *_notes(result, *notes)]


def _notes(result: Result, *notes: str) -> list[str]:
    """Return `notes` and the notes of the result as a list, and the machine."""
    parts = ["\n".join(f"- {escaped(note)}" for note in (*notes, *result.notes))]
    if line := machine.line(result.fingerprint):
        parts.append(escaped(line))
    return list(filter(None, parts))


def _compiled(cases: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> list[str]:
    """Return the section about cases that were only compiled, each for a target accelerator, and not measured."""
    results = [result for result, _ in cases]
    parts = [f"## {escaped(view.title(results[0].case, all_cases=True))}"]
    parts += [escaped(sentence) for sentence in targets.sentences(*results)]
    for table in targets.tables(results):
        parts += _table(table)
    parts += _paragraph(targets.footnotes(results))
    notes = [outcome.sentence for _, outcomes in cases for outcome in outcomes]
    notes += [f"{targets.label(result)}: {note}" for result in results for note in result.notes]
    if notes:
        parts.append("\n".join(f"- {escaped(note)}" for note in notes))
    if line := machine.line(results[0].fingerprint):
        parts.append(escaped(f"Compiled on {line}"))
    return parts


def _table(table: Table) -> list[str]:
    return [f"{escaped(table.caption)}:", _rows(table)]


def _rows(table: Table, *, first: str = "") -> str:
    """Paint the table without its caption; `first` replaces the head of the first column."""
    names = [column.name for column in table.columns]
    right = {number for number, column in enumerate(table.columns) if column.number}
    return markdown_table([first or names[0], *names[1:]], table.rows, right)


def _paragraph(texts: Iterable[str]) -> list[str]:
    """Return a paragraph in which each text becomes a sentence with capital letter and full stop."""
    return [" ".join(f"{escaped(text[:1].upper() + text[1:])}." for text in texts)]


class RawMarkdown(str):
    """Mark a cell as Markdown that must not be escaped."""

    __slots__ = ()


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: set[int]) -> str:
    """Return a table of plain text; the columns whose indices are in `right` are aligned right."""
    rule = [RawMarkdown("---:" if column in right else "---") for column in range(len(header))]
    return "\n".join(_row(cells) for cells in (header, rule, *rows))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell if isinstance(cell, RawMarkdown) else _cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    """Return the text on one line, escaped for a cell."""
    return _inline(text).replace("|", "\\|")


def escaped(text: str) -> str:
    """Return the text on one line, escaped so that it contains no Markdown and no HTML."""
    return _BLOCK.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Return the text on one line, with inline markup escaped."""
    return _MARKUP.sub(r"\\\g<0>", on_one_line(" ".join(text.split())))

"""Render a run's report as Markdown, for a page or a pull request. Pure."""

import re
from collections.abc import Iterable, Sequence

from accelbench.api.result import Result
from accelbench.document import on_one_line
from accelbench.explanation.explain import explain
from accelbench.report import certificate, details, machine, targets, view
from accelbench.report.table import Table
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

_MARKUP = re.compile(r"[\\`*<>\[\]~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
"""Characters to escape anywhere. An underscore between letters or digits is no markup, so it is not escaped."""
_BLOCK = re.compile(r"^(\d*)(#|[-+](?=[\s-]|$)|=|(?<=\d)[.)](?=\s|$))")
"""What to escape at the start of a line: a heading, a list item, a rule."""


def report(name: str, measured: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> str:
    """Return the report of a run as a Markdown document; `name` is the name of the run."""
    paragraphs = [f"# {escape(name)}"]
    if not measured:
        paragraphs.append("No case has a result.")
    for result, outcomes in measured:
        if not targets.is_compile_only(result):
            paragraphs += _case_section(result, outcomes)
    compiled = [(result, outcomes) for result, outcomes in measured if targets.is_compile_only(result)]
    if compiled:
        paragraphs += _compiled_section(compiled)
    return "\n\n".join(paragraphs) + "\n"


def _case_section(result: Result, outcomes: Sequence[ExpectationOutcome]) -> list[str]:
    """Return the Markdown paragraphs about a measured case, with the outcomes of its expectations."""
    result = redact_invalid(result)
    paragraphs = [f"## {escape(view.title(result.case))}"]
    if warning := view.warning(result):
        paragraphs.append(f"**{escape(warning)}**")
    if view.nothing_measured(result):
        return [*paragraphs, *_notes(result, *view.remarks(result), *(outcome.sentence for outcome in outcomes))]
    paragraphs += [escape(sentence) for sentence in view.sentences(result)]
    if observation_table := view.observation_table(result):
        paragraphs += [_table(observation_table), _paragraph([view.measurement_summary(result)])]
    else:
        paragraphs += [
            _table(view.verdict_table(result)),
            _paragraph([view.measurement_summary(result), *view.time_notes(result)]),
        ]
        if reasons := explain(result):
            paragraphs += ["Why:", "\n".join(f"- {escape(reason)}" for reason in reasons)]
        if phases := view.phase_table(result):
            paragraphs.append(_table(phases, first_heading="phases"))
        for table in details.tables(result):
            paragraphs += table_with_caption(table)
    notes = [
        certificate.summary(result),
        *certificate.failure_lines(result),
        *view.remarks(result),
        *(outcome.sentence for outcome in outcomes),
    ]
    return [*paragraphs, *_notes(result, *notes)]


def _notes(result: Result, *notes: str) -> list[str]:
    """Return a bulleted list of `notes` and the result's own notes, then paragraphs about machine and environments."""
    paragraphs = ["\n".join(f"- {escape(note)}" for note in (*notes, *result.notes))]
    if line := machine.describe(result.fingerprint):
        paragraphs.append(escape(line))
    paragraphs += map(escape, machine.describe_environments(result))
    return list(filter(None, paragraphs))


def _compiled_section(cases: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> list[str]:
    """Return the Markdown paragraphs about all cases that were compiled and not run."""
    results = [result for result, _ in cases]
    paragraphs = [f"## {escape(view.title(results[0].case, compiled_cases=True))}"]
    paragraphs += [escape(sentence) for sentence in targets.sentences(*results)]
    for table in targets.tables(results):
        paragraphs += table_with_caption(table)
    paragraphs.append(_paragraph(targets.footnotes(results)))
    notes = [outcome.sentence for _, outcomes in cases for outcome in outcomes]
    notes += [f"{targets.case_label(result)}: {note}" for result in results for note in result.notes]
    if notes:
        paragraphs.append("\n".join(f"- {escape(note)}" for note in notes))
    if line := machine.describe(results[0].fingerprint):
        paragraphs.append(escape(f"Compiled on {line}"))
    return paragraphs


def table_with_caption(table: Table) -> list[str]:
    """Return the caption and the table, each as a paragraph."""
    return [f"{escape(table.caption)}:", _table(table)]


def _table(table: Table, *, first_heading: str = "") -> str:
    """Return the table in Markdown, without its caption; `first_heading` replaces the heading of the first column."""
    headings = [column.name for column in table.columns]
    if first_heading:
        headings[0] = first_heading
    right_aligned = {index for index, column in enumerate(table.columns) if column.number}
    return markdown_table(headings, table.rows, right_aligned)


def _paragraph(texts: Iterable[str]) -> str:
    """Join texts into a paragraph, each as a sentence."""
    return " ".join(f"{escape(text[:1].upper() + text[1:])}." for text in texts)


class RawMarkdown(str):
    """Mark a cell as Markdown that must not be escaped."""

    __slots__ = ()


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: set[int]) -> str:
    """Return a Markdown table; `right` has the indices of the columns that are aligned at the right."""
    rule = [RawMarkdown("---:" if index in right else "---") for index in range(len(header))]
    return "\n".join(_row(cells) for cells in (header, rule, *rows))


def _row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Escape a text for a table cell, except `RawMarkdown`; a cell is never at the start of a line (see `_BLOCK`)."""
    return text if isinstance(text, RawMarkdown) else _inline(text).replace("|", "\\|")


def escape(text: str) -> str:
    """Escape markup and HTML, so that Markdown shows exactly this text."""
    # Insert a backslash before the markup (\2), after the digits of a numbered list item, if there are any (\1).
    return _BLOCK.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Return the text on one line, with inline markup escaped."""
    return _MARKUP.sub(r"\\\g<0>", on_one_line(" ".join(text.split())))

"""Render a suite as Markdown, for a page or a pull request. Pure."""

from accelbench.report.markdown import escape, table_with_caption
from accelbench.report.suite import releases, view
from accelbench.report.suite.view import Suite


def report(suite: Suite) -> str:
    """Return the report of a suite as a Markdown document."""
    paragraphs = [f"# {escape(suite.name)}"]
    if suite.description:
        paragraphs.append(escape(suite.description))
    paragraphs += [escape(sentence) for sentence in (releases.sentence(suite), suite.sentence) if sentence]
    tables = (
        *releases.program_tables(suite),
        view.comparison_table(suite),
        view.count_table(suite),
        view.mean_table(suite),
        view.reason_table(suite),
        view.finding_table(suite),
        *releases.package_tables(suite),
    )
    for table in tables:
        if table is not None:
            paragraphs += table_with_caption(table)
    paragraphs.append("\n".join(f"- {escape(note)}" for note in (*releases.notes(suite), *suite.notes)))
    paragraphs += map(escape, (*suite.machines, *releases.environment_lines(suite)))
    return "\n\n".join(paragraphs) + "\n"

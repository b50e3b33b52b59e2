"""Show the results of `accelbench.compare` and `accelbench.check` as text, and as HTML in a notebook."""

import html
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType

from accelbench.api.result import Result
from accelbench.launch.record import LaunchRecord
from accelbench.local.exits import Exit
from accelbench.local.run import RunOutcome
from accelbench.report import terminal, view
from accelbench.terminal.checked import checked_variants, conclusion, exit_code, report

PAGE_HEIGHT = 900
"""Height of the report in a notebook, in pixels."""


@dataclass(frozen=True, repr=False)
class ComparedFunctions:
    """Hold the results of `compare`, and the directory that `accelbench report` reads.

    `print` shows them as the report of a terminal, a notebook as an HTML page.
    """

    outcome: RunOutcome
    directory: Path

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the result of each case."""
        return tuple(result for result, _ in self.outcome.measured)

    @property
    def result(self) -> Result:
        """Return the first result."""
        return self.results[0]

    def __repr__(self) -> str:
        """Return the sentences of each result, and the directory of the results."""
        sentences = [sentence for result in self.results for sentence in view.sentences(result)]
        return "\n".join([*sentences, self._directory_line()])

    def _directory_line(self) -> str:
        """Return the line that names the directory of the results."""
        return f"results: {self.directory}"

    def __str__(self) -> str:
        """Return the report as a terminal shows it, without colours."""
        return _plain_text(terminal.reports(self.outcome.measured)) + self._directory_line()

    def _repr_html_(self) -> str:
        """Return `report.html` in a frame for a notebook."""
        page = self.directory / "report.html"
        if not page.exists():
            return f"<pre>{html.escape(str(self))}</pre>"
        text = html.escape(page.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{text}" style="width: 100%; height: {PAGE_HEIGHT}px; border: 0"></iframe>'


@dataclass(frozen=True, repr=False)
class CheckedFunctions:
    """Hold the results of `check`. `print` and a notebook show them as `accelbench check` does."""

    checked: tuple[tuple[Result, tuple[LaunchRecord, ...]], ...]
    """Each result with its launches."""

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the result of each case, without times."""
        return tuple(result for result, _ in self.checked)

    @property
    def result(self) -> Result:
        """Return the first result."""
        return self.results[0]

    @property
    def failed(self) -> bool:
        """Return True if a variant or a check failed; an untested check has not failed."""
        # Launches would add outputs and captured arrays, which decide nothing.
        return any(exit_code(checked_variants(result)) is not Exit.SUCCESS for result in self.results)

    def __repr__(self) -> str:
        """Return the conclusion of each case, such as "Every check passed."."""
        return "\n".join(conclusion(checked_variants(result, launches)) for result, launches in self.checked)

    def __str__(self) -> str:
        """Return the report as a terminal shows it, without colours."""
        return _plain_text(*(report(result, launches) for result, launches in self.checked))

    def _repr_html_(self) -> str:
        """Return the report for a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"


def _plain_text(*parts: RenderableType) -> str:
    """Return the text that a terminal without colours shows."""
    plain_console = Console(width=100, color_system=None, markup=False, emoji=False)
    with plain_console.capture() as captured:
        for part in parts:
            plain_console.print(part)
    return captured.get()

"""Draws `verdict.svg` for the README from a result that was measured: `python docs/images/make.py RESULT_DIRECTORY`."""

import io
import re
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from accelbench.cli.files import RunDirectory
from accelbench.report import terminal
from accelbench.verdict.expectations import evaluate

WIDTH = 104
# Pages that show the picture block fonts from elsewhere; every reader has a monospaced one.
TEMPLATE = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def draw(directory: Path, to: Path) -> None:
    """The report of the run in `directory`, as the terminal shows it, in the file `to`."""
    record, results = RunDirectory(directory).load()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    measured = [(result, evaluate(record.run.spec.expectations, result)) for result in results]
    console.print(terminal.reports(measured))
    title = f"accelbench run {record.run.metadata.name}.yaml"
    console.save_svg(str(to), title=title, theme=MONOKAI, code_format=TEMPLATE, unique_id="verdict")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(__file__).parent / "verdict.svg")

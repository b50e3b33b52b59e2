"""Draws the pictures of what accelbench shows, from results that were measured.

python docs/images/make.py verdict RESULT_DIRECTORY [OPTION ...]         verdict.svg: the terminal; the run's options
PYTHONPATH=tests python docs/images/make.py report RESULT_DIRECTORY      report.png: the page, in a real Chromium
"""

import base64
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from accelbench.cli.files import RunDirectory
from accelbench.report import terminal
from accelbench.verdict.expectations import evaluate

HERE = Path(__file__).parent
COMMAND = "from accelbench.cli.main import main; main()"
WIDTH = 104
# Pages that show the picture block fonts from elsewhere; every reader has a monospaced one.
TEMPLATE = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
PAGE = {"x": 0, "y": 0, "width": 1100, "height": 900, "scale": 1}


def verdict(directory: Path, *options: str) -> None:
    """The report of the run in `directory`, as the terminal shows it; `options` are those of its command."""
    record, results = RunDirectory(directory).load()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    measured = [(result, evaluate(record.run.spec.expectations, result)) for result in results]
    console.print(terminal.reports(measured))
    title = " ".join((f"accelbench run {record.run.metadata.name}.yaml", *options))
    console.save_svg(str(HERE / "verdict.svg"), title=title, theme=MONOKAI, code_format=TEMPLATE, unique_id="verdict")


def report(directory: Path) -> None:
    """The top of the HTML report of the run in `directory`, as a browser shows it."""
    from report.chromium import tab  # the tests' own browser

    made = subprocess.run(
        [sys.executable, "-c", COMMAND, "report", directory, "--output", "html"],
        check=True,
        stdout=subprocess.PIPE,
    )
    with tempfile.TemporaryDirectory() as folder, tab() as page:
        file = Path(folder) / "report.html"
        file.write_bytes(made.stdout)
        page.open(file, width=PAGE["width"])
        shot = page("Page.captureScreenshot", format="png", clip=PAGE, captureBeyondViewport=True)
    (HERE / "report.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    {"verdict": verdict, "report": report}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])

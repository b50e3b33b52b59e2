"""Draw the pictures of accelbench's output from measured results.

python docs/images/make.py verdict RESULT_DIRECTORY FILE [OPTION ...]    verdict.svg: the command and its output
PYTHONPATH=tests python docs/images/make.py report RESULT_DIRECTORY      report.png: the HTML report, in a real Chromium
"""

import base64
import io
import itertools
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from accelbench.local.directory import RunDirectory
from accelbench.local.manifests import read
from accelbench.report import terminal
from accelbench.verdict.expectations import evaluate

HERE = Path(__file__).parent
COMMAND = "from accelbench.cli.main import main; main()"
WIDTH = 104
"""Width of the terminal in characters."""
# Without web fonts, because pages block fonts from other hosts.
TEMPLATE = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
PAGE = {"x": 0, "y": 0, "width": 1100, "height": 900, "scale": 1}


def verdict(directory: Path, manifest: str, *options: str) -> None:
    """Draw the report of the run in `directory` as the terminal shows it, with the command that runs `manifest`.

    Exit with a message if the run in `directory` is not one of the manifest with these options.
    """
    record, results = RunDirectory(directory).load()
    assignments = [value for option, value in itertools.pairwise(options) if option == "--set"]
    if record.run.spec not in [run.spec for run in read(manifest, assignments)]:
        sys.exit(f"{manifest} is not what was run for {directory}")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    measured = [(result, evaluate(record.run.spec.expectations, result)) for result in results]
    console.print(terminal.reports(measured))
    title = shlex.join(("accelbench", "run", manifest, *options))
    console.save_svg(str(HERE / "verdict.svg"), title=title, theme=MONOKAI, code_format=TEMPLATE, unique_id="verdict")


def report(directory: Path) -> None:
    """Draw the top of the HTML report of the run in `directory` in a browser."""
    from report.chromium import tab  # the tests' own browser

    command = subprocess.run(
        [sys.executable, "-c", COMMAND, "report", directory, "--output", "html"],
        check=True,
        stdout=subprocess.PIPE,
    )
    with tempfile.TemporaryDirectory() as folder, tab() as page:
        file = Path(folder) / "report.html"
        file.write_bytes(command.stdout)
        page.open(file, width=PAGE["width"])
        screenshot = page("Page.captureScreenshot", format="png", clip=PAGE, captureBeyondViewport=True)
    (HERE / "report.png").write_bytes(base64.b64decode(screenshot["data"]))


if __name__ == "__main__":
    {"verdict": verdict, "report": report}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])

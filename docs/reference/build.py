"""Generate the reference pages from the code that they describe, by the functions in `source`.

python docs/reference/build.py            writes them
python docs/reference/build.py --check    fails if a page is out of date
"""

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "source"
PAGES = {
    "checks.md": "measured",
    "cli.md": "commands",
    "metrics.md": "operating",
    "manifest.md": "schemas",
    "objects.md": "schemas",
    "workloads.md": "measured",
    "numbers.md": "measured",
    "profiles.md": "schemas",
    "targets.md": "compiled",
    "reasons.md": "operating",
    "kubectl.md": "commands",
    "../operations/troubleshooting.md": "operating",
}
"""Module in `source` that writes each page, by a function with the page's name."""


def render(page: str) -> str:
    """Return the page's text."""
    if str(SOURCES) not in sys.path:
        sys.path.insert(0, str(SOURCES))
    text: str = getattr(importlib.import_module(PAGES[page]), Path(page).stem)()
    return text


def main(arguments: list[str] | None = None) -> int:
    """Write the pages or, with `--check`, compare them with the files; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate the reference pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name in PAGES:
        page, text = HERE / name, render(name)
        if not check:
            page.write_text(text)
        elif not page.exists() or page.read_text() != text:
            stale.append(str(page.resolve().relative_to(HERE.parents[1])))
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}: python docs/reference/build.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

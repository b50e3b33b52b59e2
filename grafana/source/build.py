"""Write `grafana/dashboards/NAME.json` from the modules here; the chart links to that folder.

python grafana/source/build.py            writes them
python grafana/source/build.py --check    fails if a file differs from what its module generates
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

SOURCES = Path(__file__).resolve().parent
DASHBOARDS = SOURCES.parent / "dashboards"
MODULES = {
    "overview": "overview",
    "compare": "compare",
    "run": "run",
    "across-accelerators": "across_accelerators",
    "fleet": "fleet",
    # A module named `operator` would hide that of the standard library.
    "operator": "operator_health",
}
"""Module that generates each dashboard, by the name of the dashboard's file."""


def render(name: str) -> str:
    """Return the dashboard's JSON as Grafana imports it."""
    if str(SOURCES) not in sys.path:
        sys.path.insert(0, str(SOURCES))
    model = importlib.import_module(MODULES[name]).dashboard().build()
    return json.dumps(model, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or check all dashboards; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate the Grafana dashboards.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    if check:  # begin with the files that no module generates
        stale = sorted(path.name for path in DASHBOARDS.glob("*.json") if path.stem not in MODULES)
    for name in MODULES:
        path = DASHBOARDS / f"{name}.json"
        text = render(name)
        if path.exists() and path.read_text() == text:
            continue
        if check:
            stale.append(path.name)
        else:
            path.write_text(text)
            print(f"wrote {path.name}")
    if stale:
        print(f"out of date: {', '.join(stale)}; run: python grafana/source/build.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

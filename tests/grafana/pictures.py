"""Draws the pictures of the documentation: `PYTHONPATH=tests python -m grafana.pictures` (what it needs: make prepare).

The dashboards, at 1,400 pixels in the dark theme, over a week of `grafana.history`.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from grafana.dashboards import CHOICES
from grafana.history import DAY, END, START, running_history
from grafana.renderer import draw, serve
from report.chromium import tab

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images" / "dashboards"
DAYS = {"run": 1, "run-on-a-gpu": 1, "run-compiled": 1, "operator": 1}
"""Those that show a day by default."""


def main() -> int:
    """Draw them all; returns the exit status."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        running_history(Path(directory)) as prometheus,
        tab() as page,
        serve(prometheus.url) as site,
    ):
        for name, dashboard in CHOICES.items():
            since = END - DAYS[name] * DAY if name in DAYS else START
            drawn = draw(page, site, dashboard, theme="dark", width=1400, seconds=(since, END))
            path = PICTURES / f"{name}.png"
            # Panels have few colours: a palette makes the file a third as large.
            Image.open(io.BytesIO(drawn.picture)).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
                path, optimize=True
            )
            faults = drawn.faults(elsewhere=dashboard.elsewhere)
            assert not faults, faults
            print(f"{path.name}: {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

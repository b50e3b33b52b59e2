"""Draw the shares of missed errors by their size."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.report.plots.canvas import Ink, draw, figure, place, standalone
from benchmarks.parity.errors import REACHES, SIZES
from benchmarks.parity.measure import Row
from benchmarks.parity.program import PRECISIONS
from benchmarks.parity.shares import Share, passes_before, passes_now, passes_own, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PATH = Path(__file__).parents[2] / "docs" / "results" / "parity.svg"
RULES = {"before": passes_before, "now": passes_now, "now, without a reference": passes_own}
INKS = (Ink.SERIES_1, Ink.SERIES_2, Ink.SERIES_3)
DASHES = ("solid", "solid", (0, (4, 2)))
DESCRIPTION = (
    "Shares of missed errors by their relative size, in float32, bfloat16 and float16, for errors in one element, in "
    "1 % and in all; the table has the numbers."
)
LEFT, TOP, GAP, BOTTOM, LEGEND, PANEL = 44, 26, 14, 24, 30, 150
"""Margins, distances and heights in pixels."""
REACH_TITLES = {"one": "in one element", "1 %": "in 1 % of the elements", "all": "in all elements"}


def write(rows: Sequence[Row]) -> None:
    """Write the picture to docs/results/parity.svg."""
    injected = [row for row in rows if row.output.kind == "injected" and row.output.size in SIZES]
    PATH.write_text(standalone(draw("parity", DESCRIPTION, lambda width: _draw(injected, width))))


def _draw(rows: Sequence[Row], width: int) -> "Figure":
    """Draw a panel for each type and each share of wrong elements."""
    height = LEGEND + len(PRECISIONS) * (TOP + PANEL + BOTTOM)
    drawing = figure(width, height)
    panel_width = (width - LEFT - GAP * len(REACHES)) / len(REACHES)
    for line, precision in enumerate(PRECISIONS):
        for column, reach in enumerate(REACHES):
            left = LEFT + column * (panel_width + GAP)
            top = LEGEND + line * (TOP + PANEL + BOTTOM) + TOP
            axes = place(drawing, left=left, top=top, right=width - left - panel_width, bottom=height - top - PANEL)
            panel_rows = [row for row in rows if row.output.precision == precision and row.output.reach == reach]
            _draw_panel(axes, panel_rows)
            axes.set_title(f"{precision}, {REACH_TITLES[reach]}", fontsize=11, color=Ink.TEXT.value, loc="left")
            if column:
                axes.set_yticklabels([])
    handles, labels = drawing.axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="upper left", ncols=len(RULES), frameon=False, labelcolor=Ink.TEXT.value)
    return drawing


def _draw_panel(axes: "Axes", rows: Sequence[Row]) -> None:
    """Draw the share of missed errors by their size, in a line for each rule."""
    axes.set_xscale("log")
    axes.set_xlim(max(SIZES) * 1.5, min(SIZES) / 1.5)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xticks(SIZES, labels=[f"1e-{index + 1}" for index in range(len(SIZES))], fontsize=10)
    axes.minorticks_off()
    axes.set_yticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"], fontsize=10)
    axes.grid(axis="y", color=Ink.RULE.value, linewidth=0.5)
    for (name, misses), ink, dashes in zip(RULES.items(), INKS, DASHES, strict=True):
        points: list[tuple[float, Share]] = []
        for size in SIZES:
            missed_share = share([row for row in rows if row.output.size == size], misses)
            if missed_share is not None:
                points.append((size, missed_share))
        sizes = [size for size, _ in points]
        axes.plot(
            sizes,
            [missed_share.median for _, missed_share in points],
            color=ink.value,
            linestyle=dashes,
            marker="o",
            markersize=3,
            label=name,
        )
        lows = [missed_share.low for _, missed_share in points]
        highs = [missed_share.high for _, missed_share in points]
        axes.fill_between(sizes, lows, highs, color=ink.value, alpha=0.2, linewidth=0)

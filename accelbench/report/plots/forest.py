"""Draw speedups with their intervals and the margin of equivalence."""

import math
from typing import TYPE_CHECKING, Any

from accelbench.api.result import Result
from accelbench.report import view
from accelbench.report.plots import canvas, scale
from accelbench.report.plots.canvas import Ink, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERDICTS = {
    "faster": (Ink.FASTER, "o"),
    "slower": (Ink.SLOWER, "s"),
    "equivalent": (Ink.EQUIVALENT, "D"),
    "inconclusive": (Ink.INCONCLUSIVE, "o"),
    "noisy": (Ink.INCONCLUSIVE, "X"),
}
MAXIMUM_TEXT_SHARE = 0.6
"""Share of the width that the texts on both sides may take; beyond it they are drawn above the intervals."""
ROW = 32
"""Height in pixels of a row with texts on both sides of the interval."""
STACKED_ROW = 46
"""Height in pixels of a row with a line of text above the interval."""


def plot(result: Result, name: str) -> Plot | None:
    """Draw the speedups of one case; None without any."""
    rows = view.compared_rows(result)
    drawn = [row.bounds for row in rows if row.bounds]
    if not drawn:
        return None
    margin = 1 + float(result.case.measurement.equivalence_margin)
    low = min(1 / margin, *(bounds.lower for bounds in drawn))
    high = max(margin, *(bounds.upper for bounds in drawn))
    room = max((high / low) ** 0.06, 1.004)
    low, high = low / room, high * room

    findings = [_finding(row) for row in rows]
    gutters = (max(map(canvas.text_width, (row.name for row in rows))), max(map(canvas.text_width, findings)))

    def make(width: int) -> "Figure":
        # Texts are on both sides of the interval, or above it if there is no room.
        stacked = sum(gutters) > MAXIMUM_TEXT_SHARE * width
        left, right = (8, 8) if stacked else (gutters[0] + 16, gutters[1] + 16)
        height = STACKED_ROW if stacked else ROW
        figure = canvas.figure(width, height * len(rows) + 66)
        axes = canvas.place(figure, left=left, right=right, top=26, bottom=40)
        axes.set(xscale="log", xlim=(low, high), ylim=(len(rows), 0), yticks=[])
        for number, row in enumerate(rows):
            upper = number + (0.5 if stacked else 0)
            axes.fill_between([1 / margin, margin], upper, number + 1, color=Ink.BAND.value, linewidth=0)
            axes.plot([1, 1], [upper, number + 1], color=Ink.MUTED.value, linewidth=1)
            _write_texts(axes, row, findings[number], at=number + (0.28 if stacked else 0.5), stacked=stacked)
            _draw_interval(axes, row, at=number + (0.75 if stacked else 0.5))
        label = f"{result.case.baseline} = 1x"
        axes.text(1, -0.12, label, ha=_label_alignment(low, high), color=Ink.MUTED.value, clip_on=False)
        scale.set_ticks(axes, scale.log_ticks(low, high, 5 if width == canvas.NARROW else 7), _ratio)
        axes.set_xlabel("speedup (logarithmic)")
        return figure

    return canvas.draw(name, describe(result), make)


def _finding(row: view.VariantRow) -> str:
    """Return `2.04x (2.01 to 2.07) faster`, or only the verdict if there is no interval."""
    return f"{row.speedup} ({row.interval}) {row.verdict}" if row.bounds else row.verdict or "not compared"


def _write_texts(axes: "Axes", row: view.VariantRow, finding: str, *, at: float, stacked: bool) -> None:
    """Write the variant's name at the left and its finding at the right."""
    ink, _ = VERDICTS.get(row.verdict, (Ink.BAD, ""))

    def write(text: str, side: float, aside: float, **style: Any) -> None:
        axes.annotate(
            text, (side, at), xycoords=axes.get_yaxis_transform(), xytext=(0 if stacked else aside, 0),
            textcoords="offset points", va="center", annotation_clip=False, **style,
        )  # fmt: skip

    write(row.name, 0, -12, ha="left" if stacked else "right", weight="bold")
    write(finding, 1, 12, ha="right" if stacked else "left", color=ink.value)


def _draw_interval(axes: "Axes", row: view.VariantRow, *, at: float) -> None:
    """Draw the interval as a bar and the estimate as a marker, empty if inconclusive."""
    if row.bounds is None:
        return
    ink, marker = VERDICTS.get(row.verdict, (Ink.BAD, "o"))
    axes.plot([row.bounds.lower, row.bounds.upper], [at, at], color=ink.value, linewidth=3, solid_capstyle="butt")
    face = Ink.PAPER.value if row.verdict == "inconclusive" else ink.value
    axes.plot([row.bounds.estimate], [at], marker, markersize=8, color=ink.value, markerfacecolor=face)


def _label_alignment(low: float, high: float) -> str:
    """Return the horizontal alignment that keeps the label at 1 inside the axis from `low` to `high`."""
    share = math.log(1 / low) / math.log(high / low)
    return "left" if share < 0.3 else "right" if share > 0.7 else "center"  # noqa: PLR2004


def _ratio(value: float) -> str:
    return f"{value:,.10g}x"


def describe(result: Result) -> str:
    """Describe the plot in words."""
    findings = [
        f"{row.name} {row.speedup}, {row.interval}, {row.verdict}" if row.bounds else f"{row.name} {row.verdict}"
        for row in view.compared_rows(result)
    ]
    within = f"{100 * float(result.case.measurement.equivalence_margin):.4g} %"
    against = f"Speedups against {result.case.baseline}, with their intervals"
    return f"{against}; within {within} is equivalent: {'; '.join(findings)}."

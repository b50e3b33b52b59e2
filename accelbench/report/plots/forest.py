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
    """Draw the speedups of a case with their intervals; None without an interval.

    The ids in the SVG begin with `name`.
    """
    rows = view.compared_rows(result)
    intervals = [row.bounds for row in rows if row.bounds]
    if not intervals:
        return None
    margin = 1 + float(result.case.measurement.equivalence_margin)
    low = min(1 / margin, *(bounds.lower for bounds in intervals))
    high = max(margin, *(bounds.upper for bounds in intervals))
    axis_margin = max((high / low) ** 0.06, 1.004)  # 6 % of the axis at both ends, at least 0.4 % of a speedup
    low, high = low / axis_margin, high * axis_margin

    findings = [_finding(row) for row in rows]
    names_width = max(canvas.text_width(row.name) for row in rows)
    findings_width = max(map(canvas.text_width, findings))

    def make_figure(width: int) -> "Figure":
        """Draw a row for each variant, with name, interval and verdict, in a figure of this width in pixels."""
        # Heights and margins are in pixels. Texts are next to the intervals or, if the width is too small, above them.
        stacked = names_width + findings_width > MAXIMUM_TEXT_SHARE * width
        left, right = (8, 8) if stacked else (names_width + 16, findings_width + 16)
        row_height = STACKED_ROW if stacked else ROW
        figure = canvas.figure(width, row_height * len(rows) + 66)
        axes = canvas.place(figure, left=left, right=right, top=26, bottom=40)
        axes.set(xscale="log", xlim=(low, high), ylim=(len(rows), 0), yticks=[])
        # Positions inside a row, from 0 (its top) to 1 (its bottom).
        band_top, text_position, interval_position = (0.5, 0.28, 0.75) if stacked else (0.0, 0.5, 0.5)
        for top, (row, finding) in enumerate(zip(rows, findings, strict=True)):
            axes.fill_between([1 / margin, margin], top + band_top, top + 1, color=Ink.BAND.value, linewidth=0)
            axes.plot([1, 1], [top + band_top, top + 1], color=Ink.MUTED.value, linewidth=1)
            _write_texts(axes, row, finding, y=top + text_position, stacked=stacked)
            _draw_interval(axes, row, y=top + interval_position)
        label = f"{result.case.baseline} = 1x"
        axes.text(1, -0.12, label, ha=_label_alignment(low, high), color=Ink.MUTED.value, clip_on=False)
        scale.set_ticks(axes, scale.log_ticks(low, high, 5 if width == canvas.NARROW else 7), scale.format_ratio)
        axes.set_xlabel("speedup (logarithmic)")
        return figure

    return canvas.draw(name, describe(result), make_figure)


def _finding(row: view.VariantRow) -> str:
    """Return the text next to an interval: `2.04x (2.01 to 2.07) faster`; without an interval, only the verdict."""
    if row.bounds:
        return f"{row.speedup} ({row.interval}) {row.verdict}"
    return row.verdict or "not compared"


def _write_texts(axes: "Axes", row: view.VariantRow, finding: str, *, y: float, stacked: bool) -> None:
    """Write a variant's name at the left and its finding at the right.

    The texts are inside the axes if `stacked`, else next to them. `y` is their vertical position.
    """
    ink, _ = VERDICTS.get(row.verdict, (Ink.BAD, ""))

    def write(text: str, x: float, offset_points: float, **style: Any) -> None:
        """Write a text at `x`, from 0 (left end of the axes) to 1 (right end), shifted right by `offset_points`."""
        axes.annotate(
            text, (x, y), xycoords=axes.get_yaxis_transform(), xytext=(offset_points, 0),
            textcoords="offset points", va="center", annotation_clip=False, **style,
        )  # fmt: skip

    if stacked:
        write(row.name, 0, 0, ha="left", weight="bold")
        write(finding, 1, 0, ha="right", color=ink.value)
    else:
        write(row.name, 0, -12, ha="right", weight="bold")
        write(finding, 1, 12, ha="left", color=ink.value)


def _draw_interval(axes: "Axes", row: view.VariantRow, *, y: float) -> None:
    """Draw a variant's interval as a bar, and its estimated speedup as a marker, at the height `y`."""
    if row.bounds is None:
        return
    ink, marker = VERDICTS.get(row.verdict, (Ink.BAD, "o"))
    axes.plot([row.bounds.lower, row.bounds.upper], [y, y], color=ink.value, linewidth=3, solid_capstyle="butt")
    fill = Ink.PAPER.value if row.verdict == "inconclusive" else ink.value
    axes.plot([row.bounds.estimate], [y], marker, markersize=8, color=ink.value, markerfacecolor=fill)


def _label_alignment(low: float, high: float) -> str:
    """Return the horizontal alignment with which a label at x = 1 stays inside an axis from `low` to `high`."""
    position = math.log(1 / low) / math.log(high / low)  # from 0 (left end) to 1 (right end)
    if position < 0.3:  # noqa: PLR2004 - near the left end
        return "left"
    if position > 0.7:  # noqa: PLR2004 - near the right end
        return "right"
    return "center"


def describe(result: Result) -> str:
    """Describe the plot for readers who do not see it: the speedup, interval and verdict of each variant."""
    findings = []
    for row in view.compared_rows(result):
        speedup = f"{row.speedup}, {row.interval}, " if row.bounds else ""
        findings.append(f"{row.name} {speedup}{row.verdict}")
    margin = f"{100 * float(result.case.measurement.equivalence_margin):.4g} %"
    subject = f"Speedups against {result.case.baseline}, with their intervals"
    return f"{subject}; within {margin} is equivalent: {'; '.join(findings)}."

"""Draw speedups with their intervals and the margin of equivalence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from accelbench import figures
from accelbench.api.result import Result
from accelbench.report import view
from accelbench.report.plots import canvas, scale
from accelbench.report.plots.canvas import Ink, Plot
from accelbench.report.table import Bounds

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
"""Colour and matplotlib marker by verdict. Any other text, such as `invalid: parity`, is drawn in `Ink.BAD`."""
MAXIMUM_TEXT_SHARE = 0.6
"""Share of the width that the texts on both sides may take; beyond it they are drawn above the intervals."""
ROW = 32
"""Height in pixels of a row with texts on both sides of the interval."""
STACKED_ROW = 46
"""Height in pixels of a row with a line of text above the interval."""
TWO_LINE_ROW = 64
"""Height in pixels of a row with two lines of text above the interval, for texts that do not fit on one line."""


class Layout(NamedTuple):
    """Place the parts of a row; positions are from 0 (its top) to 1 (its bottom)."""

    row_height: int
    """In pixels."""
    left: float
    right: float
    """Margins next to the intervals, in pixels."""
    stacked: bool
    """True if texts are above the interval, False if they are next to it."""
    name_position: float
    finding_position: float
    band_top: float
    interval_position: float


def choose_layout(width: int, names_width: float, findings_width: float, line_width: float) -> Layout:
    """Return the layout of the rows in a figure of this width; all arguments are in pixels.

    `names_width` is that of the longest name, and `findings_width` that of the longest finding. `line_width` is the
    largest width that the name and the finding of one row take together.
    """
    if names_width + findings_width <= MAXIMUM_TEXT_SHARE * width:
        return Layout(
            row_height=ROW,
            left=names_width + 16,
            right=findings_width + 16,
            stacked=False,
            name_position=0.5,
            finding_position=0.5,
            band_top=0,
            interval_position=0.5,
        )
    one_line = Layout(
        row_height=STACKED_ROW,
        left=8,
        right=8,
        stacked=True,
        name_position=0.28,
        finding_position=0.28,
        band_top=0.5,
        interval_position=0.75,
    )
    if line_width <= width:
        return one_line
    return one_line._replace(
        row_height=TWO_LINE_ROW, name_position=0.17, finding_position=0.43, band_top=0.62, interval_position=0.81
    )


@dataclass(frozen=True)
class ForestRow:
    """Describe one row of a forest plot."""

    name: str
    verdict: str
    """The verdict, or why there is none."""
    bounds: Bounds | None
    margin: float
    """Relative difference that counts as equivalent."""

    @property
    def finding(self) -> str:
        """Return the text next to the interval: `2.04x (2.01 to 2.07) faster`; without one, only the verdict."""
        if self.bounds is None:
            return self.verdict or "not compared"
        interval = figures.interval(self.bounds.lower, self.bounds.upper)
        return f"{figures.speedup(self.bounds.estimate)} ({interval}) {self.verdict}"


def plot(result: Result, name: str) -> Plot | None:
    """Draw the speedups of a case with their intervals; None without an interval.

    The ids in the SVG begin with `name`.
    """
    margin = float(result.case.measurement.equivalence_margin)
    rows = [ForestRow(row.name, row.verdict, row.bounds, margin) for row in view.compared_rows(result)]
    return plot_rows(rows, name, description=describe(result), label_at_one=f"{result.case.baseline} = 1x")


def plot_rows(rows: Sequence[ForestRow], name: str, *, description: str, label_at_one: str) -> Plot | None:
    """Draw rows of speedups with their intervals; None if no row has an interval.

    The ids in the SVG begin with `name`. `description` is for readers who do not see the plot, and `label_at_one` is
    written at a speedup of 1.
    """
    intervals = [row.bounds for row in rows if row.bounds]
    if not intervals:
        return None
    largest_margin = 1 + max(row.margin for row in rows)
    low = min(1 / largest_margin, *(bounds.lower for bounds in intervals))
    high = max(largest_margin, *(bounds.upper for bounds in intervals))
    axis_margin = max((high / low) ** 0.06, 1.004)  # 6 % of the axis at both ends, at least 0.4 % of a speedup
    low, high = low / axis_margin, high * axis_margin

    names_width = max(canvas.text_width(row.name) for row in rows)
    findings_width = max(canvas.text_width(row.finding) for row in rows)
    line_width = max(canvas.text_width(f"{row.name}  {row.finding}") for row in rows)

    def make_figure(width: int) -> "Figure":
        """Draw a row for each variant, with name, interval and verdict, in a figure of this width in pixels."""
        layout = choose_layout(width, names_width, findings_width, line_width)
        figure = canvas.figure(width, layout.row_height * len(rows) + 66)
        axes = canvas.place(figure, left=layout.left, right=layout.right, top=26, bottom=40)
        axes.set(xscale="log", xlim=(low, high), ylim=(len(rows), 0), yticks=[])
        for top, row in enumerate(rows):
            margin, band_top = 1 + row.margin, top + layout.band_top
            axes.fill_between([1 / margin, margin], band_top, top + 1, color=Ink.BAND.value, linewidth=0)
            axes.plot([1, 1], [band_top, top + 1], color=Ink.MUTED.value, linewidth=1)
            _write_texts(axes, row, top, layout)
            _draw_interval(axes, row, y=top + layout.interval_position)
        axes.text(1, -0.12, label_at_one, ha=_label_alignment(low, high), color=Ink.MUTED.value, clip_on=False)
        scale.set_ticks(axes, scale.log_ticks(low, high, 5 if width == canvas.NARROW else 7), scale.format_ratio)
        axes.set_xlabel("speedup (logarithmic)")
        return figure

    return canvas.draw(name, description, make_figure)


def _write_texts(axes: "Axes", row: ForestRow, top: int, layout: Layout) -> None:
    """Write a row's name at the left and its finding at the right; `top` is the vertical position of the row."""
    ink, _ = VERDICTS.get(row.verdict, (Ink.BAD, ""))

    def write(text: str, x: float, position: float, offset_points: float, **style: Any) -> None:
        """Write a text at `x`, from 0 (left end of the axes) to 1 (right end), shifted right by `offset_points`."""
        axes.annotate(
            text, (x, top + position), xycoords=axes.get_yaxis_transform(), xytext=(offset_points, 0),
            textcoords="offset points", va="center", annotation_clip=False, **style,
        )  # fmt: skip

    if layout.stacked:
        write(row.name, 0, layout.name_position, 0, ha="left", weight="bold")
        write(row.finding, 1, layout.finding_position, 0, ha="right", color=ink.value)
    else:
        write(row.name, 0, layout.name_position, -12, ha="right", weight="bold")
        write(row.finding, 1, layout.finding_position, 12, ha="left", color=ink.value)


def _draw_interval(axes: "Axes", row: ForestRow, *, y: float) -> None:
    """Draw a variant's interval as a bar, and its estimated speedup as a marker, at the height `y`."""
    if row.bounds is None:
        return
    ink, marker = VERDICTS.get(row.verdict, (Ink.BAD, "o"))
    axes.plot([row.bounds.lower, row.bounds.upper], [y, y], color=ink.value, linewidth=3, solid_capstyle="butt")
    fill = Ink.PAPER.value if row.verdict == "inconclusive" else ink.value  # a hollow marker: nothing is decided
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

"""Draw the speedup of all work done so far, first call included, to show when compiling pays back.

The answer with its interval is the result's (`Comparison.pays_back`); the curves only illustrate it.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench import figures
from accelbench.api.result import Comparison, Payback, Result
from accelbench.report import details
from accelbench.report.plots import canvas, scale
from accelbench.report.plots.canvas import Ink, Plot
from accelbench.stats.payback import NEGLIGIBLE_SECONDS
from accelbench.verdict.redaction import compared_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MINIMUM_AXIS_STEPS = 1e3
"""The axis of steps ends here or later."""
MAXIMUM_AXIS_STEPS = 1e12
"""The axis of steps ends here or earlier."""
AXIS_FACTOR = 30
"""Ratio of the axis' end to the last answer, so that each curve approaches its limit."""
POINTS = 120
"""Points of each curve."""
BAR = 3
"""Height of an interval in pixels."""


@dataclass(frozen=True)
class Curve:
    """Hold the seconds of the first call, less those of a step, and of each step, for a baseline and a variant."""

    variant: str
    pays_back: Payback
    first_seconds: tuple[float, float]
    """The baseline's and the variant's."""
    step_seconds: tuple[float, float]

    def speedup(self, steps: float) -> float:
        """Return the speedup of all work up to this number of steps; NaN if a total is not positive."""
        baseline, variant = (
            first + steps * step for first, step in zip(self.first_seconds, self.step_seconds, strict=True)
        )
        return baseline / variant if baseline > 0 and variant > 0 else float("nan")


def curves(result: Result) -> tuple[Curve, ...]:
    """Return a curve for each variant whose first call differs from the baseline's by at least `NEGLIGIBLE_SECONDS`."""
    candidates = (_curve(comparison, result) for comparison in result.comparisons)
    return tuple(curve for curve in candidates if curve is not None)


def _curve(comparison: Comparison, result: Result) -> Curve | None:
    """Return the curve of a comparison; None if its first call costs nothing more, or it has no times."""
    answer = comparison.pays_back
    if answer is None or abs(float(answer.extra_seconds)) < NEGLIGIBLE_SECONDS:
        return None
    # Like the answer, the curves use only rounds that both have; otherwise they would cross somewhere else.
    times = compared_seconds(result, comparison)
    if times is None:
        return None
    first_call = float(answer.first_call_seconds)
    return Curve(
        comparison.variant,
        answer,
        first_seconds=(first_call - float(answer.extra_seconds), first_call),
        step_seconds=times,
    )


def plot(result: Result, name: str) -> Plot | None:
    """Draw the curves of all variants; None without one."""
    drawn = curves(result)
    if not drawn:
        return None
    answers = [steps for curve in drawn for steps in (curve.pays_back.steps, curve.pays_back.upper) if steps]
    last = min(MAXIMUM_AXIS_STEPS, max([MINIMUM_AXIS_STEPS, *(steps * AXIS_FACTOR for steps in answers)]))
    steps = [last ** (point / (POINTS - 1)) for point in range(POINTS)]
    heights = [[curve.speedup(count) for count in steps] for curve in drawn]
    shown = [1.0, *(height for line in heights for height in line if not math.isnan(height))]
    low, high = min(shown) / 1.3, max(shown) * 1.3

    def make(width: int) -> "Figure":
        columns = 2 if width == canvas.NARROW else 4
        legend = 22 * -(-len(drawn) // columns) + 30
        figure = canvas.figure(width, legend + 290)
        axes = canvas.place(figure, left=52, right=14, top=legend, bottom=44)
        axes.set(xscale="log", yscale="log", xlim=(1, last), ylim=(low, high))
        scale.set_ticks(axes, scale.log_ticks(1, last, 5 if width == canvas.NARROW else 10), _steps)
        scale.set_ticks(axes, scale.log_ticks(low, high, 8), _ratio, which="y")
        axes.grid(color=Ink.RULE.value, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.axhline(1, color=Ink.MUTED.value, linewidth=1)
        label = f"{result.case.baseline} = 1x"
        axes.annotate(
            label,
            (last, 1),
            xytext=(-4, -6 - BAR * len(drawn) / 2),
            textcoords="offset points",
            ha="right",
            va="top",
            color=Ink.MUTED.value,
        )
        axes.set_xlabel(f"{result.unit}s, the first one included")
        title = "speedup, first call included"
        axes.set_title(title, loc="left", fontsize=canvas.FONT_SIZE, color=Ink.MUTED.value, x=-44 / (width - 66))
        for number, (curve, line) in enumerate(zip(drawn, heights, strict=True)):
            ink, dashes = canvas.series_style(number)
            axes.plot(steps, line, color=ink, linestyle=dashes, linewidth=2, label=curve.variant)
            _draw_answer(axes, curve.pays_back, ink, last, aside=BAR * (number - (len(drawn) - 1) / 2))
        figure.legend(
            loc="upper left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, handlelength=2.2,
            columnspacing=1.4, handletextpad=0.5, borderpad=0.3, labelcolor=Ink.TEXT.value,
        )  # fmt: skip
        return figure

    return canvas.draw(name, describe(result), make)


def _draw_answer(axes: "Axes", answer: Payback, ink: str, last: float, *, aside: float) -> None:
    """Draw the answer as a ring and its interval as a bar, up to the end of the axis if it has no upper end.

    Bars are `aside` pixels away from the line at 1x, so that they do not hide each other.
    """
    from matplotlib.transforms import ScaledTranslation

    if answer.steps is None:
        return
    lower, upper = answer.lower or 1, min(answer.upper or last, last)
    shifted = axes.transData + ScaledTranslation(0, -aside / canvas.POINTS_PER_INCH, axes.figure.dpi_scale_trans)
    axes.plot([lower, upper], [1, 1], color=ink, linewidth=BAR, solid_capstyle="butt", zorder=3, transform=shifted)
    axes.plot([answer.steps], [1], "o", markersize=8, markerfacecolor=Ink.PAPER.value, color=ink, zorder=4)


def _steps(value: float) -> str:
    """Format a number of steps with k, M, G or T."""
    power = max(0, min(4, math.floor(math.log10(value)) // 3))
    return f"{value / 1000**power:g} {'kMGT'[power - 1]}" if power else f"{value:g}"


def _ratio(value: float) -> str:
    return f"{value:,.10g}x"


def describe(result: Result) -> str:
    """Describe the plot in words."""
    drawn = curves(result)
    answers = "; ".join(
        f"{curve.variant} pays back {details.pays_back(curve.pays_back, result.unit)}" for curve in drawn
    )
    ends = "; ".join(
        f"{curve.variant} {figures.speedup(curve.step_seconds[0] / curve.step_seconds[1])}" for curve in drawn
    )
    return f"Speedup over {result.case.baseline} with the first call counted: {answers}. In the long run: {ends}."

"""Draw the speedup of all work done so far, first call included, to show when compiling pays back.

The answer with its interval is the result's (`Comparison.pays_back`); the curves only illustrate it.
"""

import math
from collections.abc import Sequence
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
    """Hold the costs of a variant and of its baseline, from which the speedup after any number of steps follows."""

    variant: str
    pays_back: Payback
    first_seconds: tuple[float, float]
    """Cost of the first call beyond a step, in seconds: the baseline's and the variant's."""
    step_seconds: tuple[float, float]
    """Seconds per step: the baseline's and the variant's."""

    def speedup(self, steps: float) -> float:
        """Return the speedup of the first `steps` steps, first call included; NaN if a total time is not above 0."""
        baseline_first, variant_first = self.first_seconds
        baseline_step, variant_step = self.step_seconds
        baseline_total = baseline_first + steps * baseline_step
        variant_total = variant_first + steps * variant_step
        return baseline_total / variant_total if baseline_total > 0 and variant_total > 0 else math.nan


def curves(result: Result) -> tuple[Curve, ...]:
    """Return a curve for each comparison whose times are known and whose first calls differ."""
    candidates = (_curve(comparison, result) for comparison in result.comparisons)
    return tuple(curve for curve in candidates if curve is not None)


def _curve(comparison: Comparison, result: Result) -> Curve | None:
    """Return the curve of a comparison; None if times are unknown, or if first calls take about equally long."""
    pays_back = comparison.pays_back
    if pays_back is None or abs(float(pays_back.extra_seconds)) < NEGLIGIBLE_SECONDS:
        return None
    # Use the same rounds as `pays_back`, so that the curve crosses 1x where the variant pays back.
    step_seconds = compared_seconds(result, comparison)
    if step_seconds is None:
        return None
    variant_first = float(pays_back.first_call_seconds)
    baseline_first = variant_first - float(pays_back.extra_seconds)
    return Curve(comparison.variant, pays_back, (baseline_first, variant_first), step_seconds)


def plot(result: Result, name: str) -> Plot | None:
    """Draw each variant's speedup over the number of steps, first call included; None if no variant has a curve."""
    drawn_curves = curves(result)
    if not drawn_curves:
        return None
    last_step = _last_step(drawn_curves)
    # The points are evenly spaced on the logarithmic axis, from 1 to the last step.
    steps = [last_step ** (point / (POINTS - 1)) for point in range(POINTS)]
    speedups_by_curve = [[curve.speedup(step) for step in steps] for curve in drawn_curves]
    known_speedups = [speedup for speedups in speedups_by_curve for speedup in speedups if not math.isnan(speedup)]
    # Leave a factor of 1.3 free below and above the curves.
    low = min([1.0, *known_speedups]) / 1.3
    high = max([1.0, *known_speedups]) * 1.3

    def make_figure(width: int) -> "Figure":
        """Draw the curves, the steps at which variants pay back, and a legend, in a figure of this width in pixels."""
        # Heights and margins are in pixels.
        legend_columns = 2 if width == canvas.NARROW else 4
        legend_height = 22 * math.ceil(len(drawn_curves) / legend_columns) + 30
        figure = canvas.figure(width, legend_height + 290)
        axes = canvas.place(figure, left=52, right=14, top=legend_height, bottom=44)
        axes.set(xscale="log", yscale="log", xlim=(1, last_step), ylim=(low, high))
        scale.set_ticks(axes, scale.log_ticks(1, last_step, 5 if width == canvas.NARROW else 10), _format_steps)
        scale.set_ticks(axes, scale.log_ticks(low, high, 8), scale.format_ratio, which="y")
        axes.grid(color=Ink.RULE.value, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.axhline(1, color=Ink.MUTED.value, linewidth=1)
        label = f"{result.case.baseline} = 1x"
        axes.annotate(
            label,
            (last_step, 1),
            xytext=(-4, -6 - BAR * len(drawn_curves) / 2),  # below the bars of the intervals
            textcoords="offset points",
            ha="right",
            va="top",
            color=Ink.MUTED.value,
        )
        axes.set_xlabel(f"{result.unit}s, the first one included")
        title = "speedup, first call included"
        title_x = -44 / (width - 66)  # 44 pixels left of the axes; 66 = 52 + 14
        axes.set_title(title, loc="left", fontsize=canvas.FONT_SIZE, color=Ink.MUTED.value, x=title_x)
        for index, (curve, speedups) in enumerate(zip(drawn_curves, speedups_by_curve, strict=True)):
            colour, dashes = canvas.series_style(index)
            axes.plot(steps, speedups, color=colour, linestyle=dashes, linewidth=2, label=curve.variant)
            offset = BAR * (index - (len(drawn_curves) - 1) / 2)  # so that the middle of all bars is at 1x
            _draw_payback(axes, curve.pays_back, colour, last_step, offset_pixels=offset)
        figure.legend(
            loc="upper left", bbox_to_anchor=(0, 1), ncols=legend_columns, frameon=False, handlelength=2.2,
            columnspacing=1.4, handletextpad=0.5, borderpad=0.3, labelcolor=Ink.TEXT.value,
        )  # fmt: skip
        return figure

    return canvas.draw(name, describe(result), make_figure)


def _last_step(drawn_curves: Sequence[Curve]) -> float:
    """Return the step at which the x axis ends: well after the last step at which a variant pays back, within limits.

    The limits are `MINIMUM_AXIS_STEPS` and `MAXIMUM_AXIS_STEPS`.
    """
    steps = [step for curve in drawn_curves for step in (curve.pays_back.steps, curve.pays_back.upper) if step]
    last_payback_step = max(steps, default=0)
    return min(MAXIMUM_AXIS_STEPS, max(MINIMUM_AXIS_STEPS, last_payback_step * AXIS_FACTOR))


def _draw_payback(axes: "Axes", pays_back: Payback, colour: str, last_step: float, *, offset_pixels: float) -> None:
    """Draw the step at which a variant pays back as a circle, and the interval of steps as a bar.

    Draw nothing for a variant that pays back at once or never. `offset_pixels` moves the bar down (up if below 0),
    which keeps the bars of several variants apart.
    """
    from matplotlib.transforms import ScaledTranslation

    if pays_back.steps is None:
        return
    # Draw an interval without an upper end up to the end of the axis, which begins at step 1.
    lower, upper = pays_back.lower or 1, min(pays_back.upper or last_step, last_step)
    offset = ScaledTranslation(0, -offset_pixels / canvas.POINTS_PER_INCH, axes.figure.dpi_scale_trans)
    axes.plot(
        [lower, upper], [1, 1], color=colour, linewidth=BAR, solid_capstyle="butt", zorder=3,
        transform=axes.transData + offset,
    )  # fmt: skip
    axes.plot([pays_back.steps], [1], "o", markersize=8, markerfacecolor=Ink.PAPER.value, color=colour, zorder=4)


def _format_steps(value: float) -> str:
    """Format a number of steps with a metric prefix: `10 k` for 10,000."""
    power_of_1000 = max(0, min(4, math.floor(math.log10(value)) // 3))
    if power_of_1000 == 0:
        return f"{value:g}"
    return f"{value / 1000**power_of_1000:g} {'kMGT'[power_of_1000 - 1]}"


def describe(result: Result) -> str:
    """Describe the plot for readers who do not see it: when each variant pays back, and its speedup in the long run."""
    answers, long_run_speedups = [], []
    for curve in curves(result):
        answers.append(f"{curve.variant} pays back {details.payback_text(curve.pays_back, result.unit)}")
        baseline_seconds, variant_seconds = curve.step_seconds
        long_run_speedups.append(f"{curve.variant} {figures.speedup(baseline_seconds / variant_seconds)}")
    return (
        f"Speedup over {result.case.baseline} with the first call counted: {'; '.join(answers)}. "
        f"In the long run: {'; '.join(long_run_speedups)}."
    )

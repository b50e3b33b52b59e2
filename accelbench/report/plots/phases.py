"""Draw how long each phase of a launch takes."""

import math
from typing import TYPE_CHECKING, Any

from accelbench import figures
from accelbench.api.result import Phase, Result
from accelbench.report import view
from accelbench.report.plots import canvas, scale
from accelbench.report.plots.canvas import Ink, Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INKS: dict[Phase, Ink] = {
    "import": Ink.SERIES_4,
    "device-init": Ink.SERIES_6,
    "setup": Ink.SERIES_3,
    "compile": Ink.SERIES_2,
    "first-step": Ink.SERIES_1,
    "warm-up": Ink.MUTED,
    "steady": Ink.GREY,
}
"""Colour of each phase; grey is measurement overhead, absent in normal use."""
ROW = 40
"""Height of a variant's row in pixels."""
LEGEND_ROW = 22


def plot(result: Result, name: str) -> Plot | None:
    """Draw the median time of each phase of a launch, in a bar for each variant; None if no phase was reached.

    The ids in the SVG begin with `name`.
    """
    rows = {
        variant.name: {time.phase: float(time.median_seconds) for time in variant.phases}
        for variant in view.baseline_first(result)
        if variant.phases
    }
    if not rows:
        return None
    phases = view.reached_phases(result)
    longest_seconds = max(sum(times.values()) for times in rows.values())

    def make_figure(width: int) -> "Figure":
        """Draw a bar for each variant, with a colour for each phase, in a figure of this width in pixels."""
        from matplotlib.patches import Patch

        # Heights and margins are in pixels.
        legend_columns = 3 if width == canvas.NARROW else len(phases)
        legend_height = LEGEND_ROW * math.ceil(len(phases) / legend_columns) + 8
        figure = canvas.figure(width, ROW * len(rows) + legend_height + 48)
        axes = canvas.place(figure, left=8, right=8, top=legend_height, bottom=44)
        axes.set(xlim=(0, longest_seconds * 1.02), ylim=(len(rows), 0), yticks=[])
        scale.set_ticks(axes, scale.linear_ticks(longest_seconds, 4 if width == canvas.NARROW else 8), _format_seconds)
        axes.set_xlabel("median seconds of a launch")
        full_width = axes.get_yaxis_transform()  # x from 0 (left end) to 1 (right end)
        edge: dict[str, Any] = {"edgecolor": Ink.PAPER.value, "linewidth": 1}
        for row, (variant, times) in enumerate(rows.items()):
            axes.text(0, row + 0.42, variant, transform=full_width, weight="bold")
            total = figures.seconds(sum(times.values()))
            axes.text(1, row + 0.42, total, transform=full_width, ha="right", color=Ink.MUTED.value)
            phase_begins = 0.0
            for phase in phases:
                seconds = times.get(phase, 0.0)
                axes.barh(row + 0.7, seconds, height=0.34, left=phase_begins, color=INKS[phase].value, **edge)
                phase_begins += seconds
        handles = [Patch(color=INKS[phase].value, label=phase, linewidth=0) for phase in phases]
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=legend_columns, frameon=False,
            handlelength=1, handleheight=1, columnspacing=1.4, handletextpad=0.5, borderpad=0.3,
            labelcolor=Ink.TEXT.value,
        )  # fmt: skip
        return figure

    return canvas.draw(name, _describe(rows), make_figure)


def _format_seconds(value: float) -> str:
    return f"{value:g} s"


def _describe(rows: dict[str, dict[Phase, float]]) -> str:
    """Describe the plot for readers who do not see it: how long each variant takes until its first step is done.

    `rows` has the seconds of each phase, by variant.
    """
    texts = []
    for variant, times in rows.items():
        first_phases = {phase: seconds for phase, seconds in times.items() if phase not in {"warm-up", "steady"}}
        text = f"{variant} {figures.seconds(sum(first_phases.values()))}"
        if first_phases:
            longest_phase = max(first_phases, key=lambda phase: first_phases[phase])
            text += f", most of it in {longest_phase}"
        texts.append(text)
    return f"Seconds of a launch until its first step is done: {'; '.join(texts)}."

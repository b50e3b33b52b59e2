"""Draw how long each phase of a launch takes."""

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
    """Draw the phases of each variant that reached one; None if none did."""
    ordered = sorted(result.variants, key=lambda variant: variant.name != result.case.baseline)
    rows = {
        variant.name: {time.phase: float(time.median_seconds) for time in variant.phases}
        for variant in ordered
        if variant.phases
    }
    shown = view.phases_shown(result)
    if not rows:
        return None
    longest = max(sum(times.values()) for times in rows.values())

    def make(width: int) -> "Figure":
        from matplotlib.patches import Patch

        columns = 3 if width == canvas.NARROW else len(shown)
        legend = LEGEND_ROW * -(-len(shown) // columns) + 8
        figure = canvas.figure(width, ROW * len(rows) + legend + 48)
        axes = canvas.place(figure, left=8, right=8, top=legend, bottom=44)
        axes.set(xlim=(0, longest * 1.02), ylim=(len(rows), 0), yticks=[])
        scale.set_ticks(axes, scale.linear_ticks(longest, 4 if width == canvas.NARROW else 8), _seconds)
        axes.set_xlabel("median seconds of a launch")
        across = axes.get_yaxis_transform()
        edge: dict[str, Any] = {"edgecolor": Ink.PAPER.value, "linewidth": 1}
        for number, (variant, times) in enumerate(rows.items()):
            axes.text(0, number + 0.42, variant, transform=across, weight="bold")
            total = figures.seconds(sum(times.values()))
            axes.text(1, number + 0.42, total, transform=across, ha="right", color=Ink.MUTED.value)
            left = 0.0
            for phase in shown:
                seconds = times.get(phase, 0.0)
                axes.barh(number + 0.7, seconds, height=0.34, left=left, color=INKS[phase].value, **edge)
                left += seconds
        handles = [Patch(color=INKS[phase].value, label=phase, linewidth=0) for phase in shown]
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, handlelength=1,
            handleheight=1, columnspacing=1.4, handletextpad=0.5, borderpad=0.3, labelcolor=Ink.TEXT.value,
        )  # fmt: skip
        return figure

    return canvas.draw(name, _describe(rows), make)


def _seconds(value: float) -> str:
    return f"{value:g} s"


def _describe(rows: dict[str, dict[Phase, float]]) -> str:
    """Describe in words how long each variant takes until its first step is done, and its longest phase."""
    sums = []
    for variant, times in rows.items():
        before = sum(seconds for phase, seconds in times.items() if phase not in {"warm-up", "steady"})
        longest = max(
            (phase for phase in times if phase not in {"warm-up", "steady"}), key=lambda p: times[p], default=""
        )
        most = f", most of it in {longest}" if longest else ""
        sums.append(f"{variant} {figures.seconds(before)}{most}")
    return f"Seconds of a launch until its first step is done: {'; '.join(sums)}."

"""Draw the blocks of every launch in the order in which they ran, with drift, steps and outliers."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from accelbench import figures
from accelbench.report.launches import LaunchSeries
from accelbench.report.plots import canvas, scale
from accelbench.report.plots.canvas import Ink, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = 96
"""Height of a variant's panel in pixels."""
MAXIMUM_LINEAR_RATIO = 5
"""Ratio of the slowest to the quickest block of any variant above which the scale of all panels is logarithmic."""
MAXIMUM_BLOCKS = 4000
"""Most blocks to draw in one plot, divided equally between launches; beyond it, extremes of stretches are drawn."""


def plot(
    series: Mapping[str, Sequence[LaunchSeries]],
    name: str,
    *,
    quarantined: AbstractSet[int] = frozenset(),
) -> Plot | None:
    """Draw a panel for each variant over the rounds, with discarded rounds shaded; None if nothing was timed.

    All panels have the same kind of scale, so that they can be compared.
    """
    shown = {variant: launches for variant, launches in series.items() if any(launch.seconds for launch in launches)}
    if not shown:
        return None
    ordered = list(shown)
    rounds = sorted({launch.round for launches in shown.values() for launch in launches})
    logarithmic = any(max(values) > MAXIMUM_LINEAR_RATIO * min(values) for values in map(_values, shown.values()))
    most = max(4, MAXIMUM_BLOCKS // sum(len(launches) for launches in shown.values()))

    def make(width: int) -> "Figure":
        height = PANEL * len(ordered) + 44
        figure = canvas.figure(width, height)
        for number, variant in enumerate(ordered):
            axes = canvas.place(
                figure, left=62, right=14, top=number * PANEL + 26, bottom=height - (number + 1) * PANEL + 8
            )
            axes.set_yscale("log" if logarithmic else "linear")
            _draw_panel(axes, shown[variant], rounds, quarantined, most if width == canvas.WIDE else most // 2)
            axes.set_title(variant, loc="left", fontsize=canvas.FONT_SIZE, weight="bold", x=-54 / (width - 76), pad=5)
            if variant == ordered[-1]:
                labelled = rounds[:: -(-len(rounds) // (8 if width == canvas.NARROW else 20))]
                scale.set_ticks(
                    axes, [rounds.index(round_) + 0.5 for round_ in labelled], lambda at: str(rounds[int(at)])
                )
                axes.tick_params(axis="x", length=0)
                axes.set_xlabel("round (times are logarithmic)" if logarithmic else "round")
        return figure

    return canvas.draw(name, _describe(shown, ordered), make)


def _draw_panel(
    axes: "Axes",
    launches: Sequence[LaunchSeries],
    rounds: Sequence[int],
    quarantined: AbstractSet[int],
    most: int,
) -> None:
    """Draw a variant's launches side by side: blocks as dots, each launch's value as a line."""
    values = _values(launches)
    low, high = min(values), max(values)
    if axes.get_yscale() == "log":
        room = max((high / low) ** 0.12, 1.002)
        axes.set(xlim=(0, len(rounds)), ylim=(low / room, high * room))
    else:
        room = max((high - low) * 0.12, high * 0.002)
        axes.set(xlim=(0, len(rounds)), ylim=(low - room, high + room))
    for slot, round_ in enumerate(rounds):
        if slot:
            axes.axvline(slot, color=Ink.RULE.value, linewidth=0.5)
        if round_ in quarantined:
            axes.axvspan(slot, slot + 1, color=Ink.BAND.value, linewidth=0)
    dots: dict[Ink, tuple[list[float], list[float]]] = {Ink.SERIES_1: ([], []), Ink.GREY: ([], [])}
    for launch in launches:
        slot = rounds.index(launch.round)
        ink = Ink.GREY if launch.round in quarantined else Ink.SERIES_1
        if not launch.has_blocks:
            axes.plot([slot + 0.5] * 2, [min(launch.seconds), max(launch.seconds)], color=ink.value, linewidth=2)
        for index in sample_indices(launch.seconds, most) if launch.has_blocks else ():
            at = slot + 0.06 + 0.88 * (index + 0.5) / len(launch.seconds)
            # A line of zero length with round ends is a dot; this way all dots are one path.
            dots[ink][0].extend((at, at, float("nan")))
            dots[ink][1].extend((launch.seconds[index], launch.seconds[index], float("nan")))
        line = Ink.MUTED if launch.round in quarantined else Ink.TEXT
        axes.plot([slot + 0.06, slot + 0.94], [launch.value] * 2, color=line.value, linewidth=1.2)
    for ink, (xs, ys) in dots.items():
        if xs:
            axes.plot(xs, ys, color=ink.value, linewidth=2.6, solid_capstyle="round", zorder=2)
    axes.spines["bottom"].set_visible(False)
    scale.set_ticks(axes, [], str)
    scale.set_ticks(axes, [low, high] if high > low else [low], figures.seconds, which="y")
    axes.tick_params(axis="y", length=0)


def _values(launches: Sequence[LaunchSeries]) -> list[float]:
    return [seconds for launch in launches for seconds in launch.seconds]


def sample_indices(values: Sequence[float], most: int) -> list[int]:
    """Return indices of at most `most` values: minimum and maximum of each stretch, so that outliers are kept."""
    if len(values) <= most:
        return list(range(len(values)))
    stretches = max(1, most // 2)
    indices: set[int] = set()
    for number in range(stretches):
        first, last = number * len(values) // stretches, (number + 1) * len(values) // stretches
        stretch = range(first, last)
        indices |= {min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)}
    return sorted(indices)


def _describe(shown: Mapping[str, Sequence[LaunchSeries]], ordered: Sequence[str]) -> str:
    """Describe the plot in words."""
    ranges = []
    for variant in ordered:
        values = _values(shown[variant])
        launches = f"{len(shown[variant])} launches"
        ranges.append(f"{variant} {figures.seconds(min(values))} to {figures.seconds(max(values))} ({launches})")
    what = (
        "of every block"
        if all(launch.has_blocks for variant in ordered for launch in shown[variant])
        else "of launches"
    )
    return f"Time per step {what}, in run order: {'; '.join(ranges)}."

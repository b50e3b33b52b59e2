"""Draw the blocks of every launch in the order in which they ran, with drift, steps and outliers."""

import math
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
"""Maximum ratio of a variant's slowest block to its quickest on a linear scale; above it all panels are logarithmic."""
MAXIMUM_BLOCKS = 4000
"""Maximum number of blocks in one plot, divided equally between launches; of more blocks, only extremes are drawn."""


def plot(
    series: Mapping[str, Sequence[LaunchSeries]],
    name: str,
    *,
    quarantined: AbstractSet[int] = frozenset(),
) -> Plot | None:
    """Draw the time of each block of each launch, in a panel for each variant; None if no variant has a time.

    Args:
        series: The launches, by variant.
        name: The beginning of the ids in the SVG.
        quarantined: The numbers of the discarded rounds, which are shaded.
    """
    timed = {variant: launches for variant, launches in series.items() if any(launch.seconds for launch in launches)}
    if not timed:
        return None
    rounds = sorted({launch.round for launches in timed.values() for launch in launches})
    logarithmic = any(max(values) > MAXIMUM_LINEAR_RATIO * min(values) for values in map(_values, timed.values()))
    launch_count = sum(len(launches) for launches in timed.values())
    # The dots of one launch: at least 4, because the narrow drawing has half as many, and `sample_indices` needs 2.
    wide_maximum_dots = max(4, MAXIMUM_BLOCKS // launch_count)

    def make_figure(width: int) -> "Figure":
        """Draw the panels of the variants below each other, in a figure of this width in pixels."""
        # Heights and margins are in pixels.
        maximum_dots = wide_maximum_dots if width == canvas.WIDE else wide_maximum_dots // 2
        height = PANEL * len(timed) + 44
        figure = canvas.figure(width, height)
        for index, (variant, launches) in enumerate(timed.items()):
            top_margin = index * PANEL + 26
            bottom_margin = height - (index + 1) * PANEL + 8
            axes = canvas.place(figure, left=62, right=14, top=top_margin, bottom=bottom_margin)
            axes.set_yscale("log" if logarithmic else "linear")
            _draw_panel(axes, launches, rounds, quarantined, maximum_dots)
            title_x = -54 / (width - 76)  # 54 pixels left of the axes; 76 = 62 + 14
            axes.set_title(variant, loc="left", fontsize=canvas.FONT_SIZE, weight="bold", x=title_x, pad=5)
        # All panels have the same rounds: label them below the last panel only.
        _label_rounds(axes, rounds, maximum=8 if width == canvas.NARROW else 20)
        axes.set_xlabel("round (times are logarithmic)" if logarithmic else "round")
        return figure

    return canvas.draw(name, _describe(timed), make_figure)


def _label_rounds(axes: "Axes", rounds: Sequence[int], *, maximum: int) -> None:
    """Write at most `maximum` numbers of rounds below the axes.

    `rounds[i]` is drawn from x = i to x = i + 1, and its number is in the middle.
    """
    interval = math.ceil(len(rounds) / maximum)  # label each round, or every second one, and so on
    positions = [index + 0.5 for index in range(0, len(rounds), interval)]
    scale.set_ticks(axes, positions, lambda position: str(rounds[int(position)]))
    axes.tick_params(axis="x", length=0)


def _draw_panel(
    axes: "Axes",
    launches: Sequence[LaunchSeries],
    rounds: Sequence[int],
    quarantined: AbstractSet[int],
    maximum_dots: int,
) -> None:
    """Draw a variant's launches side by side, one in each round: blocks as dots, the launch's time as a line.

    At most `maximum_dots` blocks of a launch are drawn. Launches of rounds in `quarantined` are grey.
    """
    values = _values(launches)
    low, high = min(values), max(values)
    axes.set(xlim=(0, len(rounds)))
    _set_vertical_limits(axes, low, high)
    _draw_rounds(axes, rounds, quarantined)
    # Collect the coordinates x and y by colour, so that one call draws all dots of a colour.
    dots: dict[Ink, tuple[list[float], list[float]]] = {Ink.SERIES_1: ([], []), Ink.GREY: ([], [])}
    for launch in launches:
        left = rounds.index(launch.round)
        ink, line_ink = Ink.SERIES_1, Ink.TEXT
        if launch.round in quarantined:
            ink, line_ink = Ink.GREY, Ink.MUTED
        if launch.has_blocks:
            xs, ys = _dot_coordinates(launch, left, maximum_dots)
            dots[ink][0].extend(xs)
            dots[ink][1].extend(ys)
        else:
            # Only quantiles of the blocks are available.
            axes.plot([left + 0.5] * 2, [min(launch.seconds), max(launch.seconds)], color=ink.value, linewidth=2)
        axes.plot([left + 0.06, left + 0.94], [launch.value] * 2, color=line_ink.value, linewidth=1.2)
    for ink, (xs, ys) in dots.items():
        if xs:
            axes.plot(xs, ys, color=ink.value, linewidth=2.6, solid_capstyle="round", zorder=2)
    axes.spines["bottom"].set_visible(False)
    scale.set_ticks(axes, [], str)  # the numbers of rounds are below the last panel only
    scale.set_ticks(axes, [low, high] if high > low else [low], figures.seconds, which="y")
    axes.tick_params(axis="y", length=0)


def _set_vertical_limits(axes: "Axes", low: float, high: float) -> None:
    """Limit the y axis to the range from `low` to `high` and a margin at both ends.

    The margin is 12 % of the range, but at least 0.2 % of `high`. On a logarithmic axis, it is a factor.
    """
    if axes.get_yscale() == "log":
        factor = max((high / low) ** 0.12, 1.002)
        axes.set(ylim=(low / factor, high * factor))
    else:
        margin = max((high - low) * 0.12, high * 0.002)
        axes.set(ylim=(low - margin, high + margin))


def _draw_rounds(axes: "Axes", rounds: Sequence[int], quarantined: AbstractSet[int]) -> None:
    """Draw vertical lines that separate the rounds, and shade the rounds in `quarantined`, which are discarded."""
    for left, round_number in enumerate(rounds):
        if left > 0:
            axes.axvline(left, color=Ink.RULE.value, linewidth=0.5)
        if round_number in quarantined:
            axes.axvspan(left, left + 1, color=Ink.BAND.value, linewidth=0)


def _dot_coordinates(launch: LaunchSeries, left: int, maximum_dots: int) -> tuple[list[float], list[float]]:
    """Return coordinates x and y with which one line draws a dot for each block of a launch.

    A dot is a piece of the line with no length and round ends; NaN makes a gap to the next piece. The launch is drawn
    from x = `left` to `left` + 1, with a margin of 0.06 at both ends.
    """
    xs, ys = [], []
    for index in sample_indices(launch.seconds, maximum_dots):
        x = left + 0.06 + 0.88 * (index + 0.5) / len(launch.seconds)
        y = launch.seconds[index]
        xs += [x, x, math.nan]
        ys += [y, y, math.nan]
    return xs, ys


def _values(launches: Sequence[LaunchSeries]) -> list[float]:
    """Return the times of all blocks of the launches in one list."""
    return [seconds for launch in launches for seconds in launch.seconds]


def sample_indices(values: Sequence[float], maximum: int) -> list[int]:
    """Return the indices of at most `maximum` values, so that a plot of them looks like a plot of all values.

    The smallest and the largest value are always among them. `maximum` must be at least 2.
    """
    if len(values) <= maximum:
        return list(range(len(values)))
    parts = maximum // 2  # choose the smallest and the largest value of each part
    indices: set[int] = set()
    for part in range(parts):
        first, end = part * len(values) // parts, (part + 1) * len(values) // parts
        indices.add(min(range(first, end), key=lambda index: values[index]))
        indices.add(max(range(first, end), key=lambda index: values[index]))
    return sorted(indices)


def _describe(launches_by_variant: Mapping[str, Sequence[LaunchSeries]]) -> str:
    """Describe the plot for readers who do not see it: the range of each variant's times."""
    ranges = []
    for variant, launches in launches_by_variant.items():
        values = _values(launches)
        count = f"{len(launches)} launches"
        ranges.append(f"{variant} {figures.seconds(min(values))} to {figures.seconds(max(values))} ({count})")
    has_blocks = all(launch.has_blocks for launches in launches_by_variant.values() for launch in launches)
    subject = "of every block" if has_blocks else "of launches"
    return f"Time per step {subject}, in run order: {'; '.join(ranges)}."

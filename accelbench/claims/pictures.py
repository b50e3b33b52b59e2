"""Draw the page's pictures as SVG files with colours for both schemes; each has a description in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.claims import training
from accelbench.claims.settle import Settled
from accelbench.claims.words import times
from accelbench.report.plots import canvas, forest, payback, scale
from accelbench.report.plots.canvas import Ink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

    from accelbench.api.result import Result
    from accelbench.report.plots.canvas import Plot

LINE = 30
"""Height of a row of trainings, in pixels."""


def descriptions_by_row(settled: Sequence[Settled]) -> Mapping[int, tuple[str, str]]:
    """Return the name and the description of each row's picture, by row."""
    describers = {"speedups": forest.describe, "pays-back": payback.describe}
    descriptions = {row: describers[shows](result) for row, shows, result in _of_one_result(settled)}
    if rows := _trainings(settled):
        descriptions |= dict.fromkeys(_rows_with_trainings(settled), _description(rows))
    return {row: (f"row-{row}.svg", description) for row, description in sorted(descriptions.items())}


def svg_files(settled: Sequence[Settled]) -> Mapping[str, str]:
    """Return the SVG files by name. Needs matplotlib."""
    painters = {"speedups": forest.plot, "pays-back": payback.plot}
    plots = {row: painters[shows](result, f"row-{row}") for row, shows, result in _of_one_result(settled)}
    if rows := _trainings(settled):
        plots |= dict.fromkeys(_rows_with_trainings(settled), _plot(rows))
    return {f"row-{row}.svg": canvas.standalone(plot) for row, plot in sorted(plots.items()) if plot}


def _of_one_result(settled: Sequence[Settled]) -> "Iterator[tuple[int, str, Result]]":
    """Yield row, kind of picture and result, for each picture of one result."""
    for row in settled:
        for run in (*row.runs, *row.beside):
            if row.claim.picture and run.name == row.claim.picture.of and run.results:
                yield row.claim.row, row.claim.picture.shows, run.results[0]


def _rows_with_trainings(settled: Sequence[Settled]) -> list[int]:
    return [row.claim.row for row in settled if row.claim.picture and row.claim.picture.shows == "trainings"]


@dataclass(frozen=True)
class _Training:
    """Hold a line of the picture: the article's ratio, the bounds, and the measured ratio, if any."""

    name: str
    article: float
    bounds: tuple[float, float]
    measured: tuple[float, float, float] | None


def _trainings(settled: Sequence[Settled]) -> list[_Training]:
    """Return a line for each training of each claim."""
    return [
        _Training(
            name=f"row {row.claim.row}: {one.variant}",
            article=float(one.article),
            bounds=training.bounds(one),
            measured=next(
                filter(None, (training.ratios(one, result) for run in row.runs for result in run.results)), None
            ),
        )
        for row in settled
        for one in row.claim.trainings
    ]


def _description(rows: Sequence[_Training]) -> str:
    """Describe the picture of trainings in words."""
    lines = [
        f"{row.name} {times(row.article)} in the article, "
        + (f"{times(row.measured[1], row.measured[0], row.measured[2])} here" if row.measured else "not measured here")
        for row in rows
    ]
    return f"Whole trainings against the program that each row compares with: {'; '.join(lines)}."


def _plot(rows: Sequence[_Training]) -> "Plot":
    """Draw the picture of trainings: the article's ratios, the confirming ranges, the measured ratios."""
    ends = [end for row in rows for end in (*row.bounds, row.article, *(row.measured or ())) if 0 < end < math.inf]
    low, high = min(ends) / 1.3, max(ends) * 1.3
    first = next((row for row in rows if row.measured), None)
    gutter = max(canvas.text_width(row.name) for row in rows) + 16

    def make(width: int) -> "Figure":
        drawing = canvas.figure(width, LINE * len(rows) + 96)
        axes = canvas.place(drawing, left=gutter, right=16, top=46, bottom=50)
        axes.set(xscale="log", xlim=(low, high), ylim=(len(rows), 0), yticks=[])
        axes.axvline(1, color=Ink.MUTED.value, linewidth=1)
        for number, row in enumerate(rows):
            at = number + 0.5
            shaded = [min(max(end, low), high) for end in row.bounds]
            axes.fill_between(shaded, number + 0.15, number + 0.85, color=Ink.BAND.value, linewidth=0)
            label = "article" if row is rows[0] else None
            axes.plot([row.article], [at], "D", markersize=8, color=Ink.SERIES_2.value, label=label)
            if row.measured:
                least, middle, most = row.measured
                axes.plot([least, most], [at, at], color=Ink.SERIES_1.value, linewidth=3, solid_capstyle="butt")
                label = "here" if row is first else None
                axes.plot([middle], [at], "o", markersize=8, color=Ink.SERIES_1.value, label=label)
            axes.annotate(
                row.name, (0, at), xycoords=axes.get_yaxis_transform(), xytext=(-12, 0),
                textcoords="offset points", ha="right", va="center", annotation_clip=False,
            )  # fmt: skip
        scale.set_ticks(
            axes, scale.log_ticks(low, high, 5 if width == canvas.NARROW else 7), lambda value: f"{value:g}x"
        )
        axes.set_xlabel("times as fast, compiling included (logarithmic); shaded: what confirms the row")
        drawing.legend(loc="upper left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, labelcolor=Ink.TEXT.value)
        return drawing

    return canvas.draw("trainings", _description(rows), make)

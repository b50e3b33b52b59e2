"""Draw the page's pictures as SVG files, with colours for a light and a dark page; each has a description in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from accelbench.claims import training
from accelbench.claims.settle import SettledClaim
from accelbench.claims.words import times
from accelbench.report.plots import canvas, forest, payback, scale
from accelbench.report.plots.canvas import Ink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

    from accelbench.api.result import Result
    from accelbench.claims.ledger import Training
    from accelbench.report.plots.canvas import Plot

LINE_HEIGHT = 30
"""Height of a line of the picture of trainings, in pixels."""
MARGIN_FACTOR = 1.3
"""The axis extends beyond the smallest and the largest ratio by this factor."""


class PictureFile(NamedTuple):
    """Name the SVG file of a row's picture, and describe the picture in words."""

    file_name: str
    description: str


def descriptions_by_row(settled_claims: Sequence[SettledClaim]) -> Mapping[int, PictureFile]:
    """Return the file name and the description of each row's picture, by row."""
    describers = {"speedups": forest.describe, "pays-back": payback.describe}
    descriptions = {row: describers[kind](result) for row, kind, result in _pictures_of_one_result(settled_claims)}
    lines = _training_lines(settled_claims)
    if lines:
        # All rows with trainings show the same picture, which has a line for each training.
        descriptions |= dict.fromkeys(_rows_with_trainings(settled_claims), _describe_trainings(lines))
    return {row: PictureFile(f"row-{row}.svg", description) for row, description in sorted(descriptions.items())}


def svg_files(settled_claims: Sequence[SettledClaim]) -> Mapping[str, str]:
    """Return the text of each row's SVG file, by file name."""
    painters = {"speedups": forest.plot, "pays-back": payback.plot}
    plots = {row: painters[kind](result, f"row-{row}") for row, kind, result in _pictures_of_one_result(settled_claims)}
    lines = _training_lines(settled_claims)
    if lines:
        # All rows with trainings show the same picture, which has a line for each training.
        plots |= dict.fromkeys(_rows_with_trainings(settled_claims), _plot_trainings(lines))
    # A result in which there is nothing to draw has no plot.
    return {f"row-{row}.svg": canvas.standalone(plot) for row, plot in sorted(plots.items()) if plot}


def _pictures_of_one_result(settled_claims: Sequence[SettledClaim]) -> "Iterator[tuple[int, str, Result]]":
    """Yield (row, kind, result) of each picture that shows one result; the kind is `speedups` or `pays-back`."""
    for settled_claim in settled_claims:
        picture = settled_claim.claim.picture
        for run in (*settled_claim.deciding_runs, *settled_claim.other_runs):
            # `of` names the run whose first result is drawn; it is empty for a picture of trainings.
            if picture and run.name == picture.of and run.results:
                yield settled_claim.claim.row, picture.shows, run.results[0]


def _rows_with_trainings(settled_claims: Sequence[SettledClaim]) -> list[int]:
    """Return the rows whose picture shows trainings."""
    claims = [settled_claim.claim for settled_claim in settled_claims]
    return [claim.row for claim in claims if claim.picture and claim.picture.shows == "trainings"]


@dataclass(frozen=True)
class _Line:
    """Hold one line of the picture of trainings; a ratio of 2 means that the variant trains twice as fast."""

    name: str
    article_ratio: float
    bounds: tuple[float, float]
    """The lowest and the highest ratio that confirm the claim."""
    measured: training.TimeRatio | None
    """None if no result has a ratio."""


def _training_lines(settled_claims: Sequence[SettledClaim]) -> list[_Line]:
    """Return a line of the picture for each condition on a whole training, of each claim."""
    return [
        _Line(
            name=f"row {settled_claim.claim.row}: {condition.variant}",
            article_ratio=float(condition.article),
            bounds=training.bounds(condition),
            measured=_first_measured_ratio(condition, settled_claim),
        )
        for settled_claim in settled_claims
        for condition in settled_claim.claim.trainings
    ]


def _first_measured_ratio(condition: "Training", settled_claim: SettledClaim) -> training.TimeRatio | None:
    """Return the ratio of total times from the first result that compares the condition's two variants; else None."""
    for run in settled_claim.deciding_runs:
        for result in run.results:
            ratio = training.total_time_ratio(condition, result)
            if ratio:
                return ratio
    return None


def _describe_trainings(lines: Sequence[_Line]) -> str:
    """Describe the picture of trainings in words: each line's ratio in the article and here."""
    texts = []
    for line in lines:
        measured_text = "not measured here"
        if line.measured:
            measured_text = f"{times(line.measured.typical, line.measured.lowest, line.measured.highest)} here"
        texts.append(f"{line.name} {times(line.article_ratio)} in the article, {measured_text}")
    return f"Whole trainings against the program that each row compares with: {'; '.join(texts)}."


def _plot_trainings(lines: Sequence[_Line]) -> "Plot":
    """Draw a picture with one line for each training."""
    ratios: list[float] = []
    for line in lines:
        ratios += [*line.bounds, line.article_ratio]
        if line.measured:
            ratios += [line.measured.lowest, line.measured.typical, line.measured.highest]
    # A range can begin at 0 or have no upper end; a logarithmic axis can show neither.
    shown_ratios = [ratio for ratio in ratios if 0 < ratio < math.inf]
    axis_minimum, axis_maximum = min(shown_ratios) / MARGIN_FACTOR, max(shown_ratios) * MARGIN_FACTOR
    first_measured_line = next((line for line in lines if line.measured), None)
    left_margin = max(canvas.text_width(line.name) for line in lines) + 16

    def draw_figure(width: int) -> "Figure":
        """Draw the figure, `width` pixels wide."""
        # In pixels: the legend is above the axes, and their label below.
        top_margin, bottom_margin = 46, 50
        drawing = canvas.figure(width, top_margin + LINE_HEIGHT * len(lines) + bottom_margin)
        axes = canvas.place(drawing, left=left_margin, right=16, top=top_margin, bottom=bottom_margin)
        y_limits = (len(lines), 0)  # downwards, so that the first line is at the top
        axes.set(xscale="log", xlim=(axis_minimum, axis_maximum), ylim=y_limits, yticks=[])
        axes.axvline(1, color=Ink.MUTED.value, linewidth=1)  # equally fast
        for index, line in enumerate(lines):
            y = index + 0.5
            # The range that confirms the claim, cut at the ends of the axis; it fills 70 % of the line's height.
            shaded_range = [min(max(bound, axis_minimum), axis_maximum) for bound in line.bounds]
            axes.fill_between(shaded_range, y - 0.35, y + 0.35, color=Ink.BAND.value, linewidth=0)
            # The legend shows each label once, so only the first mark of a kind has one.
            label = "article" if line is lines[0] else None
            axes.plot([line.article_ratio], [y], "D", markersize=8, color=Ink.SERIES_2.value, label=label)
            if line.measured:
                ends = [line.measured.lowest, line.measured.highest]
                axes.plot(ends, [y, y], color=Ink.SERIES_1.value, linewidth=3, solid_capstyle="butt")
                label = "here" if line is first_measured_line else None
                axes.plot([line.measured.typical], [y], "o", markersize=8, color=Ink.SERIES_1.value, label=label)
            axes.annotate(
                line.name, (0, y), xycoords=axes.get_yaxis_transform(), xytext=(-12, 0),
                textcoords="offset points", ha="right", va="center", annotation_clip=False,
            )  # fmt: skip
        tick_count = 5 if width == canvas.NARROW else 7
        ticks = scale.log_ticks(axis_minimum, axis_maximum, tick_count)
        scale.set_ticks(axes, ticks, lambda value: f"{value:g}x")
        axes.set_xlabel("times as fast, compiling included (logarithmic); shaded: what confirms the row")
        drawing.legend(loc="upper left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, labelcolor=Ink.TEXT.value)
        return drawing

    return canvas.draw("trainings", _describe_trainings(lines), draw_figure)

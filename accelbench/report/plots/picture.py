"""Draw the picture that a workload offers of what a case computes: images and curves in panels side by side."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.picture import Numbers, Panel, Picture
from accelbench.report.plots import canvas
from accelbench.report.plots.canvas import Ink, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = {canvas.WIDE: 3, canvas.NARROW: 1}
"""Panels side by side, by the width of the figure."""
PANEL = 250
"""Height in pixels of a panel with its labels."""
LEGEND_ROW = 18
"""Height in pixels of a name in the legend."""
COLOUR_MAP = "cividis"
"""Scale of colours whose brightness rises evenly, so that readers with colour blindness can read it."""


def picture_of(case: Case) -> Picture | None:
    """Return the picture that the case's workload offers; None if it offers none, or is not installed here.

    If it cannot be computed, the picture has no panels, and its caption is the error.
    """
    import numpy as np

    try:
        workload = catalogue.find(case.workload)
    except catalogue.UnknownWorkloadError:
        return None  # a report is written wherever the result is, also without the workload's package
    try:
        parameters = catalogue.parse_parameters(workload, case.parameters)
        return workload.picture(parameters, np.random.default_rng(case.measurement.seed))
    except Exception as error:  # noqa: BLE001 - an error in a workload author's code must not prevent the report
        return Picture(f"The workload's picture could not be computed: {type(error).__name__}: {error}", panels=())


def plot(picture: Picture, name: str) -> Plot:
    """Draw the picture; the ids in the SVG begin with `name`."""
    return canvas.draw(name, describe(picture), lambda width: _make_figure(picture.panels, width))


def describe(picture: Picture) -> str:
    """Describe the picture for readers who do not see it: its caption and the titles of its panels."""
    return f"{picture.caption} Panels: {'; '.join(panel.title for panel in picture.panels)}."


def _make_figure(panels: Sequence[Panel], width: int) -> "Figure":
    """Draw the panels in rows, in a figure of this width in pixels."""
    columns = min(COLUMNS[width], len(panels))
    rows = math.ceil(len(panels) / columns)
    panel_width, panel_height = width / columns, PANEL + LEGEND_ROW * max(map(_legend_rows, panels))
    figure = canvas.figure(width, panel_height * rows)
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        left, top = panel_width * column, panel_height * row
        axes = canvas.place(
            figure,
            left=left + (8 if panel.image is not None else 62),  # 62 pixels hold the labels of a vertical axis
            right=width - left - panel_width + 14,
            top=top + 30,
            bottom=panel_height * rows - top - PANEL + 46,
        )
        axes.set_title(panel.title, fontsize=canvas.FONT_SIZE, color=Ink.TEXT.value, loc="left")
        if panel.image is not None:
            _draw_image(figure, axes, panel.image, panel.colours)
        else:
            _draw_curves(axes, panel)
    return figure


def _draw_image(figure: "Figure", axes: "Axes", image: Numbers, scale_label: str) -> None:
    """Draw an image with square pixels and, unless `scale_label` is empty, a scale of its colours with this label."""
    drawn = axes.imshow(image, cmap=COLOUR_MAP, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines["bottom"].set_visible(False)
    if scale_label:
        scale = figure.colorbar(drawn, ax=axes, location="bottom", pad=0.04, shrink=0.8)
        scale.outline.set_visible(False)
        scale.set_label(scale_label)
        scale.ax.tick_params(colors=Ink.MUTED.value, labelcolor=Ink.MUTED.value)


def _draw_curves(axes: "Axes", panel: Panel) -> None:
    """Draw the panel's curves and points, with a legend below."""
    for index, (label, (x, y)) in enumerate(panel.curves.items()):
        colour, dashes = canvas.series_style(index)
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=1.5, label=label)
    for index, (label, (x, y)) in enumerate(panel.points.items()):
        colour, _ = canvas.series_style(index)
        axes.plot(x, y, "o", color=colour, markersize=5, markerfacecolor=Ink.PAPER.value, label=label)
    axes.set(xlabel=panel.x, ylabel=panel.y)
    if panel.logarithmic:  # the vertical axis, or both
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"1e{round(math.log10(value))}")
        axes.yaxis.set_minor_formatter("")
    if panel.logarithmic == "both":
        axes.set_xscale("log")
        # Label the positions of the points, which are few, in place of powers of ten.
        ticks = sorted({float(position) for x, _ in panel.points.values() for position in x})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axes.minorticks_off()
    if _legend_rows(panel):
        axes.legend(
            loc="upper left", bbox_to_anchor=(0, -0.24), frameon=False, handlelength=1.4,
            labelcolor=Ink.TEXT.value, borderaxespad=0, labelspacing=0.2,
        )  # fmt: skip


def _legend_rows(panel: Panel) -> int:
    """Return how many names the panel's legend has; 0 if the panel has no legend, as with a single curve."""
    names = len(panel.curves) + len(panel.points)
    return names if panel.legend and names > 1 else 0

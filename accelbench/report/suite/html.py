"""Render a suite as one HTML page that needs no network: a heat map, sorted intervals, counts and means. Pure.

Needs the packages of the extra `report`, as the page of a run does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from accelbench.report import html
from accelbench.report.plots import forest
from accelbench.report.plots.canvas import Plot
from accelbench.report.suite import releases, view
from accelbench.report.suite.view import Cell, Outcome, Suite

FULL_COLOUR = 8
"""A cell of the map has its full colour if the speedup, or its inverse, is at least this."""
MAXIMUM_SHARE = 45
"""Percentage of colour in a cell with its full colour; more would make its text hard to read."""
NO_VERDICT_CLASSES: dict[Outcome, str] = {"noisy": "noisy", "not measured": "open"}
"""CSS classes of outcomes without a verdict that are not failures."""
MAP_ABOUT = (
    "The colour is the logarithm of the speedup: none at 1x, full at 8x and more. A hatched cell is undecided. A cell "
    "with a dashed frame has no verdict, and names the reason."
)
FOREST_CAPTION = (
    "Each line is the interval of a speedup over the baseline of its case, the largest speedup first. An interval "
    "inside the shaded margin on either side of 1x is equivalent. Comparisons without an interval are not drawn."
)


@dataclass(frozen=True)
class ShownCell:
    """Hold how the map shows a speedup."""

    css_class: str
    share: int
    """Percentage of the colour."""
    text: str = ""
    """Text of a cell in the legend."""
    cell: Cell | None = None


@dataclass(frozen=True)
class _MapRow:
    """Hold a row of the map."""

    label: str
    baseline: str
    page: str
    cells: tuple[ShownCell, ...]


def report(suite: Suite) -> str:
    """Return the HTML page of a suite."""
    rows = [_MapRow(row.label, row.baseline, row.page, tuple(map(show_cell, row.cells))) for row in suite.compared_rows]
    return html.render(
        "suite.html.j2",
        suite=suite,
        releases=releases,
        suite_css=(files("accelbench.report") / "page" / "suite.css").read_text(encoding="utf-8"),
        map_rows=rows,
        map_about=MAP_ABOUT,
        legend=_legend(),
        forest=_forest(suite),
        forest_caption=FOREST_CAPTION,
        counts=view.count_table(suite),
        means=view.mean_table(suite),
        reasons=view.reason_table(suite),
        findings=view.finding_table(suite),
        comparisons=view.comparison_table(suite),
    )


def show_cell(cell: Cell) -> ShownCell:
    """Return how the map shows a comparison: coloured by its speedup, hatched if undecided, uncoloured without one."""
    if cell.outcome not in view.VERDICTS or cell.bounds is None:
        kind = NO_VERDICT_CLASSES.get(cell.outcome, "")
        return ShownCell(f"none {kind}".rstrip(), 0, cell=cell)
    side = _side(cell.bounds.estimate)
    undecided = "" if cell.is_decided else " undecided"
    return ShownCell(f"{side}{undecided}", colour_share(cell.bounds.estimate), cell=cell)


def colour_share(speedup: float) -> int:
    """Return the percentage of colour of a cell with this speedup; it is the same for a speedup and its inverse."""
    share = min(1.0, abs(math.log(speedup)) / math.log(FULL_COLOUR))
    return round(MAXIMUM_SHARE * share)


def _side(speedup: float) -> str:
    """Return the CSS class of the colour of a speedup."""
    return "above" if speedup >= 1 else "below"


def _legend() -> Sequence[ShownCell]:
    """Return the cells of the legend."""
    scale = ((1 / 8, "1/8x or less"), (1 / 2, "1/2x"), (1, "1x"), (2, "2x"), (8, "8x or more"))
    cells = [ShownCell(_side(speedup), colour_share(speedup), text) for speedup, text in scale]
    return [*cells, ShownCell("undecided", 0, "undecided"), ShownCell("none", 0, "no verdict")]


def _forest(suite: Suite) -> Plot | None:
    """Draw the intervals of all comparisons, sorted by speedup; None without any."""
    cells = suite.sorted_cells
    if not cells:
        return None
    has_one_pair = len(suite.pairs) == 1
    rows = []
    for cell in cells:
        name = cell.case if has_one_pair else f"{cell.case}: {cell.pair.variant}"
        rows.append(forest.ForestRow(name, cell.outcome, cell.bounds, cell.margin))
    findings = (f"{cell.case}: {cell.pair} {row.finding}" for cell, row in zip(cells, rows, strict=True))
    baselines = {pair.baseline for pair in suite.pairs}
    return forest.plot_rows(
        rows,
        "suite-forest",
        description=f"Speedups, sorted: {'; '.join(findings)}.",
        label_at_one=f"{baselines.pop() if len(baselines) == 1 else 'baseline'} = 1x",
    )

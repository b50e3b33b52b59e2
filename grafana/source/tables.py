"""Build tables in one style."""

import math
from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import common, prometheus, table
from grafana_foundation_sdk.models import dashboard as model
from overrides import thresholds
from panels import FULL, NO_RESULT
from queries import DATASOURCE

UNIT, GAP, FRAME = 38, 8, 50
"""Pixels of a unit of height, between two panels, and of a panel's title and edges."""
HEAD, PAGER, LINE = 34, 38, 36
"""Pixels of a table's head, of the row count below, and of a row of one line."""
MINIMUM_WIDTH = 84
"""Minimum width of a column in pixels; in a narrow window the table scrolls and no word is cut."""
MINIMUM_WIDTHS = {
    "Namespace": 92,
    "Series": 118,
    "Case": 128,
    "Variant": 150,
    "Baseline": 122,
    "Launched now": 122,
    "Accelerator": 106,
    "Profile": 106,
    "Verdict": 120,
    "Pays back": 170,
    "Check": 122,
    "Run": 176,
    "Finished (UTC)": 104,
    "Last measured (UTC)": 110,
    "Expectations not met": 104,
}
"""Minimum width in pixels of columns with longer words."""
MOMENT = "time:MM-DD HH:mm"
"""Grafana's unit that shows a time as month, day, hour and minute."""


def height_for_rows(lines: int) -> int:
    """Return the height of a table in which this many rows of one line fit."""
    return math.ceil((FRAME + HEAD + lines * LINE + PAGER + GAP) / UNIT)


class Paged(table.Panel):
    """Add pages and a row count to the SDK's table, whose model lacks them."""

    def build(self) -> model.Panel:
        """Return the panel as Grafana reads it."""
        panel = super().build()
        panel.options = panel.options.to_json() | {"enablePagination": True}  # type: ignore[union-attr]
        return panel


def merged_table(
    title: str,
    description: str,
    columns: Mapping[str, str],
    hidden: Sequence[str],
    *queries: prometheus.Dataquery,
    order: Sequence[str] = (),
    paged: bool = True,
    empty: str = NO_RESULT,
) -> table.Panel:
    """Build a table with one row for each set of labels that the queries share.

    `columns` has the heading of each column, in order; `hidden` names the columns to leave out. Rows are sorted by the
    columns in `order`. Rows that do not fit are on further pages, unless `paged` is False, for a table with few rows.
    """
    panel = Paged() if paged else table.Panel()
    panel = panel.title(title).description(description).datasource(DATASOURCE).height(height_for_rows(6)).span(FULL)
    # Grafana before 12.2 reads the pagination from the footer.
    panel = panel.footer(common.TableFooterOptions().enable_pagination(paged))
    panel = panel.show_header(True).no_value(empty).thresholds(thresholds()).unit("short")
    for query in queries:
        panel = panel.with_target(query)
    column_options = {
        "excludeByName": dict.fromkeys(("Time", *hidden), True),
        "indexByName": {name: place for place, name in enumerate(columns)},
        "renameByName": dict(columns),
    }
    panel = panel.with_transformation(model.DataTransformerConfig("merge", options={}))
    panel = panel.with_transformation(model.DataTransformerConfig("organize", options=column_options))
    for column in reversed(order):
        sort_options = {"sort": [{"field": column, "desc": False}]}
        panel = panel.with_transformation(model.DataTransformerConfig("sortBy", options=sort_options))
    cells = {"noValue": "–", "custom.wrapText": True, "custom.wrapHeaderText": True, "custom.minWidth": MINIMUM_WIDTH}
    panel = panel.override_by_regexp(".*", [model.DynamicConfigValue(name, value) for name, value in cells.items()])
    for name in columns.values():
        if name in MINIMUM_WIDTHS:
            panel = panel.override_by_name(name, [model.DynamicConfigValue("custom.minWidth", MINIMUM_WIDTHS[name])])
    return panel


def with_widths(panel: table.Panel, pixels: Mapping[str, int]) -> table.Panel:
    """Give these columns their widths, and let the others share what is left."""
    for name, width in pixels.items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue("custom.width", width)])
    return panel

"""Tables in the house style."""

import math
from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import common, prometheus, table
from grafana_foundation_sdk.models import dashboard as model
from overrides import limits
from panels import FULL, NO_RESULT
from queries import DATASOURCE

UNIT, GAP, FRAME = 38, 8, 50
"""Pixels: of a unit of height, between two panels, and of a panel's title and edges."""
HEAD, PAGER, LINE = 34, 38, 36
"""Pixels of a table: its head, the count of its rows below it, and a row of one line."""
LEAST = 84
"""Pixels of a column: it takes what there is beyond; in a narrow window the table scrolls rather than cut a word."""
WIDER = {
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
"""Of columns that hold longer words."""
MOMENT = "time:MM-DD HH:mm"
"""A unit: a moment, in as few characters as tell it."""


def fitting(lines: int) -> int:
    """The height of a table in which so many rows of one line are whole."""
    return math.ceil((FRAME + HEAD + lines * LINE + PAGER + GAP) / UNIT)


class Paged(table.Panel):
    """A table of pages, which says how many rows there are; the SDK's model leaves the option out."""

    def build(self) -> model.Panel:
        """The panel as Grafana reads it."""
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
    """One row for each set of labels that the queries share; `columns` renames and orders, `hidden` leaves out.

    Rows are in the `order` of these columns. Those that do not fit are on further pages, except in a table that never
    has many.
    """
    panel = Paged() if paged else table.Panel()
    panel = panel.title(title).description(description).datasource(DATASOURCE).height(fitting(6)).span(FULL)
    # Grafana before 12.2 reads it here.
    panel = panel.footer(common.TableFooterOptions().enable_pagination(paged))
    panel = panel.show_header(True).no_value(empty).thresholds(limits()).unit("short")
    for query in queries:
        panel = panel.with_target(query)
    organized = {
        "excludeByName": dict.fromkeys(("Time", *hidden), True),
        "indexByName": {name: place for place, name in enumerate(columns)},
        "renameByName": dict(columns),
    }
    panel = panel.with_transformation(model.DataTransformerConfig("merge", options={}))
    panel = panel.with_transformation(model.DataTransformerConfig("organize", options=organized))
    for column in reversed(order):
        by = {"sort": [{"field": column, "desc": False}]}
        panel = panel.with_transformation(model.DataTransformerConfig("sortBy", options=by))
    cells = {"noValue": "–", "custom.wrapText": True, "custom.wrapHeaderText": True, "custom.minWidth": LEAST}
    panel = panel.override_by_regexp(".*", [model.DynamicConfigValue(*each) for each in cells.items()])
    for name in columns.values():
        if name in WIDER:
            panel = panel.override_by_name(name, [model.DynamicConfigValue("custom.minWidth", WIDER[name])])
    return panel


def with_widths(panel: table.Panel, pixels: Mapping[str, int]) -> table.Panel:
    """The table with these columns as wide as given, and the others sharing what is left."""
    for name, width in pixels.items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue("custom.width", width)])
    return panel

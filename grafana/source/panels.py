"""Build line, number, bar and text panels in one style."""

import string

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, text, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.text import TextMode
from overrides import thresholds
from queries import DATASOURCE

FULL, HALF, THIRD, QUARTER = 24, 12, 8, 6
NO_RESULT = "No result in this time range. Widen it, or see which runs there are: kubectl get bmr -A"
NO_OPERATOR = "The operator is not scraped. Enable metrics.serviceMonitor in the chart's values, or scrape port 9090."


def lines(
    title: str, description: str, unit: str, *queries: prometheus.Dataquery, empty: str = NO_RESULT
) -> timeseries.Panel:
    """Build lines over time with a legend below; `empty` is the text without data."""
    panel = timeseries.Panel().title(title).description(description).datasource(DATASOURCE).unit(unit).no_value(empty)
    panel = panel.height(8).span(HALF).line_width(2).fill_opacity(0).show_points(style.VisibilityMode.NEVER)
    panel = (
        panel.thresholds(thresholds())
        .color_scheme(_classic())
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(style.LegendDisplayMode.LIST)
            .placement(style.LegendPlacement.BOTTOM)
            .calcs([])
        )
    )
    panel = panel.tooltip(
        common.VizTooltipOptions().mode(style.TooltipDisplayMode.MULTI).sort(style.SortOrder.DESCENDING)
    )
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        panel = panel.with_target(query.ref_id(letter))
    return panel


def number(
    title: str, description: str, unit: str, query: prometheus.Dataquery, *, empty: str = NO_OPERATOR
) -> stat.Panel:
    """Build a panel that shows one or a few current values in large type; `empty` is the text without data."""
    panel = stat.Panel().title(title).description(description).datasource(DATASOURCE).unit(unit).no_value(empty)
    panel = panel.height(4).span(QUARTER).graph_mode(style.BigValueGraphMode.NONE)
    panel = panel.color_mode(style.BigValueColorMode.VALUE).thresholds(thresholds())
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    return panel.with_target(query.ref_id("A"))


class Bars(bargauge.Panel):
    """Add to the SDK's bar gauge the options that its model lacks."""

    def build(self) -> model.Panel:
        """Return the panel as Grafana reads it."""
        panel = super().build()
        options = panel.options.to_json()  # type: ignore[union-attr]
        panel.options = options | {"namePlacement": "top", "sizing": "manual", "minVizHeight": 34, "maxVizHeight": 34}
        return panel


def bars(
    title: str, description: str, unit: str, *queries: prometheus.Dataquery, empty: str = NO_RESULT
) -> bargauge.Panel:
    """Build horizontal bars from 0, one for each series, with its name above; `empty` is the text without data."""
    panel = (
        Bars()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value(empty)
        .min(0)
        .height(8)
        .span(HALF)
        .thresholds(thresholds())
        .orientation(style.VizOrientation.HORIZONTAL)
        .display_mode(style.BarGaugeDisplayMode.BASIC)
        .show_unfilled(False)
        .text(common.VizTextDisplayOptions().title_size(13).value_size(14))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    )
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        panel = panel.with_target(query.ref_id(letter))
    return panel


def markdown_panel(title: str, description: str, content: str) -> text.Panel:
    """Build a text panel of Markdown."""
    panel = text.Panel().title(title).description(description).mode(TextMode.MARKDOWN).content(content)
    return panel.height(5).span(FULL)


def _classic() -> build.FieldColor:
    """Return Grafana's setting that gives each line the next colour of its palette."""
    return build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC)

"""What every dashboard of accelbench has in common: its variables, its selectors, and panels with a house style."""

import string

from grafana_foundation_sdk.builders import common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
OPERATOR = 'job=~"$job", instance=~"$instance"'
"""Selects the operator's own health."""
RUNS = f'{OPERATOR}, namespace=~"$namespace"'
RESULTS = f'{RUNS}, series=~"$series"'
"""Selects what is known of results."""

FULL, HALF, QUARTER = 24, 12, 6


def variables() -> list[build.QueryVariable | build.DatasourceVariable]:
    """Data source, the operator that is scraped, and the namespaces and series that are shown."""
    source = build.DatasourceVariable("datasource").label("Data source").type("prometheus")
    return [
        source.current(model.VariableOption(text="Prometheus", value="prometheus", selected=True)),
        _variable("job", "Job", "label_values(accelbench_build_info, job)"),
        _variable("instance", "Instance", 'label_values(accelbench_build_info{job=~"$job"}, instance)'),
        _variable("namespace", "Namespace", f"label_values(accelbench_run_info{{{OPERATOR}}}, namespace)"),
        _variable("series", "Series", f"label_values(accelbench_run_info{{{RUNS}}}, series)"),
    ]


def _variable(name: str, label: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(query)
        .current(model.VariableOption(text="All", value="$__all", selected=True))
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".+")
    )


def over_time(expression: str, legend: str) -> prometheus.Dataquery:
    """A query for a line; `legend` names labels as {{label}}."""
    return prometheus.Dataquery().datasource(DATASOURCE).expr(expression).range().legend_format(legend)


def now(expression: str, legend: str = "") -> prometheus.Dataquery:
    """A query for the present value."""
    return prometheus.Dataquery().datasource(DATASOURCE).expr(expression).instant().legend_format(legend)


def rows(name: str, expression: str) -> prometheus.Dataquery:
    """A query for a table; its value is in the column `Value #name`."""
    query = prometheus.Dataquery().datasource(DATASOURCE).expr(expression).instant().ref_id(name)
    return query.format(PromQueryFormat.TABLE)


def lines(title: str, description: str, unit: str, *queries: prometheus.Dataquery) -> timeseries.Panel:
    """Lines over time, with the last values below."""
    panel = timeseries.Panel().title(title).description(description).datasource(DATASOURCE).unit(unit)
    panel = panel.height(8).span(HALF).line_width(2).fill_opacity(0).show_points(style.VisibilityMode.NEVER)
    panel = panel.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(style.LegendDisplayMode.TABLE)
        .placement(style.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull"])
    )
    panel = panel.tooltip(common.VizTooltipOptions().mode(style.TooltipDisplayMode.MULTI))
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        panel = panel.with_target(query.ref_id(letter))
    return panel


def number(title: str, description: str, unit: str, query: prometheus.Dataquery) -> stat.Panel:
    """One or a few present values, large."""
    panel = stat.Panel().title(title).description(description).datasource(DATASOURCE).unit(unit)
    panel = panel.height(4).span(QUARTER).graph_mode(style.BigValueGraphMode.NONE)
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    return panel.with_target(query.ref_id("A"))


def merged_table(
    title: str, description: str, columns: dict[str, str], hidden: tuple[str, ...], *queries: prometheus.Dataquery
) -> table.Panel:
    """One row for each set of labels that the queries share; `columns` renames and orders, `hidden` leaves out."""
    panel = table.Panel().title(title).description(description).datasource(DATASOURCE).height(9).span(FULL)
    panel = panel.show_header(True)
    for query in queries:
        panel = panel.with_target(query)
    return panel.with_transformation(model.DataTransformerConfig("merge", options={})).with_transformation(
        model.DataTransformerConfig(
            "organize",
            options={
                "excludeByName": dict.fromkeys(("Time", *hidden), True),
                "indexByName": {name: place for place, name in enumerate(columns)},
                "renameByName": columns,
            },
        )
    )


def unit_of(unit: str, decimals: int | None = None) -> list[model.DynamicConfigValue]:
    """An override's unit and decimals."""
    values = [model.DynamicConfigValue("unit", unit)]
    return values if decimals is None else [*values, model.DynamicConfigValue("decimals", decimals)]


def coloured(words: dict[str, str]) -> list[model.DynamicConfigValue]:
    """An override that colours a text cell by what it says."""
    options = {word: model.ValueMappingResult(color=colour) for word, colour in words.items()}
    return [
        model.DynamicConfigValue("mappings", [model.ValueMap(options=options)]),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
    ]

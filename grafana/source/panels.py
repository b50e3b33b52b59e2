"""What every dashboard of accelbench has in common: variables, selectors, links, and panels with a house style."""

import math
import string
from collections.abc import Mapping, Sequence
from typing import TypeVar

from colours import BAD, FRAMEWORKS, GOOD, NEUTRAL, OTHER, VERDICTS
from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, table, text, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.text import TextMode

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
OPERATOR = 'job=~"$job", instance=~"$instance"'
"""Selects the operator's own health."""
RUNS = f'{OPERATOR}, namespace=~"$namespace"'
RESULTS = f'{RUNS}, series=~"$series"'
"""Selects what is known of results."""
Drawn = TypeVar("Drawn", timeseries.Panel, bargauge.Panel)

VARIANT = "{{framework}}/{{mode}}"
"""What a line of a variant is called; see `readable`."""

FULL, HALF, THIRD, QUARTER = 24, 12, 8, 6
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
NO_RESULT = "No result in this time range. Widen it, or see which runs there are: kubectl get bmr -A"
NO_OPERATOR = "The operator is not scraped. Enable metrics.serviceMonitor in the chart's values, or scrape port 9090."


def dashboard(name: str, description: str, *variables: build.QueryVariable) -> build.Dashboard:
    """A dashboard with the variables that all have, then its own, each narrowed by those before it."""
    made = (
        build.Dashboard(f"accelbench / {name}")
        .uid(f"accelbench-{name.lower().replace(' ', '-')}")
        .description(description)
        .tags(["accelbench", "benchmark"])
        .readonly()
        .time("now-7d", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(
            build.DashboardLink("accelbench")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags(["accelbench"])
            .as_dropdown(True)
            .keep_time(True)
            .include_vars(True)
        )
    )
    source = build.DatasourceVariable("datasource").label("Data source").type("prometheus")
    made = made.with_variable(
        source.current(model.VariableOption(text="Prometheus", value="prometheus", selected=True))
    )
    everywhere = (
        several("job", "Job", "label_values(accelbench_build_info, job)"),
        several("instance", "Instance", 'label_values(accelbench_build_info{job=~"$job"}, instance)'),
    )
    for variable in (*everywhere, *variables):
        made = made.with_variable(variable)
    return made


def namespaces() -> build.QueryVariable:
    """The namespaces that have results."""
    return several("namespace", "Namespace", f"label_values(accelbench_run_info{{{OPERATOR}}}, namespace)")


def several(name: str, label: str, query: str) -> build.QueryVariable:
    """A variable of which any number can be chosen, and all are at first."""
    return _variable(name, label, query).multi(True).include_all(True).all_value(".+").current(_all())


def each(name: str, label: str, query: str) -> build.QueryVariable:
    """The same for a panel that is repeated for each."""
    return _variable(name, label, query).multi(True).include_all(True).current(_all())


def one(name: str, label: str, query: str) -> build.QueryVariable:
    """A variable of which one value is chosen, the first at first."""
    return _variable(name, label, query).multi(False).include_all(False)


def _all() -> model.VariableOption:
    return model.VariableOption(text="All", value="$__all", selected=True)


def _variable(name: str, label: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )


class Annotation(model.AnnotationQuery):
    """An annotation of Prometheus, with the text that the SDK's model leaves out."""

    def build(self) -> "Annotation":
        """Itself: builders of dashboards ask for it."""
        return self

    def to_json(self) -> dict[str, object]:
        """As Grafana reads it."""
        return {**super().to_json(), "titleFormat": "{{series}} {{case}} {{variant}}: {{verdict}}"}


def verdicts_that_changed(selector: str) -> Annotation:
    """A mark where a verdict stands that did not stand one step before."""
    standing = f"max by (series, case, variant, verdict) (accelbench_verdict{{{selector}}} == 1)"
    before = f"max by (series, case, variant, verdict) (accelbench_verdict{{{selector}}} offset $__interval == 1)"
    known = f"max by (series, case, variant) (accelbench_verdict{{{selector}}} offset $__interval)"
    return Annotation(
        name="Verdicts that changed",
        datasource=DATASOURCE,
        enable=True,
        icon_color=NEUTRAL,
        expr=f"({standing} unless {before}) and on (series, case, variant) {known}",
    )


def readable(expression: str) -> str:
    """The same with labels that read well: `mode` is jit for `jax/jit`, `swept` the case without hash, or empty."""
    mode = f'label_replace({expression}, "mode", "$1", "variant", "(?:[a-z]+/)?(.+)")'
    return f'label_replace({mode}, "swept", "$1", "case", "(?:all|(.+?)(?:-[0-9a-f]{{10}})?)")'


def or_none(expression: str) -> str:
    """The same, or 0 where the operator is scraped and there is nothing to count: without it, nothing."""
    return f"{expression} or 0 * max(accelbench_build_info{{{OPERATOR}}})"


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


def lines(
    title: str, description: str, unit: str, *queries: prometheus.Dataquery, empty: str = NO_RESULT
) -> timeseries.Panel:
    """Lines over time with their names below; `empty` is what it says without data."""
    panel = timeseries.Panel().title(title).description(description).datasource(DATASOURCE).unit(unit).no_value(empty)
    panel = panel.height(8).span(HALF).line_width(2).fill_opacity(0).show_points(style.VisibilityMode.NEVER)
    panel = (
        panel.thresholds(_plain())
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
    """One or a few present values, large."""
    panel = stat.Panel().title(title).description(description).datasource(DATASOURCE).unit(unit).no_value(empty)
    panel = panel.height(4).span(QUARTER).graph_mode(style.BigValueGraphMode.NONE)
    panel = panel.color_mode(style.BigValueColorMode.VALUE).thresholds(_plain())
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    return panel.with_target(query.ref_id("A"))


class Bars(bargauge.Panel):
    """A bar gauge with the options that the SDK's model leaves out."""

    def build(self) -> model.Panel:
        """The panel as Grafana reads it."""
        panel = super().build()
        options = panel.options.to_json()  # type: ignore[union-attr]
        panel.options = options | {"namePlacement": "top", "sizing": "manual", "minVizHeight": 34, "maxVizHeight": 34}
        return panel


def bars(
    title: str, description: str, unit: str, *queries: prometheus.Dataquery, empty: str = NO_RESULT
) -> bargauge.Panel:
    """A horizontal bar for each series, from 0, as thick as a line of text, its name above it."""
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
        .thresholds(_plain())
        .orientation(style.VizOrientation.HORIZONTAL)
        .display_mode(style.BarGaugeDisplayMode.BASIC)
        .show_unfilled(False)
        .text(common.VizTextDisplayOptions().title_size(13).value_size(14))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    )
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        panel = panel.with_target(query.ref_id(letter))
    return panel


def words(title: str, description: str, content: str) -> text.Panel:
    """Text, in Markdown."""
    panel = text.Panel().title(title).description(description).mode(TextMode.MARKDOWN).content(content)
    return panel.height(5).span(FULL)


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
    panel = panel.show_header(True).no_value(empty).thresholds(_plain()).unit("short")
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


def unit_of(unit: str, decimals: int | None = None) -> list[model.DynamicConfigValue]:
    """An override's unit and decimals."""
    values = [model.DynamicConfigValue("unit", unit)]
    return values if decimals is None else [*values, model.DynamicConfigValue("decimals", decimals)]


def linked(title: str, url: str) -> list[model.DynamicConfigValue]:
    """An override that makes a cell a link."""
    return [model.DynamicConfigValue("links", [{"title": title, "url": url}])]


def to_dashboard(name: str, **variables: str) -> str:
    """The address of a dashboard, over the same time, with values chosen: a field's by its column, as `Series`."""
    chosen = "".join(f"&var-{key}={value}" for key, value in variables.items())
    return f"/d/accelbench-{name}?${{datasource:queryparam}}{chosen}&${{__url_time_range}}"


def field(column: str) -> str:
    """The value of that column in the row that a link stands in."""
    return f'${{__data.fields["{column}"]}}'


def one_colour(colour: str) -> list[model.DynamicConfigValue]:
    """An override's colour."""
    return [model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})]


def dashed(*pixels: int) -> list[model.DynamicConfigValue]:
    """An override that dashes a line: so many pixels drawn, so many left out."""
    return [model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": list(pixels)})]


def in_framework_colours(panel: Drawn) -> Drawn:
    """The panel with every framework in its colour; names are those of `VARIANT`.

    Variants of a framework share it: lines of what is not compiled are dashed, those of a variant's variant dotted.
    """
    panel = panel.override_by_regexp("/\\//", one_colour(OTHER))
    for framework, colour in FRAMEWORKS.items():
        panel = panel.override_by_regexp(rf"/\b{framework}\//", one_colour(colour))
    if isinstance(panel, timeseries.Panel):
        panel = panel.override_by_regexp(r"/\/\w+-[\w-]+$/", dashed(2, 5))
        panel = panel.override_by_regexp(r"/\/(eager|op-by-op)$/", dashed(10, 6))
    return panel


def in_colours(panel: timeseries.Panel, colours: Mapping[str, str]) -> timeseries.Panel:
    """The panel with each name in its colour."""
    for name, colour in colours.items():
        panel = panel.override_by_name(name, one_colour(colour))
    return panel


def in_verdict_colours(panel: timeseries.Panel) -> timeseries.Panel:
    """The panel with each verdict in its colour, and its sign before its name."""
    panel = in_colours(panel, {verdict: colour for verdict, (_, colour) in VERDICTS.items()})
    for verdict, (sign, _) in VERDICTS.items():
        panel = panel.override_by_name(verdict, [model.DynamicConfigValue("displayName", f"{sign} {verdict}")])
    return panel


def verdict_cells() -> list[model.DynamicConfigValue]:
    """An override of a column of verdicts: a sign, the word, and its colour."""
    options = {
        verdict: model.ValueMappingResult(text=f"{sign} {verdict}", color=colour)
        for verdict, (sign, colour) in VERDICTS.items()
    }
    return [
        model.DynamicConfigValue("mappings", [model.ValueMap(options=options)]),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text", "wrapText": True}),
    ]


def yes_or_no() -> list[model.DynamicConfigValue]:
    """An override of a column of 1 and 0."""
    options = {
        "1": model.ValueMappingResult(text="yes", color=GOOD),
        "0": model.ValueMappingResult(text="× no", color=BAD),
    }
    return [
        model.DynamicConfigValue("mappings", [model.ValueMap(options=options)]),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
    ]


def limits(*steps: tuple[float, str]) -> build.ThresholdsConfig:
    """Thresholds: the base in the neutral colour, then a colour from each value on."""
    made = [model.Threshold(value=None, color=NEUTRAL), *(model.Threshold(value=at, color=how) for at, how in steps)]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(made)


def _plain() -> build.ThresholdsConfig:
    """None: Grafana's own would turn 80 and more red, whatever it is."""
    return limits()


def _classic() -> build.FieldColor:
    return build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC)

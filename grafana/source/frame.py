"""What stands around panels: a dashboard with its variables, links to it, and marks over time."""

from colours import NEUTRAL
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model
from queries import DATASOURCE, OPERATOR


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


def to_dashboard(name: str, **variables: str) -> str:
    """The address of a dashboard, over the same time, with values chosen: a field's by its column, as `Series`."""
    chosen = "".join(f"&var-{key}={value}" for key, value in variables.items())
    return f"/d/accelbench-{name}?${{datasource:queryparam}}{chosen}&${{__url_time_range}}"


def field(column: str) -> str:
    """The value of that column in the row that a link stands in."""
    return f'${{__data.fields["{column}"]}}'

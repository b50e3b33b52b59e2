"""Build the frame of a dashboard: variables, links and annotations."""

from colours import NEUTRAL
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model
from queries import DATASOURCE, OPERATOR


def dashboard(name: str, description: str, *variables: build.QueryVariable) -> build.Dashboard:
    """Build a dashboard with the common variables and then its own; each filters the values of those after it."""
    board = (
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
    board = board.with_variable(
        source.current(model.VariableOption(text="Prometheus", value="prometheus", selected=True))
    )
    common_variables = (
        multiple_choice("job", "Job", "label_values(accelbench_build_info, job)"),
        multiple_choice("instance", "Instance", 'label_values(accelbench_build_info{job=~"$job"}, instance)'),
    )
    for variable in (*common_variables, *variables):
        board = board.with_variable(variable)
    return board


def namespaces() -> build.QueryVariable:
    """Build the variable of namespaces that have results."""
    return multiple_choice("namespace", "Namespace", f"label_values(accelbench_run_info{{{OPERATOR}}}, namespace)")


def multiple_choice(name: str, label: str, query: str) -> build.QueryVariable:
    """Build a variable with any number of values, by default all."""
    return _variable(name, label, query).multi(True).include_all(True).all_value(".+").current(_all())


def repeated_choice(name: str, label: str, query: str) -> build.QueryVariable:
    """Build a variable for a panel that repeats for each value."""
    return _variable(name, label, query).multi(True).include_all(True).current(_all())


def single_choice(name: str, label: str, query: str) -> build.QueryVariable:
    """Build a variable with one value, by default the first."""
    return _variable(name, label, query).multi(False).include_all(False)


def _all() -> model.VariableOption:
    """Return the option that selects all values of a variable."""
    return model.VariableOption(text="All", value="$__all", selected=True)


def _variable(name: str, label: str, query: str) -> build.QueryVariable:
    """Build a variable whose values a query finds, sorted by name."""
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )


class Annotation(model.AnnotationQuery):
    """Add to the SDK's annotation the text that its model lacks."""

    def build(self) -> "Annotation":
        """Return the annotation itself, as dashboard builders require."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the annotation as Grafana reads it."""
        return {**super().to_json(), "titleFormat": "{{series}} {{case}} {{variant}}: {{verdict}}"}


def verdicts_that_changed(selector: str) -> Annotation:
    """Build the annotation of verdicts that differ from those of the previous step of the graph."""
    current = f"max by (series, case, variant, verdict) (accelbench_verdict{{{selector}}} == 1)"
    previous = f"max by (series, case, variant, verdict) (accelbench_verdict{{{selector}}} offset $__interval == 1)"
    compared_before = f"max by (series, case, variant) (accelbench_verdict{{{selector}}} offset $__interval)"
    return Annotation(
        name="Verdicts that changed",
        datasource=DATASOURCE,
        enable=True,
        icon_color=NEUTRAL,
        expr=f"({current} unless {previous}) and on (series, case, variant) {compared_before}",
    )


def to_dashboard(name: str, **variables: str) -> str:
    """Return the address of a dashboard with the same time range, and with these values of its variables."""
    parameters = "".join(f"&var-{key}={value}" for key, value in variables.items())
    return f"/d/accelbench-{name}?${{datasource:queryparam}}{parameters}&${{__url_time_range}}"


def field(column: str) -> str:
    """Return Grafana's template for the value of this column in the row with the link."""
    return f'${{__data.fields["{column}"]}}'

"""Build queries: selectors, and queries for lines, numbers and tables."""

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
OPERATOR = 'job=~"$job", instance=~"$instance"'
"""Selector of the operator's own metrics."""
RUNS = f'{OPERATOR}, namespace=~"$namespace"'
RESULTS = f'{RUNS}, series=~"$series"'
"""Selector of metrics of results."""
VARIANT = "{{framework}}/{{mode}}"
"""Name of a variant's line; see `labelled`."""


def labelled(expression: str) -> str:
    """Add two labels to the query's results, for legends.

    `mode` is `jit` for the variant `jax/jit`. `swept` is the case's name without its hash; empty for a run's only case.
    """
    mode = f'label_replace({expression}, "mode", "$1", "variant", "(?:[a-z]+/)?(.+)")'
    return f'label_replace({mode}, "swept", "$1", "case", "(?:all|(.+?)(?:-[0-9a-f]{{10}})?)")'


def or_zero(expression: str) -> str:
    """Return a query that gives 0 in place of no result, if the operator is scraped."""
    return f"{expression} or 0 * max(accelbench_build_info{{{OPERATOR}}})"


def over_time(expression: str, legend: str) -> prometheus.Dataquery:
    """Build a query for a line; `legend` names labels as {{label}}."""
    return prometheus.Dataquery().datasource(DATASOURCE).expr(expression).range().legend_format(legend)


def instant(expression: str, legend: str = "") -> prometheus.Dataquery:
    """Build a query for the current value."""
    return prometheus.Dataquery().datasource(DATASOURCE).expr(expression).instant().legend_format(legend)


def rows(name: str, expression: str) -> prometheus.Dataquery:
    """Build a query for a table, which has the values in the column `Value #NAME`."""
    query = prometheus.Dataquery().datasource(DATASOURCE).expr(expression).instant().ref_id(name)
    return query.format(PromQueryFormat.TABLE)

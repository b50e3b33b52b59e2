"""Rules of Grafana's dashboard linter that keep a dashboard working with any data source, job and instance.

https://github.com/grafana/dashboard-linter/tree/main/docs/rules: each test is named after its rule.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from cluster.build import binaries
from grafana.dashboards import ALL, EXPORTERS, Dashboard

if TYPE_CHECKING:
    from pathlib import Path

EACH = pytest.mark.parametrize("dashboard", [pytest.param(each, id=name) for name, each in ALL.items()])
TARGETS = [query for each in ALL.values() for _, query in each.queries()]


def selectors(query: str) -> list[str]:
    """Return the label selectors of a query, without their braces."""
    return re.findall(r"\w{([^}]*)}", query)


@EACH
def test_template_datasource_rule(dashboard: Dashboard) -> None:
    variable = dashboard.variables["datasource"]
    assert (variable["type"], variable["query"], variable["label"]) == ("datasource", "prometheus", "Data source")


@EACH
@pytest.mark.parametrize("name", ["job", "instance"])
def test_template_job_rule_and_template_instance_rule(dashboard: Dashboard, name: str) -> None:
    variable = dashboard.variables[name]
    assert (variable["type"], variable["label"].lower(), variable["datasource"]["uid"]) == (
        "query",
        name,
        "${datasource}",
    )
    assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".+")


def queried(dashboard: Dashboard) -> list[dict[str, Any]]:
    """Return the variables that Prometheus fills."""
    return [variable for variable in dashboard.variables.values() if variable["type"] == "query"]


@EACH
def test_panel_datasource_rule(dashboard: Dashboard) -> None:
    users = [panel for panel in dashboard.panels if panel["type"] != "text"]
    users += [target for panel in users for target in panel["targets"]]
    users += [*queried(dashboard), *dashboard.json.get("annotations", {}).get("list", [])]
    assert {user["datasource"]["uid"] for user in users} == {"${datasource}"}


def test_target_promql_rule(tmp_path: Path) -> None:
    queries = [each.filled_in(query) for each in ALL.values() for _, query in each.queries()]
    rules = "".join(
        f"  - {{record: 'q:{number}', expr: {json.dumps(query)}}}\n" for number, query in enumerate(queries)
    )
    file = tmp_path / "queries.yaml"
    file.write_text(f"groups:\n- name: queries\n  rules:\n{rules}")
    done = subprocess.run(
        [binaries().promtool, "check", "rules", "--lint=none", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("query", TARGETS)
def test_target_job_rule_and_target_instance_rule(query: str) -> None:
    if EXPORTERS.search(query):
        return  # Another exporter's job and instance; the node or the resource selects.
    assert selectors(query)
    assert all('job=~"$job"' in each and 'instance=~"$instance"' in each for each in selectors(query))


@pytest.mark.parametrize("query", TARGETS)
def test_target_rate_interval_rule_and_target_counter_agg_rule(query: str) -> None:
    counters = re.findall(r"(\w+)\(\w+(?:_total|_bucket)\b(?:{[^}]*})?(\[[^]]+\])?", query)
    if re.search(r"_total\b|_bucket\b", query):
        assert counters
    for function, window in counters:
        # Over all of the time that is shown, where a panel has one value for it.
        assert (function, window) in {("rate", "[$__rate_interval]"), ("increase", "[$__range]")}

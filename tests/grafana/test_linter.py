"""The rules of Grafana's dashboard linter: its module cannot be had by every machine, its rules are published.

https://github.com/grafana/dashboard-linter/tree/main/docs/rules: each test is named after the rule that it holds.
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
    from collections.abc import Callable
    from pathlib import Path

EACH = pytest.mark.parametrize("dashboard", [pytest.param(each, id=name) for name, each in ALL.items()])
TARGETS = [query for each in ALL.values() for _, query in each.queries()]


def selectors(query: str) -> list[str]:
    """What stands in braces after a metric."""
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


@EACH
def test_template_label_promql_rule(dashboard: Dashboard) -> None:
    for variable in queried(dashboard):
        assert re.fullmatch(r"label_values\(.+, \w+\)", variable["query"]), variable["name"]


@EACH
def test_template_on_time_change_reload_rule(dashboard: Dashboard) -> None:
    assert {variable["refresh"] for variable in queried(dashboard)} == {2}


def queried(dashboard: Dashboard) -> list[dict[str, Any]]:
    """Variables that Prometheus fills."""
    return [variable for variable in dashboard.variables.values() if variable["type"] == "query"]


@EACH
def test_panel_datasource_rule(dashboard: Dashboard) -> None:
    users = [panel for panel in dashboard.panels if panel["type"] != "text"]
    users += [target for panel in users for target in panel["targets"]]
    users += [*queried(dashboard), *dashboard.json.get("annotations", {}).get("list", [])]
    assert {user["datasource"]["uid"] for user in users} == {"${datasource}"}


@EACH
def test_panel_title_description_rule(dashboard: Dashboard) -> None:
    assert all(panel["title"] and panel["description"] for panel in dashboard.panels)


@EACH
def test_panel_units_rule_and_panel_no_targets_rule(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        if panel["type"] != "text":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            references = [target["refId"] for target in panel["targets"]]
            assert references, panel["title"]
            assert len(references) == len(set(references)), panel["title"]


@EACH
def test_uneditable_dashboard_rule(dashboard: Dashboard) -> None:
    assert dashboard.json["editable"] is False


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


def _edited(name: str, edit: Callable[[dict[str, Any]], None]) -> Dashboard:
    document = ALL[name].json
    edit(document)
    return Dashboard(name, json.dumps(document), {})


def _variable(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [each for each in document["templating"]["list"] if each["name"] == name]
    return found[0]


def _panel(document: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [each for each in document["panels"] if each["type"] == "timeseries"]
    return found[0]


BROKEN: dict[Callable[..., None], Callable[[dict[str, Any]], object]] = {
    test_template_datasource_rule: lambda document: _variable(document, "datasource").update(query="loki"),
    test_template_label_promql_rule: lambda document: _variable(document, "namespace").update(query="up"),
    test_template_on_time_change_reload_rule: lambda document: _variable(document, "namespace").update(refresh=1),
    test_panel_datasource_rule: lambda document: _panel(document).update(datasource={"uid": "prometheus"}),
    test_panel_title_description_rule: lambda document: _panel(document).update(description=""),
    test_panel_units_rule_and_panel_no_targets_rule: lambda document: _panel(document).update(targets=[]),
    test_uneditable_dashboard_rule: lambda document: document.update(editable=True),
}
"""What a rule of a whole dashboard must not let through."""


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_a_rule_finds_what_breaks_it(rule: Callable[..., None]) -> None:
    rule(ALL["overview"])
    with pytest.raises(AssertionError):
        rule(_edited("overview", BROKEN[rule]))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["job", "instance"])
def test_the_rules_on_job_and_instance_find_what_breaks_them(name: str) -> None:
    with pytest.raises(AssertionError):
        test_template_job_rule_and_template_instance_rule(
            _edited("overview", lambda document: _variable(document, name).update(multi=False)), name
        )
    with pytest.raises(AssertionError):
        test_target_job_rule_and_target_instance_rule(f'sum(accelbench_runs{{{name}=~"${name}"}})')


def test_the_rule_on_promql_finds_what_breaks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = _edited("overview", lambda document: _panel(document)["targets"][0].update(expr="sum(accelbench_runs"))
    monkeypatch.setitem(ALL, "overview", broken)
    with pytest.raises(AssertionError, match="parse error"):
        test_target_promql_rule(tmp_path)


@pytest.mark.parametrize("query", ["rate(accelbench_runs_total[5m])", "sum(accelbench_runs_total)"])
def test_the_rules_on_counters_find_what_breaks_them(query: str) -> None:
    with pytest.raises(AssertionError):
        test_target_rate_interval_rule_and_target_counter_agg_rule(query)

"""The dashboards match their sources, and every query returns data."""

from __future__ import annotations

import json
import re
import runpy
from typing import TYPE_CHECKING, Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as Model

from accelbench_operator.metrics.families import (
    COMPARISON_METRICS,
    LIVE_CASE_METRICS,
    LIVE_COMPARISON_METRICS,
    OPERATOR_METRICS,
    RESULT_METRICS,
    VARIANT_METRICS,
)
from accelbench_operator.metrics.telemetry import Telemetry
from grafana.dashboards import ALL, CHOICES, GRAFANA, Dashboard
from grafana.history import DAY, END, nightlies, running_history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from metrics.prometheus import Prometheus

EACH = pytest.mark.parametrize("dashboard", [pytest.param(each, id=name) for name, each in ALL.items()])
TARGETS = [
    pytest.param(each, query, id=f"{name} {title}")
    for name, each in CHOICES.items()
    for title, query in each.queries()
    if title.split(": ")[1] not in each.elsewhere
]
QUERIES = [
    pytest.param(each, name, id=f"{each.name}: {name}")
    for each in ALL.values()
    for name, variable in each.variables.items()
    if variable["type"] == "query"
]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Half a day of an operator that holds real results."""
    with running_history(tmp_path_factory.mktemp("prometheus"), since=END - DAY / 2) as server:
        yield server


def test_the_generated_files_match_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    build = runpy.run_path(str(GRAFANA / "source" / "build.py"))
    assert build["main"](["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [("overview", ALL["overview"].text.replace("Overview", "Mine")), ("of-old", "{}")],
    ids=["edited by hand", "without a source"],
)
def test_a_file_without_a_source_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    build = runpy.run_path(str(GRAFANA / "source" / "build.py"))
    for each in ALL.values():
        (tmp_path / f"{each.name}.json").write_text(each.text)
    (tmp_path / f"{name}.json").write_text(text)
    monkeypatch.setitem(build["main"].__globals__, "DASHBOARDS", tmp_path)
    assert build["main"](["--check"]) == 1
    assert capsys.readouterr().err.startswith(f"out of date: {name}.json")


BEYOND_THE_MODEL = {"titleFormat", "namePlacement", "sizing", "minVizHeight", "maxVizHeight", "enablePagination"}
"""What Grafana reads and the SDK's model of it does not have."""


def known(value: Any) -> Any:
    """What the model has of it."""
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items() if key not in BEYOND_THE_MODEL}
    return [known(each) for each in value] if isinstance(value, list) else value


@EACH
def test_grafanas_own_model_reads_the_file_without_losing_fields(dashboard: Dashboard) -> None:
    register_default_plugins()
    model = Model.from_json(dashboard.json)
    assert known(json.loads(json.dumps(model, cls=JSONEncoder))) == known(dashboard.json)


@pytest.mark.parametrize(("dashboard", "expression"), TARGETS)
def test_every_query_returns_data(prometheus: Prometheus, dashboard: Dashboard, expression: str) -> None:
    assert prometheus.query(dashboard.filled_in(expression), at=END)


@pytest.mark.parametrize(("dashboard", "name"), QUERIES)
def test_every_variable_offers_values_that_depend_on_earlier_ones(
    prometheus: Prometheus, dashboard: Dashboard, name: str
) -> None:
    query = re.fullmatch(r"label_values\((.+), (\w+)\)", dashboard.variables[name]["query"])
    assert query
    selector, label = query.groups()
    values = prometheus.label_values(label, dashboard.filled_in(selector))
    assert values
    assert dashboard.chosen.get(name, values[0]) in values
    before = list(dashboard.variables)[: list(dashboard.variables).index(name)]
    used = set(re.findall(r"\$(\w+)", selector))
    assert used <= set(before), "a variable depends on none that comes later"
    assert used or name == "job"


def test_every_metric_that_is_exported_is_in_a_panel() -> None:
    tables = (
        RESULT_METRICS,
        VARIANT_METRICS,
        COMPARISON_METRICS,
        LIVE_CASE_METRICS,
        LIVE_COMPARISON_METRICS,
        OPERATOR_METRICS,
    )
    exported = {metric.name for table in tables for metric in table}
    exported |= {family.name for family in Telemetry().collect()}
    drawn = " ".join(query for each in ALL.values() for _, query in each.queries())
    assert not {name for name in exported if not re.search(rf"\b{name}(_bucket|_total)?\b", drawn)}


def test_the_table_matches_the_result(prometheus: Prometheus) -> None:
    overview = ALL["overview"]
    table = next(panel for panel in overview.panels if panel["title"] == "Verdicts")
    found = {
        target["refId"]: prometheus.query(overview.filled_in(target["expr"], series="cifar-cnn"), at=END)
        for target in table["targets"]
    }
    verdicts = {each["metric"]["variant"]: each["metric"]["verdict"] for each in found["verdict"]}
    [whole] = [each.result for each in nightlies() if each.series == "cifar-cnn"]
    expected = {each.variant: each for each in whole.comparisons}
    assert verdicts == {variant: each.verdict for variant, each in expected.items()}
    for variant, comparison in expected.items():
        lower, middle, upper = (
            next(float(each["value"][1]) for each in found[name] if each["metric"]["variant"] == variant)
            for name in ("lower", "speedup", "upper")
        )
        assert lower < middle < upper
        # The last night's is without one of its rounds.
        assert middle == pytest.approx(float(comparison.speedup or 0), rel=0.05)


def test_the_table_over_sizes_matches_the_result_of_each_size(prometheus: Prometheus) -> None:
    compare = ALL["compare"]
    (table,) = (panel for panel in compare.panels if panel["title"] == "Speedup over sizes")
    found = {
        target["refId"]: {
            (each["metric"]["case"], each["metric"]["variant"]): (float(each["value"][1]), each["metric"])
            for each in prometheus.query(compare.filled_in(target["expr"]), at=END)
        }
        for target in table["targets"]
    }
    results = [each.result for each in nightlies() if each.series == compare.chosen["series"]]
    expected = {(result.case.name, each.variant): result for result in results for each in result.comparisons}
    assert len({case for case, _ in expected}) > 1
    assert all(found[name].keys() == expected.keys() for name in ("verdict", "speedup", "lower", "upper", "margin"))
    for row, result in expected.items():
        lower, speedup, upper, margin = (found[name][row][0] for name in ("lower", "speedup", "upper", "margin"))
        assert lower < speedup < upper
        assert margin == float(result.case.measurement.equivalence_margin)
        verdict = found["verdict"][row][1]["verdict"]
        assert (verdict == "faster") == (lower > 1 + margin)
        assert (verdict == "slower") == (upper < 1 / (1 + margin))


def test_the_table_of_invalid_results_has_all_of_them_and_no_others(prometheus: Prometheus) -> None:
    overview = ALL["overview"]
    panels = {panel["title"]: panel["targets"] for panel in overview.panels}
    ((number,),) = ([each["value"][1]] for each in asked(prometheus, panels["Results that are not valid"][0]["expr"]))
    rows = {target["refId"]: asked(prometheus, target["expr"]) for target in panels["Results that do not stand"]}
    assert {each["value"][1] for each in rows["valid"]} == {"0"}
    assert {len(each) for each in rows.values()} == {int(number)}
    assert len(asked(prometheus, 'accelbench_result_valid{job=~".+"}')) > int(number)


def asked(prometheus: Prometheus, query: str) -> list[dict[str, Any]]:
    """What the overview's query gives at the end of the history."""
    return prometheus.query(ALL["overview"].filled_in(query), at=END)


def test_a_verdict_that_changes_is_marked_and_a_first_one_is_not(prometheus: Prometheus) -> None:
    (annotation,) = ALL["overview"].json["annotations"]["list"]
    assert annotation["titleFormat"] == "{{series}} {{case}} {{variant}}: {{verdict}}"
    changed = [
        sample["metric"]
        for moment in range(36)
        for sample in prometheus.query(ALL["overview"].filled_in(annotation["expr"]), at=END - moment * 1200)
    ]
    assert {each["series"] for each in changed} == {"maxsim"}


def test_queries_of_a_table_join_on_the_same_labels(prometheus: Prometheus) -> None:
    for dashboard in CHOICES.values():
        for panel in dashboard.panels:
            if panel["type"] == "table" and panel["title"] not in dashboard.elsewhere:
                by = [
                    frozenset(prometheus.query(dashboard.filled_in(target["expr"]), at=END)[0]["metric"])
                    for target in panel["targets"]
                ]
                # `merge` joins on what all have: a label that two lack would make a row of its own.
                assert len({labels for labels in by if labels != max(by, key=len)}) <= 1, panel["title"]


@EACH
def test_a_panel_has_a_description_a_unit_and_advice_without_data(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        assert panel["description"].endswith("."), panel["title"]
        if panel["type"] != "text":
            defaults = panel["fieldConfig"]["defaults"]
            assert defaults["unit"], panel["title"]
            assert len(defaults["noValue"]) > 20, panel["title"]
            if "DCGM" in str(panel["targets"]):
                assert "dcgm-exporter" in defaults["noValue"]
                assert "DCGM" in panel["description"]
            if "kube_" in str(panel["targets"]):
                assert "kube-state-metrics" in defaults["noValue"]


@EACH
def test_a_panel_has_one_unit_on_one_axis(dashboard: Dashboard) -> None:
    """Lines on two axes can lie on each other, whatever their values are."""
    for panel in dashboard.panels:
        assert "axisPlacement" not in json.dumps(panel["fieldConfig"]["overrides"]), panel["title"]


@EACH
def test_a_table_has_pages_unless_it_never_has_many_rows(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        if panel["type"] == "table":
            paged = panel["title"] not in {"Break-even", "Devices"}
            assert panel["options"].get("enablePagination", False) == paged, panel["title"]
            # Grafana before 12.2 reads the footer's.
            assert panel["options"]["footer"]["enablePagination"] == paged, panel["title"]


@EACH
def test_panels_do_not_overlap_and_fit_the_grid(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.json["panels"]:
        place = panel["gridPos"]
        across = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in across for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_dashboards_link_to_each_other_and_every_link_resolves() -> None:
    uids = {each.json["uid"] for each in ALL.values()}
    for each in ALL.values():
        (link,) = each.json["links"]
        assert (link["type"], link["tags"], link["keepTime"]) == ("dashboards", ["accelbench"], True)
        assert "accelbench" in each.json["tags"]
        for uid, rest in re.findall(r'"/d/([\w-]+)\?([^"]+)', each.text):
            assert uid in uids
            target = next(one for one in ALL.values() if one.json["uid"] == uid)
            chosen = set(re.findall(r"&var-(\w+)=", rest))
            assert chosen <= set(target.variables)
            # A run's name is one within its namespace alone.
            assert "namespace" in chosen, (each.name, uid)

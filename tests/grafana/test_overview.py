"""The dashboard: what its source says, what Grafana's linter asks for, and data for every query of it."""

from __future__ import annotations

import json
import re
import runpy
from typing import TYPE_CHECKING, Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from accelbench_operator.metrics import serve_metrics
from cluster.ports import free_port
from grafana.overview import GRAFANA, OVERVIEW, PANELS, VARIABLES, filled_in, queries
from metrics.documents import failed, faster, invalid, snapshot
from metrics.prometheus import Prometheus, running_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TARGETS = [pytest.param(expression, id=title) for title, expression in queries()]
QUERIES = [pytest.param(name, id=name) for name, variable in VARIABLES.items() if variable["type"] == "query"]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scrapes an operator that holds a verdict, an invalid comparison and a variant that failed."""
    port = free_port()
    shown = snapshot(("team-a", faster()), ("team-a", invalid()), ("team-b", failed()))
    stop = serve_metrics(lambda: shown, port=port, address="127.0.0.1")
    try:
        with running_prometheus(tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{port}") as server:
            yield server
    finally:
        stop()


def test_the_generated_file_is_what_its_source_says(capsys: pytest.CaptureFixture[str]) -> None:
    build = runpy.run_path(str(GRAFANA / "source" / "build.py"))
    assert build["main"](["--check"]) == 0, capsys.readouterr().err


def test_a_file_that_was_edited_by_hand_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build = runpy.run_path(str(GRAFANA / "source" / "build.py"))
    (tmp_path / "overview.json").write_text(json.dumps(OVERVIEW | {"title": "mine"}))
    monkeypatch.setitem(build["main"].__globals__, "DASHBOARDS", tmp_path)
    assert build["main"](["--check"]) == 1
    assert "overview.json" in capsys.readouterr().err


def test_grafanas_own_model_reads_the_file_and_loses_nothing() -> None:
    register_default_plugins()
    model = Dashboard.from_json(OVERVIEW)
    assert json.loads(json.dumps(model, cls=JSONEncoder)) == OVERVIEW


@pytest.mark.parametrize("expression", TARGETS)
def test_every_query_returns_data(prometheus: Prometheus, expression: str) -> None:
    # As of then: on a busy machine a later scrape may time out, and what it did not see has no samples now.
    assert prometheus.query(filled_in(expression), at=prometheus.scraped_twice_at)


@pytest.mark.parametrize("name", QUERIES)
def test_every_variable_offers_values(prometheus: Prometheus, name: str) -> None:
    query = re.fullmatch(r"label_values\((.+), (\w+)\)", VARIABLES[name]["query"])
    assert query
    selector, label = query.groups()
    assert prometheus.label_values(label, filled_in(selector))


def test_the_table_says_what_the_result_says(prometheus: Prometheus) -> None:
    table = next(panel for panel in PANELS if panel["title"] == "Verdicts")
    found = {
        target["refId"]: prometheus.query(
            filled_in(target["expr"], series="matmul-chain"), at=prometheus.scraped_twice_at
        )
        for target in table["targets"]
    }
    assert [sample["metric"]["verdict"] for sample in found["verdict"]] == ["faster"]
    values = {name: [sample["value"][1] for sample in samples] for name, samples in found.items()}
    assert values | {"verdict": []} == {
        "verdict": [],
        "speedup": ["2.04"],
        "lower": ["2.01"],
        "upper": ["2.07"],
        "rounds": ["8"],
    }


def test_rows_of_a_table_meet_on_the_same_labels() -> None:
    for panel in PANELS:
        if panel["type"] == "table":
            clauses = [re.match(r"\w+ by \(([^)]+)\)", target["expr"]) for target in panel["targets"]]
            by = [frozenset(clause[1].split(", ")) for clause in clauses if clause]
            assert len(by) == len(clauses), panel["title"]
            shared = frozenset.intersection(*by)
            assert all(labels - shared <= {"verdict"} for labels in by), panel["title"]


def test_it_cannot_be_edited_in_place_as_the_next_upgrade_would_undo_that() -> None:
    assert OVERVIEW["editable"] is False


def test_the_data_source_is_a_variable_and_everything_uses_it() -> None:
    assert (VARIABLES["datasource"]["type"], VARIABLES["datasource"]["query"]) == ("datasource", "prometheus")
    users = [*PANELS, *(target for panel in PANELS for target in panel["targets"])]
    users += [variable for variable in VARIABLES.values() if variable["type"] == "query"]
    assert {user["datasource"]["uid"] for user in users} == {"${datasource}"}


@pytest.mark.parametrize("name", QUERIES)
def test_a_variable_takes_several_values_or_all_and_follows_the_time_range(name: str) -> None:
    variable: dict[str, Any] = VARIABLES[name]
    assert (variable["multi"], variable["includeAll"], variable["allValue"], variable["refresh"]) == (
        True,
        True,
        ".+",
        2,
    )


@pytest.mark.parametrize("panel", [pytest.param(panel, id=panel["title"]) for panel in PANELS])
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    references = [target["refId"] for target in panel["targets"]]
    assert references
    assert len(references) == len(set(references))


@pytest.mark.parametrize("expression", TARGETS)
def test_a_query_can_be_narrowed_to_one_operator_and_rates_follow_the_scrape_interval(expression: str) -> None:
    selectors = re.findall(r"{([^}]*)}", expression)
    assert selectors
    assert all('job=~"$job"' in selector and 'instance=~"$instance"' in selector for selector in selectors)
    counters = re.findall(r"\w+_total{[^}]*}(\[[^]]+\])?", expression)
    assert set(counters) <= {"[$__rate_interval]"}


def test_panels_do_not_overlap_and_fit_the_grid() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in OVERVIEW["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells

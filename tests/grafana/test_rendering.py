"""The dashboards as users see them: no panel is empty, erroneous or truncated."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest

from grafana.dashboards import ALL, CHOICES, DEVICE, GRAFANA, Dashboard
from grafana.history import DAY, END, START, running_history
from grafana.renderer import Drawn, Site, Theme, draw, serve
from report.chromium import tab
from tiers import on_a_push

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metrics.prometheus import Prometheus
    from report.chromium import Page

pytestmark = pytest.mark.slow
WIDE, NARROW = 1400, 700


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that holds a week."""
    with running_history(tmp_path_factory.mktemp("week")) as prometheus:
        yield prometheus


@pytest.fixture(scope="module")
def site(week: Prometheus) -> Iterator[Site]:
    """The page before it."""
    with serve(week.url) as served:
        yield served


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A browser's tab."""
    with tab() as opened:
        yield opened


VIEWS = tuple(itertools.product(CHOICES, (WIDE, NARROW), ("light", "dark")))
"""A dashboard, the width of its window, and a theme."""
VIEWS_OF_A_PUSH = {
    (name, (WIDE, NARROW)[index % 2], ("light", "dark")[index // 2 % 2]) for index, name in enumerate(CHOICES)
}
"""Each dashboard once, and each width and theme with some of them."""


@pytest.mark.parametrize(
    "view", on_a_push(VIEWS, VIEWS_OF_A_PUSH.__contains__), ids=lambda view: "-".join(map(str, view))
)
def test_no_panel_is_empty_erroneous_or_truncated(page: Page, site: Site, view: tuple[str, int, Theme]) -> None:
    name, width, theme = view
    dashboard = CHOICES[name]
    drawn = draw(page, site, dashboard, theme=theme, width=width, seconds=(START, END))
    assert not drawn.faults(elsewhere=dashboard.elsewhere)
    assert len(drawn.panels) >= len(dashboard.panels)
    if width == WIDE:
        assert not [panel.title for panel in drawn.panels if panel.sideways or panel.hiddenRows]


def test_a_panel_is_repeated_for_each_variant(page: Page, site: Site) -> None:
    drawn = draw(page, site, ALL["compare"], theme="dark", width=WIDE, seconds=(START, END))
    titles = [panel.title for panel in drawn.panels if panel.title.startswith("Speedup of")]
    assert titles == ["Speedup of jax/jit", "Speedup of jax/op-by-op", "Speedup of pytorch/compile"]


def test_verdicts_that_changed_are_marked(page: Page, site: Site) -> None:
    assert draw(page, site, ALL["overview"], theme="dark", width=WIDE, seconds=(START, END)).annotations


def test_panels_of_a_run_show_only_that_run(page: Page, site: Site) -> None:
    drawn = draw(page, site, ALL["run"], theme="light", width=WIDE, seconds=(END - DAY, END))
    (commands,) = (panel.text for panel in drawn.panels if panel.type == "text")
    assert "kubectl describe bmr/matmul-chain-on-cpu-2-cores-7 -n kernels" in commands


def test_the_device_shown_with_a_run_is_that_of_its_node(page: Page, site: Site) -> None:
    """Only gpu-node-1 has a GPU: a run on a CPU shows none."""
    for name, node in (("run", ""), ("run-on-a-gpu", "gpu-node-1")):
        drawn = draw(page, site, CHOICES[name], theme="light", width=WIDE, seconds=(END - DAY, END))
        device = [panel for panel in drawn.panels if panel.title in DEVICE]
        assert len(device) == len(DEVICE)
        assert all(node in panel.text if node else panel.noData for panel in device), name


def test_the_joins_of_the_reference_return_the_described_series(week: Prometheus) -> None:
    blocks = re.findall(
        r"```promql\n(.+?)```", (GRAFANA.parent / "docs" / "reference" / "metrics.md").read_text(), re.DOTALL
    )
    utilisation, phase, devices = (week.query(block, at=END) for block in blocks)
    assert [sample["metric"]["Hostname"] for sample in utilisation] == ["gpu-node-1"]
    assert [(sample["metric"]["pod"], sample["metric"]["phase"]) for sample in phase] == [
        ("example-size-512-x7k2p", "Running")
    ]
    assert [(sample["metric"]["resource"], sample["value"][1]) for sample in devices] == [("nvidia_com_gpu", "1")]


def test_every_panel_without_data_gives_advice(page: Page, site: Site) -> None:
    for dashboard in ALL.values():
        before = draw(page, site, dashboard, theme="dark", width=WIDE, seconds=(START - 99 * DAY, START - 98 * DAY))
        expected = {
            panel["title"]: panel["fieldConfig"]["defaults"]["noValue"]
            for panel in dashboard.panels
            if panel["type"] != "text" and "repeat" not in panel
        }
        assert {panel.title: panel.noData for panel in before.panels if panel.title in expected} == expected
        assert not [fault for fault in before.faults() if "cuts off" in fault]


BROKEN = {
    "a query that is wrong": ("operator", '"expr": "sum(', '"expr": "summ(', "error"),
    "a metric that nobody exports": (
        "operator",
        "accelbench_operator_loop_lag_seconds",
        "accelbench_operator_lag",
        "is empty",
    ),
    "a panel of a type that there is not": ("operator", '"type": "stat"', '"type": "no-such-panel"', "no-such-panel"),
    "a legend that does not fit": (
        "operator",
        '"legendFormat": "{{instance}}"',
        f'"legendFormat": "{"a-long-name-" * 30}"',
        "cuts off: a-long-name",
    ),
    "a line that another hides": ("operator", "reconcile_failures_total", "reconciles_total", "hides the line of"),
    "a table that hides rows": ("overview", '"enablePagination": true', '"enablePagination": false', "hides a row"),
}
"""A dashboard, what to replace in it by what, and what has to be said of it."""


@pytest.mark.parametrize("fault", BROKEN)
def test_a_dashboard_with_a_fault_is_detected(page: Page, site: Site, fault: str) -> None:
    name, old, new, said = BROKEN[fault]
    whole = ALL[name]
    broken = Dashboard(name, whole.text.replace(old, new), {})
    assert broken.text != whole.text
    json.loads(broken.text)
    drawn: Drawn = draw(page, site, broken, theme="dark", width=WIDE, seconds=(START, END))
    assert any(said in each for each in drawn.faults()), drawn.faults()

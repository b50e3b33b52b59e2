"""The generated dashboards, as Grafana reads them: their panels, their variables and the queries they send."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

__all__ = ["ALL", "CHOICES", "DEVICE", "EXPORTERS", "GRAFANA", "Dashboard"]

GRAFANA = Path(__file__).resolve().parents[2] / "grafana"
EXPORTERS = re.compile(r"\b(DCGM_FI_|kube_)")
"""Metrics of others: their job and instance are not the operator's."""


@dataclass(frozen=True)
class Dashboard:
    """One of them."""

    name: str
    text: str
    chosen: dict[str, str]
    """What a user would choose, of variables that hold one value."""
    elsewhere: frozenset[str] = frozenset()
    """Titles of panels that have no data, or not all, for what is chosen: another choice has."""

    @property
    def json(self) -> dict[str, Any]:
        """As Grafana reads it."""
        return dict(json.loads(self.text))

    @property
    def panels(self) -> list[dict[str, Any]]:
        """Without its rows."""
        return [panel for panel in self.json["panels"] if panel["type"] != "row"]

    @property
    def variables(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {variable["name"]: variable for variable in self.json["templating"]["list"]}

    def queries(self) -> list[tuple[str, str]]:
        """Every query of every panel, with the dashboard's name, the panel's title and the query's letter."""
        return [
            (f"{self.name}: {panel['title']}: {target['refId']}", target["expr"])
            for panel in self.panels
            for target in panel.get("targets", [])
        ]

    def filled_in(self, query: str, **chosen: str) -> str:
        """The query as Grafana sends it, with everything chosen that is not chosen otherwise."""
        values = {name: variable.get("allValue") or ".+" for name, variable in self.variables.items()}
        values |= self.chosen | {"__rate_interval": "80m", "__range": "12h", "__interval": "20m"} | chosen
        return re.sub(r"\$(?:{([a-z_]+)}|([a-z_]+))", lambda found: values[found[1] or found[2]], query)


CHOSEN = {
    "overview": {},
    "compare": {"namespace": "kernels", "series": "dispatch-overhead", "case": "size-1-962e70cf0e"},
    "run": {"namespace": "kernels", "run": "matmul-chain-on-cpu-2-cores-7"},
    "across-accelerators": {"workload": "matmul-chain", "case": "size-128-af3b8e31a5"},
    "fleet": {},
    "operator": {},
}
ALL = {
    name: Dashboard(name, (GRAFANA / "dashboards" / f"{name}.json").read_text(), chosen)
    for name, chosen in CHOSEN.items()
}
"""By the names of their files, in the order in which a user meets them."""
COMPILED = frozenset({"Programs", "Collectives"})
REQUESTS = frozenset({"Requests"})
DEVICE = frozenset({"Utilisation", "Clock", "Power", "Temperature"})
CHOICES = ALL | {
    "run": replace(ALL["run"], elsewhere=COMPILED | DEVICE | REQUESTS),
    "run-of-requests": replace(
        ALL["run"],
        chosen={"namespace": "language", "run": "mlp-requests-7"},
        elsewhere=frozenset(panel["title"] for panel in ALL["run"].panels) - REQUESTS,
    ),
    "run-compiled": replace(
        ALL["run"],
        chosen={"namespace": "language", "run": "mlp-on-accelerators-7"},
        elsewhere=frozenset(panel["title"] for panel in ALL["run"].panels) - COMPILED,
    ),
    "run-on-a-gpu": replace(
        ALL["run"],
        chosen={"namespace": "lab", "run": "example"},
        elsewhere=frozenset(panel["title"] for panel in ALL["run"].panels) - DEVICE,
    ),
}
"""As users would look at them: a run is measured on a CPU or on a GPU, or it is compiled for targets."""

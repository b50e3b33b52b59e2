"""The generated dashboard, as Grafana reads it: its panels, its variables and the queries it sends."""

from __future__ import annotations

import json
import re
from pathlib import Path

__all__ = ["GRAFANA", "OVERVIEW", "PANELS", "VARIABLES", "filled_in", "queries"]

GRAFANA = Path(__file__).resolve().parents[2] / "grafana"
OVERVIEW = json.loads((GRAFANA / "dashboards" / "overview.json").read_text())
PANELS = [panel for panel in OVERVIEW["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in OVERVIEW["templating"]["list"]}


def queries() -> list[tuple[str, str]]:
    """Every query of every panel, with the panel's title and the query's letter."""
    return [(f"{panel['title']}: {target['refId']}", target["expr"]) for panel in PANELS for target in panel["targets"]]


def filled_in(query: str, **chosen: str) -> str:
    """The query as Grafana sends it, with everything chosen that is not chosen otherwise."""
    values = {name: variable.get("allValue", "") for name, variable in VARIABLES.items()} | chosen
    values |= {"__rate_interval": "10s"}
    return re.sub(r"\$(?:{(\w+)}|(\w+))", lambda found: values[found[1] or found[2]], query)

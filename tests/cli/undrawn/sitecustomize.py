"""Hide matplotlib, so that a run draws no page: that takes longer than the rest of a scenario."""

import importlib.util
from importlib.machinery import ModuleSpec

_find_spec = importlib.util.find_spec


def _without_matplotlib(name: str, package: str | None = None) -> ModuleSpec | None:
    return None if name == "matplotlib" else _find_spec(name, package)


importlib.util.find_spec = _without_matplotlib

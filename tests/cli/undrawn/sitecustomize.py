"""As if the extra `report` were not installed: a run then draws no page, which takes longer than all else it does."""

import importlib.util
from importlib.machinery import ModuleSpec

_find_spec = importlib.util.find_spec


def _without_matplotlib(name: str, package: str | None = None) -> ModuleSpec | None:
    return None if name == "matplotlib" else _find_spec(name, package)


importlib.util.find_spec = _without_matplotlib

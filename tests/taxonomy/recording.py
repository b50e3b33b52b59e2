"""Record the messages that users read in docs/operations/seen.yaml, the source of a page, if ACCELBENCH_SEEN=1."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from accelbench import __version__
from taxonomy.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

SEEN = Path(__file__).resolve().parents[2] / "docs" / "operations" / "seen.yaml"
ADDRESS = re.compile(r"\b\d+(?:\.\d+){3}\b")
"""Of the machine that the tests ran on, it is nobody's business."""


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Takes a row's name and the conditions, as they were read; of each, type, status, reason and message are kept."""

    def write(row: str, *conditions: dict[str, Any]) -> None:
        assert row in ROWS
        if not os.environ.get("ACCELBENCH_SEEN"):
            return
        known = yaml.safe_load(SEEN.read_text()) if SEEN.exists() else {}
        kept = ("type", "status", "reason", "message")
        messages = [{field: ADDRESS.sub("192.0.2.1", condition[field]) for field in kept} for condition in conditions]
        test = request.node.nodeid.partition("[")[0]
        known[row] = {"test": test, "version": __version__, "conditions": messages}
        ordered = {each: known[each] for each in ROWS if each in known}
        SEEN.write_text(yaml.safe_dump(ordered, sort_keys=False, width=120, allow_unicode=True))

    return write

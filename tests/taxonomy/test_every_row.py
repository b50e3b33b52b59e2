"""Every row of the taxonomy has a test, and the page about troubleshooting has its recorded message."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from accelbench.api.reasons import AttemptReason, FailureReason
from taxonomy.rows import ROWS

ROOT = Path(__file__).resolve().parents[2]
SEEN = yaml.safe_load((ROOT / "docs" / "operations" / "seen.yaml").read_text())
WITHOUT_MESSAGE = {"run deleted in the middle", "namespace terminating"}


@pytest.mark.parametrize("row", ROWS)
def test_every_problem_has_an_existing_test_and_a_message_with_cause_and_remedy(row: str) -> None:
    file, _, name = SEEN[row]["test"].partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()
    messages = [condition["message"] for condition in SEEN[row]["conditions"]]
    assert bool(messages) == (row not in WITHOUT_MESSAGE)
    assert all(messages)


def test_nothing_else_is_listed() -> None:
    assert tuple(SEEN) == ROWS


@pytest.mark.parametrize("reason", [*AttemptReason, *FailureReason])
def test_every_failure_has_a_remedy(reason: AttemptReason | FailureReason) -> None:
    assert reason.remedy or reason is AttemptReason.CANCELLED

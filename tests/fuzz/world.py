"""The context of the targets' inputs: one case, and an operator with one result of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accelbench_operator.metrics.snapshot import QueueHealth, Snapshot
from operator_world.builders import NOW as MOMENT
from operator_world.builders import make_attempt, make_plan, timestamp

if TYPE_CHECKING:
    from accelbench_operator.runs.summary import Summary

__all__ = ["ATTEMPT", "CASE", "MOMENT", "NOW", "PLAN", "snapshot_of"]

PLAN = make_plan()
CASE = PLAN.cases[0]
ATTEMPT = make_attempt(PLAN)
NOW = timestamp(MOMENT)


def snapshot_of(summary: Summary) -> Snapshot:
    """The operator that leads and holds that result alone."""
    health = QueueHealth(depth=0, oldest_seconds=0.0, loop_lag_seconds=0.0, reconciled_total=0, failed_total=0)
    return Snapshot(leading=True, results=(summary,), runs={}, stored_objects={}, queue=health)

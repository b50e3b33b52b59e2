"""Decisions on one situation, and their parts that tests compare."""

from typing import Any

from accelbench.api.run import BenchmarkRunStatus
from accelbench_operator.runs.accept import Plan, Refused
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.decide import Decision, decide
from operator_world.builders import NOW, observe


def next_for(plan: Plan | Refused, observed: Observed | None = None, *, at: Any = NOW, **status: Any) -> Decision:
    """Return the decision on a run with that status."""
    return decide(plan, BenchmarkRunStatus(**status), observed or observe(), at, 1)


def finished(decision: Decision) -> tuple[str, str]:
    (condition,) = (entry for entry in decision.status.conditions if entry.type == "Finished")
    return condition.status, condition.reason


def succeeded(decision: Decision) -> tuple[str, str]:
    (condition,) = (entry for entry in decision.status.conditions if entry.type == "Succeeded")
    return condition.status, condition.reason


def message(decision: Decision, kind: str = "Succeeded") -> str:
    return next(entry.message for entry in decision.status.conditions if entry.type == kind)

"""Build an Event for each transition that a person who watches the run needs to know, and for nothing else.

An Event's name is derived from run, reason and message, so a second one is refused as a conflict: an operator that is
killed and restarted does not repeat itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from accelbench.api.metadata import API_VERSION
from accelbench.api.reasons import ConditionReason
from accelbench.api.run import Attempt, BenchmarkRunStatus
from accelbench.document import on_one_line, timestamp
from accelbench.plan.names import digest

COMPONENT = "accelbench-operator"
MAXIMUM_MESSAGE = 1024


@dataclass(frozen=True)
class Transition:
    """Describe a change of a run."""

    kind: Literal["Normal", "Warning"]
    reason: str
    message: str


def transitions(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> Iterator[Transition]:
    """Yield what changed between two statuses of one run, in the order of the Events to post."""
    old = {condition.type: condition for condition in before.conditions}
    new = {condition.type: condition for condition in after.conditions}
    accepted, was_accepted = new.get("Accepted"), old.get("Accepted")
    if accepted and accepted.status == "False" and (was_accepted is None or was_accepted.status != "False"):
        yield Transition("Warning", accepted.reason, accepted.message)
    for number, attempt in newly_failed(before, after):
        yield Transition("Warning", attempt.reason or "", f"case {attempt.case}, attempt {number}: {attempt.message}")
    finished, was_finished = new.get("Finished"), old.get("Finished")
    if finished is None or accepted is None or accepted.status != "True":
        return
    if was_finished is not None and was_finished.status == "True":
        return
    if finished.status == "True":
        succeeded = new["Succeeded"].status == "True"
        message = f"{after.headline}; {finished.message}" if after.headline else finished.message
        yield Transition("Normal" if succeeded else "Warning", finished.reason, message)
    elif _is_worth_an_event(was_finished.reason if was_finished else "", finished.reason, before):
        yield Transition("Normal", finished.reason, finished.message)


def newly_failed(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> Iterator[tuple[int, Attempt]]:
    """Yield the attempts with a new failure, each with the number that `before` has.

    In `after` the number may be that of the next attempt, which keeps the failure of the earlier one until it ends.
    """
    earlier_attempts = {attempt.case: attempt for attempt in before.attempts}
    for attempt in after.attempts:
        earlier = earlier_attempts.get(attempt.case)
        earlier_failure = earlier and (earlier.reason, earlier.message)
        if attempt.reason and earlier_failure != (attempt.reason, attempt.message):
            yield earlier.number if earlier else 1, attempt


def _is_worth_an_event(old_reason: str, new_reason: str, before: BenchmarkRunStatus) -> bool:
    """Return True if a run was suspended or resumed, or runs for the first time; other changes are routine."""
    if old_reason == new_reason:
        return False
    never_ran = before.active_start_time is None and before.active_seconds == 0
    return ConditionReason.SUSPENDED in {old_reason, new_reason} or (
        new_reason == ConditionReason.RUNNING and never_ran
    )


def event_manifest(transition: Transition, namespace: str, run: str, uid: str, now: datetime) -> dict[str, Any]:
    """Return the `core/v1` Event about the run."""
    identity = digest(uid, transition.reason, transition.message)
    time = timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{run[:200]}.{identity}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": "BenchmarkRun",
            "namespace": namespace,
            "name": run,
            "uid": uid,
        },
        "type": transition.kind,
        "reason": transition.reason,
        "message": on_one_line(transition.message)[:MAXIMUM_MESSAGE],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }

"""Build the Events of a run: one for each transition that a person who watches the run needs to know.

The name of an Event is derived from the run, the reason and the message. If an operator that was restarted creates the
same Event again, the API server refuses it as a conflict.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from accelbench.api.metadata import API_VERSION
from accelbench.api.reasons import ConditionReason
from accelbench.api.run import Attempt, BenchmarkRunStatus
from accelbench.document import on_one_line, shorten, timestamp
from accelbench.plan.names import digest

COMPONENT = "accelbench-operator"
MAXIMUM_MESSAGE = 1024
"""The API server refuses an Event with a longer message."""
MAXIMUM_NAME_PREFIX = 200
"""Characters of the run's name in an Event's name, which has at most 253."""


@dataclass(frozen=True)
class Transition:
    """Describe a change of a run as an Event reports it."""

    kind: Literal["Normal", "Warning"]
    reason: str
    message: str


def transitions(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> Iterator[Transition]:
    """Yield the changes between two statuses that deserve an Event."""
    old_conditions = {condition.type: condition for condition in before.conditions}
    new_conditions = {condition.type: condition for condition in after.conditions}
    accepted, old_accepted = new_conditions.get("Accepted"), old_conditions.get("Accepted")
    was_refused = old_accepted is not None and old_accepted.status == "False"
    if accepted and accepted.status == "False" and not was_refused:
        yield Transition("Warning", accepted.reason, accepted.message)
    for number, attempt in newly_failed(before, after):
        reason = attempt.reason or ""  # a failed attempt has a reason: `or` is for mypy
        yield Transition("Warning", reason, f"case {attempt.case}, attempt {number}: {attempt.message}")
    finished, old_finished = new_conditions.get("Finished"), old_conditions.get("Finished")
    # A refused run has finished too, but its refusal is reported above.
    if finished is None or accepted is None or accepted.status != "True":
        return
    if old_finished is not None and old_finished.status == "True":
        return  # the end of the run was reported before
    old_reason = old_finished.reason if old_finished else ""
    if finished.status == "True":
        has_succeeded = new_conditions["Succeeded"].status == "True"
        message = f"{after.headline}; {finished.message}" if after.headline else finished.message
        yield Transition("Normal" if has_succeeded else "Warning", finished.reason, message)
    elif old_reason != finished.reason and ConditionReason.SUSPENDED in {old_reason, finished.reason}:
        # The run was suspended or resumed.
        yield Transition("Normal", finished.reason, finished.message)


def newly_failed(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> Iterator[tuple[int, Attempt]]:
    """Yield the number and the attempt of each failure that `after` has and `before` does not have."""
    earlier_attempts = {attempt.case: attempt for attempt in before.attempts}
    for attempt in after.attempts:
        earlier = earlier_attempts.get(attempt.case)
        is_reported = earlier is not None and earlier.reason == attempt.reason and earlier.message == attempt.message
        if attempt.reason and not is_reported:
            # In `after`, the attempt may already have the number of the retry, while its reason is that of the failure.
            number = earlier.number if earlier else 1
            yield number, attempt


def event_manifest(transition: Transition, namespace: str, run: str, uid: str, now: datetime) -> dict[str, Any]:
    """Return the `core/v1` Event that reports a transition of the run."""
    # The name depends only on the transition, so a repeated step creates no second Event.
    identity = digest(uid, transition.reason, transition.message)
    time = timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{run[:MAXIMUM_NAME_PREFIX]}.{identity}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": "BenchmarkRun",
            "namespace": namespace,
            "name": run,
            "uid": uid,
        },
        "type": transition.kind,
        "reason": transition.reason,
        "message": shorten(on_one_line(transition.message), MAXIMUM_MESSAGE),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }

"""Define every wait of the operator: what is awaited, the maximum time, and what ends the wait.

No other module limits the time of a wait. The table in docs/operations/troubleshooting.md is generated from this
module, and tests/operator/test_every_wait.py causes each wait.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from accelbench.api.reasons import AttemptReason, ConditionReason, Reason
from accelbench.api.run import RunPolicy

MINIMUM_TRIES = 4
"""Minimum number of tries before a wait may end: while an operator is down, time passes without a try."""
REPORTED_TRIES = 2
"""Minimum number of failed tries before a condition reports them: a single failure is over before anybody reads it."""

FIRST_RETRY = timedelta(seconds=10)
"""Pause between a failed attempt and the first retry."""
DELAY_BEFORE_FIRST_READ = timedelta(seconds=10)
"""Time before Events are read for the reason why a case does not start; most cases have started by then."""

BETWEEN_CASES = timedelta(minutes=10)
"""Time between cases that is added to a run's default active deadline."""


@dataclass(frozen=True)
class Limit:
    """Define the maximum time of a wait: a field of the run's policy, else `duration`; None means no limit."""

    duration: timedelta | None = None
    policy: str = ""
    """Name of the field of `RunPolicy`, which is in seconds; empty if no field sets the limit."""
    tries: int = 0
    """Minimum number of tries before the wait may end."""
    counted: str = ""
    """For docs: the beginning of the limit, if that is not the beginning of the wait."""
    otherwise: str = "without limit if it is not set"
    """For docs: the limit if neither the policy nor `duration` sets one."""

    def maximum_time(self, policy: RunPolicy) -> timedelta | None:
        """Return the maximum time of the wait: from the run's policy, else the default; None if there is no limit."""
        policy_seconds: int | None = getattr(policy, self.policy) if self.policy else None
        return self.duration if policy_seconds is None else timedelta(seconds=policy_seconds)


_START_LIMIT = Limit(timedelta(days=1), "start_deadline_seconds")
_OVERTIME_LIMIT = Limit(
    timedelta(minutes=2), counted="after its container has run for timeLimitSeconds and an hour, or after its deletion"
)


class Wait(Enum):
    """Define each wait: what is awaited, the beginning of a message about failed tries, the limit, and its reason."""

    CREATE_JOB = (
        "a Job that the API server refuses: a quota, an admission policy, another object with its name",
        "its Job cannot be created",
        _START_LIMIT,
        AttemptReason.START_DEADLINE_EXCEEDED,
    )
    QUEUE = (
        "the queue that holds the Job suspended; the message has its words",
        "",
        Limit(policy="start_deadline_seconds"),
        AttemptReason.START_DEADLINE_EXCEEDED,
    )
    NO_QUEUE = (
        "somebody to resume a suspended Job: its queue does not exist, or the cluster has no Kueue",
        "",
        _START_LIMIT,
        AttemptReason.START_DEADLINE_EXCEEDED,
    )
    POD = (
        "a pod that the Job controller cannot create: a quota, a priority class, an admission webhook",
        "",
        _START_LIMIT,
        AttemptReason.START_DEADLINE_EXCEEDED,
    )
    START = (
        "a node, an image, a volume, a container",
        "",
        _START_LIMIT,
        AttemptReason.START_DEADLINE_EXCEEDED,
    )
    END_OF_POD = (
        "the end of a pod: its runner ends by itself; before a pod counts as lost, the API server is asked",
        "",
        _OVERTIME_LIMIT,
        AttemptReason.NODE_LOST,
    )
    FIND_POD = (
        "the API server, to say what became of a Job or a pod",
        "cannot find out what became of it",
        Limit(timedelta(minutes=30), tries=MINIMUM_TRIES),
        AttemptReason.RESULT_LOST,
        "Check that the API server answers, and delete what is in the way",
    )
    RESULT = (
        "the API server, to say whether a case has a result, before its attempt counts as lost",
        "cannot find out whether it has a result",
        Limit(timedelta(minutes=30), tries=MINIMUM_TRIES),
        AttemptReason.RESULT_LOST,
        "Check that the API server answers",
    )
    READ_LOG = (
        "the log of a pod that has ended",
        "the log of its pod cannot be read",
        # A run does not wait long for a node that no longer answers.
        Limit(timedelta(minutes=5), tries=MINIMUM_TRIES),
        ConditionReason.INCOMPLETE,
        "Check that its node is Ready; after 5 minutes the case counts without its log",
    )
    STORE_RESULT = (
        "the API server, to accept a result that it refuses: a quota, an admission policy, an error",
        "its result cannot be stored",
        # Somebody may increase the quota.
        Limit(timedelta(minutes=30), tries=MINIMUM_TRIES),
        AttemptReason.RESULT_REFUSED,
        "Have that changed within 30 minutes; the Job keeps its log",
    )
    RETRY = (
        "the next attempt, after the infrastructure lost one: 10 s, then twice as long each time",
        "",
        # The cause may last.
        Limit(timedelta(minutes=10)),
        None,
    )
    EARLIER_POD = (
        "the pod of the previous attempt, which has not ended",
        "",
        _OVERTIME_LIMIT,
        None,
    )
    ACTIVE = (
        "the cases of a run, while they are measured",
        "",
        Limit(policy="active_deadline_seconds", otherwise="by default as long as all cases together can take"),
        ConditionReason.ACTIVE_DEADLINE_EXCEEDED,
    )
    RESUME = (
        "the user, who has suspended the run",
        "",
        Limit(otherwise="without limit"),
        None,
    )

    def __init__(self, awaited: str, problem: str, limit: Limit, ends_with: Reason | None, remedy: str = "") -> None:
        self.awaited = awaited
        self.problem = problem
        """Beginning of a message about failed tries."""
        self.limit = limit
        self.ends_with = ends_with
        """Reason of the attempt's or the run's failure when the limit is reached; None if the run continues."""
        self.remedy = remedy
        """End of a message about failed tries."""

    @property
    def default_limit(self) -> timedelta:
        """Return the maximum time of this wait for a run whose policy does not set it.

        Raises ValueError for a wait that has no maximum.
        """
        if self.limit.duration is None:
            raise ValueError(f"Wait.{self.name} has no duration")
        return self.limit.duration

    def is_over(self, since: datetime, tries: int, now: datetime) -> bool:
        """Return True if enough tries were made and enough time has passed."""
        return tries >= self.limit.tries and now - since >= self.default_limit


def retry_delay(retries: int) -> timedelta:
    """Return the pause before the next retry of a case that was retried `retries` times; it doubles with each retry."""
    return min(FIRST_RETRY * (1 << retries), Wait.RETRY.default_limit)


def next_events_read(since: datetime, reads: int) -> datetime:
    """Return when to read Events again, after `reads` reads of which the first was at `since`.

    The pause after the first read is `DELAY_BEFORE_FIRST_READ`, and each later pause is twice as long.
    """
    # After n reads, the sum of the pauses 1, 2, 4, ... is 2**n - 1.
    return since + DELAY_BEFORE_FIRST_READ * ((1 << reads) - 1)

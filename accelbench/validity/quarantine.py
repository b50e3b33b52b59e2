"""Separate rounds that other load disturbed: they count for no variant and are measured again.

If the case accepts noise, disturbed rounds count and there is no verdict.

The decision uses readings of the machine, never the times: dropping rounds because they are slow would bias the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import LaunchCheck

L = TypeVar("L", bound=LaunchRecord)


@dataclass(frozen=True)
class SplitRounds(Generic[L]):
    """Hold the launches that count, the quarantined launches, and why."""

    counted: tuple[L, ...]
    quarantined: tuple[L, ...] = ()
    reasons: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What disturbed each round, by round number."""
    noisy: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What disturbed each round that counts because the case accepts noise, by round number."""

    @property
    def all_disturbed(self) -> bool:
        """Return True if every round was disturbed: all count, and fail the disturbance checks."""
        return bool(self.reasons) and not self.quarantined


def disturbance_checks() -> tuple[LaunchCheck, ...]:
    """Return the checks that other load fails, not the variant."""
    return tuple(check for check in validity_checks() if isinstance(check, LaunchCheck) and check.disturbance)


def disturbance_names() -> frozenset[str]:
    """Return the names of the disturbance checks."""
    return frozenset(check.name for check in disturbance_checks())


def failed_by_noise() -> frozenset[str]:
    """Return the names of all checks that other load can fail."""
    return frozenset(
        check.name
        for check in validity_checks()
        if (check.disturbance if isinstance(check, LaunchCheck) else check.noise)
    )


def disturbances(case: Case, launch: LaunchRecord) -> tuple[str, ...]:
    """Describe each disturbance check that the launch fails; empty for a launch that observes and times nothing."""
    if launch.observes:
        return ()
    findings = [(check.name, check.evaluate(case, launch)) for check in disturbance_checks()]
    return tuple(
        f"{name} for {launch.variant}: {finding.reading}" for name, finding in findings if finding.outcome == "failed"
    )


def split_disturbed(case: Case, launches: Sequence[L]) -> SplitRounds[L]:
    """Separate disturbed rounds: one disturbed launch disqualifies its whole round.

    All rounds count if the case accepts noise, or if every round was disturbed.
    """
    reasons: dict[int, tuple[str, ...]] = {}
    for launch in launches:
        if causes := disturbances(case, launch):
            reasons[launch.round] = reasons.get(launch.round, ()) + causes
    if case.measurement.accept_noise:
        return SplitRounds(counted=tuple(launches), noisy=reasons)
    counted = tuple(launch for launch in launches if launch.round not in reasons)
    if not counted:
        return SplitRounds(counted=tuple(launches), reasons=reasons)
    quarantined = tuple(launch for launch in launches if launch.round in reasons)
    return SplitRounds(counted=counted, quarantined=quarantined, reasons=reasons)

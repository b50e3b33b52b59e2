"""Separate rounds that other load disturbed: they count for no variant and are measured again.

Launches of such rounds are called quarantined. If the case accepts noise, disturbed rounds count and there is no
verdict.

The decision uses readings of the machine, never the times: dropping rounds because they are slow would bias the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import CaseCheck, LaunchCheck

Launch = TypeVar("Launch", bound=LaunchRecord)


@dataclass(frozen=True)
class SplitRounds(Generic[Launch]):
    """Hold the launches that count, and those of disturbed rounds, which do not count, with the reasons."""

    counted: tuple[Launch, ...]
    quarantined: tuple[Launch, ...] = ()
    reasons: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What disturbed each disturbed round, by round number; empty if the case accepts noise."""
    noisy: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What disturbed each round that counts because the case accepts noise, by round number."""

    @property
    def all_disturbed(self) -> bool:
        """Return True if every round was disturbed, and the case does not accept noise.

        Then no launch is quarantined, because none would be left.
        """
        return bool(self.reasons) and not self.quarantined


def disturbance_checks() -> tuple[LaunchCheck, ...]:
    """Return the checks that fail because of other load on the machine."""
    return tuple(check for check in validity_checks() if isinstance(check, LaunchCheck) and check.disturbance)


def disturbance_check_names() -> frozenset[str]:
    """Return the names of the disturbance checks."""
    return frozenset(check.name for check in disturbance_checks())


def noise_check_names() -> frozenset[str]:
    """Return the names of all checks that other load on the machine can make fail, disturbance checks included."""
    noise_names = {check.name for check in validity_checks() if isinstance(check, CaseCheck) and check.noise}
    return disturbance_check_names() | noise_names


def disturbances(case: Case, launch: LaunchRecord) -> tuple[str, ...]:
    """Return a text for each disturbance check that the launch fails, with the check, the variant and the reading.

    A launch that only observes is not disturbed, because it times nothing.
    """
    if launch.observes:
        return ()
    failures = []
    for check in disturbance_checks():
        finding = check.evaluate(case, launch)
        if finding.outcome == "failed":
            failures.append(f"{check.name} for {launch.variant}: {finding.reading}")
    return tuple(failures)


def split_disturbed(case: Case, launches: Sequence[Launch]) -> SplitRounds[Launch]:
    """Separate the launches of disturbed rounds from those that count.

    All launches count if the case accepts noise, or if every round was disturbed.
    """
    reasons: dict[int, tuple[str, ...]] = {}
    for launch in launches:
        launch_reasons = disturbances(case, launch)
        if launch_reasons:  # one disturbed launch makes its whole round disturbed
            reasons[launch.round] = reasons.get(launch.round, ()) + launch_reasons
    if case.measurement.accept_noise:
        return SplitRounds(counted=tuple(launches), noisy=reasons)
    counted = tuple(launch for launch in launches if launch.round not in reasons)
    if not counted:  # every round was disturbed
        return SplitRounds(counted=tuple(launches), reasons=reasons)
    quarantined = tuple(launch for launch in launches if launch.round in reasons)
    return SplitRounds(counted=counted, quarantined=quarantined, reasons=reasons)

"""Which rounds something outside the variants disturbed: they count for no variant, and are measured again.

Where a case accepts noise they count, and nothing has a verdict.

What decides is read from the machine, never from the times themselves: leaving out rounds for being slow would choose
the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import LaunchCheck

L = TypeVar("L", bound=LaunchRecord)


@dataclass(frozen=True)
class Rounds(Generic[L]):
    """Launches that count, those that do not, and why."""

    counted: tuple[L, ...]
    quarantined: tuple[L, ...] = ()
    reasons: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Of each disturbed round, by its number."""
    noisy: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The same of disturbed rounds that count all the same, as the case accepts noise."""

    @property
    def all_disturbed(self) -> bool:
        """Every round was disturbed: then all of them count, and fail the checks that they were quarantined by."""
        return bool(self.reasons) and not self.quarantined


def disturbance_checks() -> tuple[LaunchCheck, ...]:
    """The checks that a launch can fail without its variant's doing."""
    return tuple(check for check in validity_checks() if isinstance(check, LaunchCheck) and check.disturbance)


def disturbance_names() -> frozenset[str]:
    """Names of those checks."""
    return frozenset(check.name for check in disturbance_checks())


def failed_by_noise() -> frozenset[str]:
    """Names of the checks that other load can fail."""
    return frozenset(
        check.name
        for check in validity_checks()
        if (check.disturbance if isinstance(check, LaunchCheck) else check.noise)
    )


def disturbances(case: Case, launch: LaunchRecord) -> tuple[str, ...]:
    """What disturbed the launch, for people; who observes and times nothing is not disturbed."""
    if launch.observes:
        return ()
    findings = [(check.name, check.evaluate(case, launch)) for check in disturbance_checks()]
    return tuple(
        f"{name} for {launch.variant}: {finding.reading}" for name, finding in findings if finding.outcome == "failed"
    )


def split_disturbed(case: Case, launches: Sequence[L]) -> Rounds[L]:
    """Launches that did not fail, a disturbed round's apart: one disturbed launch takes the whole round with it."""
    reasons: dict[int, tuple[str, ...]] = {}
    for launch in launches:
        if found := disturbances(case, launch):
            reasons[launch.round] = reasons.get(launch.round, ()) + found
    if case.measurement.accept_noise:
        return Rounds(counted=tuple(launches), noisy=reasons)
    counted = tuple(_outside(launches, reasons))
    if not counted:
        return Rounds(counted=tuple(launches), reasons=reasons)
    quarantined = tuple(launch for launch in launches if launch.round in reasons)
    return Rounds(counted=counted, quarantined=quarantined, reasons=reasons)


def _outside(launches: Iterable[L], rounds: Mapping[int, object]) -> Iterable[L]:
    return (launch for launch in launches if launch.round not in rounds)

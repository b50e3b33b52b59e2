"""Hold what validity checks evaluate: a case and its successful launches.

A round is disturbed if other load on the machine affected it. Its launches are quarantined: they do not count. But if
the case accepts noise, or if every round was disturbed, all launches count (`accelbench.validity.quarantine`).
"""

from dataclasses import dataclass

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord


@dataclass(frozen=True)
class Evidence:
    """Hold a case and its successful launches, in the order in which they ran."""

    case: Case
    launches: tuple[LaunchRecord, ...]
    """Launches that count."""
    quarantined: tuple[LaunchRecord, ...] = ()
    """Launches of disturbed rounds, which do not count."""

    def launches_of(self, variant: str) -> tuple[LaunchRecord, ...]:
        """Return the variant's launches that count."""
        return tuple(launch for launch in self.launches if launch.variant == variant)

    def quarantined_of(self, variant: str) -> tuple[LaunchRecord, ...]:
        """Return the variant's launches of disturbed rounds, which do not count."""
        return tuple(launch for launch in self.quarantined if launch.variant == variant)

    @property
    def only_observed(self) -> bool:
        """Return True if the launches only observe and time nothing."""
        return bool(self.launches) and all(launch.observes for launch in self.launches)

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the names of the variants with launches that count, in the case's order."""
        return tuple(variant.name for variant in self.case.variants if self.launches_of(variant.name))

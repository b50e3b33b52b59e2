"""What validity checks look at: a case, and its launches that did not fail."""

from dataclasses import dataclass

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord


@dataclass(frozen=True)
class Evidence:
    """A case and its launches that did not fail, in the order they were made."""

    case: Case
    launches: tuple[LaunchRecord, ...]
    """Those that count."""
    quarantined: tuple[LaunchRecord, ...] = ()
    """Those of disturbed rounds."""

    def of(self, variant: str) -> tuple[LaunchRecord, ...]:
        """The launches of one variant."""
        return tuple(launch for launch in self.launches if launch.variant == variant)

    def quarantined_of(self, variant: str) -> tuple[LaunchRecord, ...]:
        """The quarantined launches of one variant."""
        return tuple(launch for launch in self.quarantined if launch.variant == variant)

    @property
    def nothing_timed(self) -> bool:
        """Every launch observes."""
        return bool(self.launches) and all(launch.observes for launch in self.launches)

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that have launches, in the case's order."""
        return tuple(variant.name for variant in self.case.variants if self.of(variant.name))

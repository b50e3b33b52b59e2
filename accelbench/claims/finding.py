"""Define the finding that a claim's verdict is derived from."""

from dataclasses import dataclass

from accelbench.api.result import Outcome


@dataclass(frozen=True)
class ClaimFinding:
    """Hold the outcome of one condition of a claim; `sentence` has the numbers."""

    outcome: Outcome
    sentence: str
    sound: bool = False
    """True if a valid measurement decided, and not a missing one."""

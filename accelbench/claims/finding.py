"""What a claim's verdict is made of."""

from dataclasses import dataclass

from accelbench.api.result import Outcome


@dataclass(frozen=True)
class ClaimFinding:
    """What became of one thing that a claim rests on; `sentence` says it with the numbers."""

    outcome: Outcome
    sentence: str
    sound: bool = False
    """A measurement that can be believed decided, and not the want of one."""

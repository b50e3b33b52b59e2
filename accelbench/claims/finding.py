"""Define the finding that a claim's verdict is derived from."""

from dataclasses import dataclass

from accelbench.api.result import Outcome


@dataclass(frozen=True)
class ClaimFinding:
    """Hold the outcome of one condition of a claim; `sentence` has the measured values."""

    outcome: Outcome
    sentence: str
    is_valid: bool = False
    """True if the outcome comes from a valid and complete measurement."""
    excludes_figure: bool = False
    """True if the article claims a figure, such as 3 times as fast, that the measured interval does not contain."""

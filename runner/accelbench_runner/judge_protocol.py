"""What the supervisor asks of the judge, and what the judge answers.

The judge is a short-lived child (`python -m accelbench_runner.judge`): it imports numpy and scipy, so that the
supervisor need not. It reads a `JudgeRequest` from standard input and writes an `Assessment` to standard output.
"""

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate, Comparison, Disturbed, Quarantined, Spread
from accelbench.document import Document
from accelbench.launch.record import LaunchRecord, ParityReading


class JudgeRequest(Document):
    """All launches so far, and where the outputs of those lie that have no parity reading yet."""

    case: Case
    launches: tuple[LaunchRecord, ...]
    outputs: dict[str, str] = {}
    """`ROUND/VARIANT` to the launch's directory, which holds `outputs.npz`."""
    directory: str
    """The case's own; references are kept there between rounds."""
    unseen_seed: int = 0
    """Of the inputs that launches were given once they had been timed."""
    timed: bool = True
    """False: launches compute, and only that is judged."""


class Assessment(Document):
    """What the judge makes of the rounds so far."""

    parity: dict[str, ParityReading] = {}
    """`ROUND/VARIANT` to the reading, for each entry of the request's `outputs`."""
    certificate: Certificate
    comparisons: tuple[Comparison, ...]
    tail_comparisons: tuple[Comparison, ...] = ()
    rounds: int
    """Complete rounds that count."""
    quarantined: tuple[Quarantined, ...] = ()
    noisy: tuple[Disturbed, ...] = ()
    spread: dict[str, Spread] = {}
    """By variant, of the launches that count."""
    stop: StopReason | None = None
    """Why measuring may end now; None: another round."""

"""Define the supervisor's request to the judge, and the judge's answer.

The judge is a short-lived child, `python -m accelbench_runner.judge`, that reads a `JudgeRequest` from standard input
and writes an `Assessment` to the file that the request names. Standard output and standard error belong to the
workload's code, such as `arrays` and `reference`, and are forwarded up to a limit.
"""

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate, Comparison, Disturbed, Quarantined, Spread
from accelbench.document import Document
from accelbench.launch.record import LaunchRecord, ParityReading


class JudgeRequest(Document):
    """Hold what the judge needs: the case, and all launches so far."""

    case: Case
    launches: tuple[LaunchRecord, ...]
    outputs: dict[str, str] = {}
    """Directory with `outputs.npz` by `ROUND/VARIANT`, for each launch without a parity reading."""
    directory: str
    """Directory of the reference files, which later rounds read again."""
    answer: str = ""
    """File for the assessment."""
    reference_problem: str = ""
    """Why the reference cannot be computed: it ended the process of an earlier judge. Then this judge does not run it,
    and compares no outputs."""
    reference_delay: str = ""
    """Why there is no reference yet: an earlier judge did not finish it within the time limit."""
    unseen_seed: int = 0
    """Seed of the unseen inputs, which launches got only after they were timed."""
    timed: bool = True
    """False: nothing was timed, so only outputs are judged."""


class Assessment(Document):
    """Hold the judge's assessment of the rounds so far."""

    parity: dict[str, ParityReading] = {}
    """Reading by `ROUND/VARIANT`, for each of the request's outputs."""
    certificate: Certificate
    comparisons: tuple[Comparison, ...]
    tail_comparisons: tuple[Comparison, ...] = ()
    rounds: int
    """Number of complete rounds that were not disturbed."""
    quarantined: tuple[Quarantined, ...] = ()
    noisy: tuple[Disturbed, ...] = ()
    spread: dict[str, Spread] = {}
    """Spread by variant, over the launches that count."""
    stop: StopReason | None = None
    """Why measuring may end; None if another round is needed."""

"""What the supervisor keeps of launches and rounds, and what it asks of the judge.

The judge is a short-lived child (`python -m accelbench_runner.judge`): it imports numpy and scipy, so that the
supervisor need not. It reads a `JudgeRequest` from standard input and writes an `Assessment` to standard output.
"""

from typing import Annotated, Any

from pydantic import Field

from accelbench.api.case import Case
from accelbench.api.result import Certificate, Comparison, Disturbed, Failure, Phase, Quarantined, Spread, StopReason
from accelbench.delivery.log import Unfinished
from accelbench.document import Document
from accelbench.validity.evidence import Probe


class BlockRecord(Document):
    """One timed run of `steps` units between two synchronisations."""

    steps: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PhaseRecord(Document):
    """How long a phase of one launch took, and what it is made of."""

    phase: Phase
    seconds: float
    parts: dict[str, float] = {}


class ParityReading(Document):
    """One launch's outputs against the float64 reference, after `units` units."""

    units: int
    finite: bool
    worst_ratio: float
    """The largest error over its tolerance, over all exported arrays; above 1 the comparison has failed."""
    worst_array: str
    detail: str
    """For people: the error, the tolerance and where."""
    reference_frameworks: tuple[str, ...] = ()
    """That the reference was computed with."""
    compared: bool = True
    """False: nothing tells right from wrong, as no number is finite or what is right is what there was before."""
    counts_units: bool = True
    """False: half as many units would have given the same."""
    unseen: "UnseenReading | None" = None
    """Of the same launch on inputs that it had not seen; None: it was given none."""


class UnseenReading(Document):
    """Outputs on other inputs than those a program was built from."""

    reading: ParityReading
    changes: bool
    """What is right differs from what is right on the inputs it was built from, by more than the tolerance."""


class WarmProbe(Document):
    """What a new process took on the compile caches that a launch had left, up to the end of its first step."""

    phases: tuple[PhaseRecord, ...] = ()
    cache: Any = None
    """What it reported of the cache's hits and misses."""
    failure: str | None = None
    wall_seconds: float = 0.0


class LaunchRecord(Document):
    """One launch of one variant, whole: what `launch` lines of the log carry."""

    variant: str
    round: int
    position: int
    """Place in the round's order, from 0."""
    wall_seconds: float
    phases: tuple[PhaseRecord, ...] = ()
    blocks: tuple[BlockRecord, ...] = ()
    facts: dict[str, Any] = {}
    failure: Failure | None = None
    parity: ParityReading | None = None
    warm: WarmProbe | None = None
    unfinished: Unfinished | None = None
    unchecked: dict[Probe, str] = {}
    """Probes of accelbench's own that gave no answer, and why."""
    ended_by: Probe | None = None
    """The probe that hung or crashed, and the process with it; a measurement that was complete stands."""
    probe_seconds: float = 0.0
    """Of the wall seconds: what those probes took that gave an answer, too."""


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

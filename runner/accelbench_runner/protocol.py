"""The launch protocol: what the supervisor tells a launch, and what the launch answers over a pipe of its own.

The supervisor starts `python -m accelbench_runner.launch`, writes one `LaunchRequest` to its standard input and closes
it. The launch writes one JSON message a line to the file descriptor named in the request, never to standard output:
that, and standard error, belong to the user's code and are only forwarded, capped. A launch that ends without `Done`
or `Failed` has crashed. Times are floats here, in seconds: nothing of this is stored as it is.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase
from accelbench.document import Document
from accelbench.launch.facts import Probe
from accelbench.launch.record import Aside, Block

Purpose = Literal["measure", "probe", "check", "compile"]
"""What a launch is for. A `probe` ends after the first step: a warm start, on the compile caches that a launch has
left. A `check` does all that a measurement does, but time blocks. A `compile` compiles for the case's target, and runs
nothing of what came of it."""

MAXIMUM_MESSAGE_BYTES = 1024 * 1024
UNDER_WAY = "under-way"
"""A file in the launch's directory: the probe that is under way between blocks, where no message may wake anyone."""
ABOUT_THE_MACHINE = "ACCELBENCH_MACHINE_DIRECTORY"
"""Names the directory, one for all launches of a case, of what a framework finds out about the machine alone."""


class LaunchRequest(Document):
    """One variant of one case, to be measured in a fresh process."""

    case: Case
    variant: str
    round: int
    directory: str
    """The launch's own: temporary files, compile caches, and `outputs.npz` for the parity check."""
    descriptor: int
    """The file descriptor that messages go to."""
    threads: int
    """For both frameworks; equal to the processors that the process may run on."""
    purpose: Purpose = "measure"
    skip: tuple[Probe, ...] = ()
    """Probes of accelbench's own that are left out: they hung or crashed in an earlier launch of the case."""
    memory_bytes: int | None = None
    """What the process may hold of data; more than that is refused to it by the kernel."""
    unseen_seed: int = 0
    """Of inputs that the program is given once it has been timed; nobody tells it before."""


class PhaseStarted(Document):
    """A phase begins; the one before it has ended."""

    type: Literal["phase-started"] = "phase-started"
    phase: Phase


class PhaseEnded(Document):
    """A phase took this long; what it is made of (trace, lower, backend) in `parts`."""

    type: Literal["phase-ended"] = "phase-ended"
    phase: Phase
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    parts: dict[str, float] = {}


class FactsTold(Document):
    """What the launch read back, by the names of `Facts`; the supervisor parses it once the launch has ended."""

    type: Literal["facts"] = "facts"
    values: dict[str, Any]


class AsideStarted(Document):
    """Something beside the phases begins."""

    type: Literal["aside-started"] = "aside-started"
    name: Aside
    alone: bool = False
    """It is a probe of accelbench's own, which runs nothing of the variant's."""


class AsideEnded(Document):
    """What began last beside the phases took this long, without what began inside it."""

    type: Literal["aside-ended"] = "aside-ended"
    name: Aside
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    problem: str = ""
    """Of a probe: what it raised instead of an answer."""


class Measured(Document):
    """Whatever a verdict needs has been told: what follows are looks that it can do without."""

    type: Literal["measured"] = "measured"


class BlockTimed(Block):
    """A block, with the type by which messages are told apart."""

    type: Literal["block"] = "block"


class Done(Document):
    """The launch measured everything it was asked to."""

    type: Literal["done"] = "done"


class Failed(Document):
    """The variant failed in a way that the launch could still tell; `trace` points at the user's line."""

    type: Literal["failed"] = "failed"
    reason: FailureReason
    message: str
    trace: str = ""


Message = PhaseStarted | PhaseEnded | AsideStarted | AsideEnded | FactsTold | BlockTimed | Measured | Done | Failed
_message: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def parse_message(line: str | bytes) -> Message:
    """The message on a line; raises pydantic.ValidationError for anything else."""
    return _message.validate_json(line)

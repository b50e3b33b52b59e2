"""Define the launch protocol: the supervisor's request, and the messages that a launch sends back over a pipe.

The supervisor starts `python -m accelbench_runner.launch` with one `LaunchRequest` as standard input. The launch writes
one JSON message a line to the file descriptor that the request names. Standard output and standard error belong to the
user's code, and are forwarded up to a limit. A launch that ends without a `FinalMessage` has crashed. Times are floats
in seconds; none of these documents is stored.

The parity check compares a program's outputs with the reference. Unseen inputs are those that a program gets only after
it was timed. A probe is work of accelbench's own within a launch: if it fails, the variant has not failed. A warm probe
is something else, a launch with the purpose `probe`.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase
from accelbench.document import Document
from accelbench.launch.facts import Probe
from accelbench.launch.record import Activity, Block

Purpose = Literal["measure", "probe", "check", "compile", "explain"]
"""Purpose of a launch. `probe`: a warm start, with the compile caches of an earlier launch, that ends after the first
step. `check`: everything that a measurement does, except timing blocks. `compile`: compile for the case's target, and
run nothing. `explain`: make calls under the framework's profiler, and time nothing for a verdict."""

MAXIMUM_MESSAGE_BYTES = 1024 * 1024
PROBE_FILE = "under-way"
"""A file in the launch's directory that names the probe running between blocks, because a message would wake the
supervisor."""
TRACE_FILE = "trace.json.gz"
"""A file in the directory of a launch that explains: the profiler's trace."""
MACHINE_DIRECTORY = "ACCELBENCH_MACHINE_DIRECTORY"
"""Environment variable: the directory, shared by all launches of a case, in which frameworks cache facts about the
machine."""


class LaunchRequest(Document):
    """Ask for one launch of one variant."""

    case: Case
    variant: str
    round: int
    directory: str
    """Directory of this launch: temporary files, compile caches, and `outputs.npz` for the parity check."""
    descriptor: int
    """File descriptor for messages."""
    threads: int
    """Threads for a framework: the number of processors that the process may use."""
    purpose: Purpose = "measure"
    skip: tuple[Probe, ...] = ()
    """Probes to leave out, because they hung or crashed in an earlier launch of the case."""
    memory_bytes: int | None = None
    """Limit of the process's data, enforced by the kernel."""
    unseen_seed: int = 0
    """Seed of the unseen inputs; a random number, so that no program can know them."""
    needs_gradients: bool = False
    """True if an earlier launch of the variant needed autograd, although the workload does not declare it."""


class PhaseStarted(Document):
    """Report that a phase begins; the previous one has ended."""

    type: Literal["phase-started"] = "phase-started"
    phase: Phase


class PhaseEnded(Document):
    """Report the seconds of a phase and of its parts, such as trace, lower and backend."""

    type: Literal["phase-ended"] = "phase-ended"
    phase: Phase
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    parts: dict[str, float] = {}


class FactsReported(Document):
    """Report facts, by field of `accelbench.launch.facts.Facts`; the supervisor parses them after the launch."""

    type: Literal["facts"] = "facts"
    values: dict[str, Any]


class ActivityStarted(Document):
    """Report that an activity outside the phases begins."""

    type: Literal["aside-started"] = "aside-started"
    name: Activity
    alone: bool = False
    """True for a probe, which has its own time limit; False for an activity that also calls the variant's program."""


class ActivityEnded(Document):
    """Report the seconds of the activity `name`, which has ended, without activities nested in it."""

    type: Literal["aside-ended"] = "aside-ended"
    name: Activity
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    problem: str = ""
    """The exception of a probe that failed."""


class Measured(Document):
    """Report that everything a verdict needs was sent: if a probe ends the launch later, what was measured counts."""

    type: Literal["measured"] = "measured"


class BlockTimed(Block):
    """Report a timed block."""

    type: Literal["block"] = "block"


class Done(Document):
    """Report success."""

    type: Literal["done"] = "done"


class NeedsGradients(Document):
    """Report that the step computes gradients and autograd is off: the launch has to start again with autograd."""

    type: Literal["needs-gradients"] = "needs-gradients"


class Failed(Document):
    """Report that the variant failed; `trace` begins with the user's line."""

    type: Literal["failed"] = "failed"
    reason: FailureReason
    message: str
    trace: str = ""


FinalMessage = Done | Failed | NeedsGradients
Message = (
    PhaseStarted | PhaseEnded | ActivityStarted | ActivityEnded | FactsReported | BlockTimed | Measured | FinalMessage
)
_message: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def parse_message(line: str | bytes) -> Message:
    """Parse a line of JSON; raise pydantic.ValidationError if it is no message."""
    return _message.validate_json(line)

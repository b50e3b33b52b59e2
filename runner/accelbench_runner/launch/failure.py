"""What a variant raised, as a message for the person who wrote it."""

import traceback
from pathlib import Path

import accelbench
from accelbench.api.reasons import FailureReason
from accelbench.catalogue import script, workload_checks
from accelbench_runner.frameworks.adapter import Adapter, UnsupportedError
from accelbench_runner.protocol import Failed

MAXIMUM_MESSAGE_CHARACTERS = 2000
MAXIMUM_TRACE_CHARACTERS = 8000
NO_MEMORY = ("std::bad_alloc", "Cannot allocate memory", "failed to map segment from shared object")
"""What C++, the kernel and the dynamic linker say where memory is out."""
PACKAGE = Path(accelbench.__file__).parent
MACHINERY = (str(PACKAGE), str(Path(__file__).parent))
WORKLOADS = str(PACKAGE / "workloads")
"""Where accelbench's own code lies, and that part of it which is measured."""


def failure(error: BaseException, adapter: Adapter | None) -> Failed:
    """The exception as a message: its reason, one line for people, and where in their code it was raised."""
    if isinstance(error, UnsupportedError):
        return Failed(reason=FailureReason.UNSUPPORTED, message=str(error)[:MAXIMUM_MESSAGE_CHARACTERS])
    reason = FailureReason.RAISED
    if _out_of_memory(error) or (adapter is not None and adapter.out_of_memory(error)):
        reason = FailureReason.OUT_OF_MEMORY
    message = script.in_one_line(error)[:MAXIMUM_MESSAGE_CHARACTERS]
    return Failed(reason=reason, message=message, trace=_frames(error)[-MAXIMUM_TRACE_CHARACTERS:])


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def _frames(error: BaseException) -> str:
    """The calls that led to it: a script's own where it went through any, else all that are not ours.

    What the libraries below a script did is seldom its author's to mend; of what is ours the message has said enough.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(WORKLOADS) or not frame.filename.startswith(MACHINERY)
    ]
    file = str(script.origin())
    kept = [frame for frame in frames if frame.filename == file] or frames
    usual = not isinstance(error, workload_checks.InvalidWorkloadError)
    return "".join(traceback.StackSummary.from_list(kept).format()) if usual else ""

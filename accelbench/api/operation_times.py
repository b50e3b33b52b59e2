"""Define what a launch under the framework's profiler finds: the operations that take most of a call's time."""

from typing import Annotated

from pydantic import Field

from accelbench.document import DecimalString, Document, Line, SixDigits, round_to_digits

MAXIMUM_OPERATIONS = 10
"""Maximum number of operations of a variant in a result."""
TIMED_CALLS = frozenset({"steady", "latency"})
"""Protocols that are explained: their times are those of calls, without compiling and waiting."""


class OperationTime(Document):
    """Hold the time that one operation takes in a call."""

    name: Line = Field(description="As the framework calls it: dot_general, aten::mm, or `fusion of` its operations.")
    source: Line | None = Field(
        default=None, description="File and lines of the program that it comes from; of a fusion, all its lines."
    )
    merged: bool = Field(default=False, description="True if a compiler made it of several operations, as a fusion is.")
    runs: SixDigits = Field(description="How often it runs in a call.")
    seconds: SixDigits = Field(
        description="Seconds of a call in which it runs, without operations that it calls; if several operations run "
        "at once, its part of that time."
    )


class OperationTimes(Document):
    """Report where a call's time goes, from one launch under the framework's profiler, after all that was timed."""

    seconds_per_call: SixDigits = Field(description="Seconds of a call under the profiler, which may slow it down.")
    calls: int = Field(ge=1, description="Calls that were profiled.")
    busy_share: Annotated[DecimalString, round_to_digits(4)] | None = Field(
        default=None,
        description="Share of a call in which any operation runs. None on a CPU for compiled programs and for PyTorch, "
        "whose operations contain their own dispatch.",
    )
    operations: tuple[OperationTime, ...] = Field(
        max_length=MAXIMUM_OPERATIONS, description="The operations that take most, longest first."
    )
    left_out: int = Field(default=0, ge=0, description="Number of other operations, which take less.")

    def share(self, operation: OperationTime) -> float:
        """Return the share of a call's time that an operation takes."""
        return float(operation.seconds) / float(self.seconds_per_call)

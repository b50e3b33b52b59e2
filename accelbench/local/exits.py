"""The exit codes, once: what `accelbench` returns, what `--help` says of it, what scripts may rely on."""

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """Exit codes; where several apply, the one that stands last here wins."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """A code and what it means, for `--help`."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    SUCCESS = 0, "success: every case has a valid result, every expectation is met; a verdict may be inconclusive"
    EXPECTATION_NOT_MET = 6, "an expectation is not met, or undecided"
    NOISY = 7, "rounds were disturbed, and noise was accepted: no verdict (4 and 5 take precedence)"
    INVALID_MEASUREMENT = 5, "a comparison is invalid, or could not be made"
    VARIANT_FAILED = 4, "a variant failed; the other variants' results still count"
    NOT_MEASURED = 8, "in a cluster: cancelled, past a deadline, or a case was lost; what was measured is kept"
    INVALID_SPEC = 3, "a manifest or a result file is not valid, or cannot run on this machine"
    USAGE = 2, "the command line is wrong, a file cannot be read or written, or a cluster cannot be reached"
    TIMED_OUT = 124, "in a cluster: the run is not finished after --timeout; it goes on"
    INTERNAL = 1, "accelbench itself failed"
    INTERRUPTED = 130, "interrupted by Ctrl-C; what was measured is kept"
    TERMINATED = 143, "ended by SIGTERM; what was measured is kept"

    @classmethod
    def worst(cls, codes: "list[Exit]") -> "Exit":
        """The code that wins; `SUCCESS` of none."""
        order = list(cls)
        return max(codes, key=order.index, default=cls.SUCCESS)


def help_text() -> str:
    r"""The table for `--help`; the leading `\b` keeps its lines as they are."""
    lines = (f"  {code.value:>3}  {code.meaning}" for code in sorted(Exit))
    return "\n".join(["\b", "Exit codes:", *lines])

"""Define the exit codes of `accelbench` and the kubectl plugin, with their text in `--help`."""

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """List the exit codes from the least to the most severe; if several apply, the last one wins."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Create a member with an exit code and its meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    SUCCESS = 0, "success: every case has a valid result, every expectation is met; a verdict may be inconclusive"
    EXPECTATION_NOT_MET = 6, "an expectation is not met, or undecided"
    NOISY = 7, "rounds were disturbed, and noise was accepted: no verdict (4 and 5 take precedence)"
    INVALID_MEASUREMENT = 5, "a comparison is invalid, or could not be made"
    VARIANT_FAILED = 4, "a variant failed; the other variants' results still count"
    NOT_MEASURED = (
        8,
        "in a cluster: cancelled, past a deadline, or a case was not measured; other results are kept",
    )
    INVALID_SPEC = 3, "a manifest or a result file is not valid, or cannot run on this machine"
    USAGE = 2, "the command line is wrong, a file cannot be read or written, or a cluster cannot be reached"
    TIMED_OUT = 124, "in a cluster: the run is not finished after --timeout; it continues"
    INTERNAL = 1, "accelbench itself failed"
    INTERRUPTED = 130, "interrupted by Ctrl-C; what was measured is kept"
    TERMINATED = 143, "ended by SIGTERM; what was measured is kept"

    @classmethod
    def worst(cls, codes: "list[Exit]") -> "Exit":
        """Return the most severe code, or SUCCESS without codes."""
        by_severity = list(cls)  # in the order of their definition
        return max(codes, key=by_severity.index, default=cls.SUCCESS)


def help_text() -> str:
    """Return the table of exit codes for `--help`."""
    lines = (f"  {code.value:>3}  {code.meaning}" for code in sorted(Exit))
    # `\b` tells click to keep the line breaks.
    return "\n".join(["\b", "Exit codes:", *lines])

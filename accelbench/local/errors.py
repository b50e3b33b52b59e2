"""Define the exceptions of `accelbench.local`.

    LocalError
    ├── UsageError             an argument is wrong: a path, a variant, an assignment
    ├── InvalidSpecError       a manifest is not valid, or cannot run on this machine
    ├── OccupiedError          the directory for new results is not empty
    └── UnreadableResultError  a file holds no result, or cannot be read

Operating-system errors while results are written stay `OSError`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accelbench.problem import Problem


class LocalError(Exception):
    """Report an error that a caller of `accelbench.local` can handle."""


class UsageError(LocalError):
    """Refuse an argument; `argument` is its name on the command line, such as `FILE` or `--set`."""

    def __init__(self, message: str, argument: str) -> None:
        super().__init__(message)
        self.argument = argument


class InvalidSpecError(LocalError):
    """Report every problem of a manifest at once."""

    def __init__(self, source: str, problems: "Sequence[Problem]") -> None:
        """Take the file's name as `source`, for the message."""
        super().__init__(source)
        self.source = source
        self.problems = tuple(problems)

    def explained(self) -> str:
        """Return the file's name and one line for each problem, for standard error."""
        return "\n".join([f"{self.source} is not valid:", *(f"  {problem}" for problem in self.problems)])


class OccupiedError(LocalError):
    """Refuse to mix new results with existing files."""


class UnreadableResultError(LocalError):
    """Report that a file or directory holds no result."""

    def __init__(self, message: str) -> None:
        """Put the message on one line, because it can quote the file."""
        from accelbench.document import on_one_line

        super().__init__(on_one_line(message))

"""Define the exceptions of `accelbench.local`.

                               exit code
    LocalError
    ├── UsageError             2   an argument is wrong: a path, a variant, an assignment
    ├── InvalidSpecError       3   a manifest is not valid, or cannot run on this machine
    ├── OccupiedError          2   the directory for new results is not empty
    └── UnreadableResultError  3   a file holds no result, or cannot be read

Commands print `explanation()` and end with the exit code. Operating-system errors while results are written stay
`OSError`.
"""

from typing import TYPE_CHECKING, ClassVar

from accelbench.local.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accelbench.problem import Problem


class LocalError(Exception):
    """Report an error that a caller of `accelbench.local` can handle."""

    exit_code: ClassVar[Exit] = Exit.USAGE

    def explanation(self) -> str:
        """Return the text for standard error."""
        return f"error: {self}"


class UsageError(LocalError):
    """Refuse an argument of the command line."""

    def __init__(self, message: str, argument: str) -> None:
        """Create the error; `argument` is a name such as `FILE` or `--set`."""
        super().__init__(message)
        self.argument = argument


class InvalidSpecError(LocalError):
    """Report every problem of a manifest at once."""

    exit_code = Exit.INVALID_SPEC

    def __init__(self, source: str, problems: "Sequence[Problem]") -> None:
        """Create the error; `source` is the name of the manifest's file or of its run."""
        super().__init__(source)
        self.source = source
        self.problems = tuple(problems)

    def explanation(self) -> str:
        """Return the text for standard error, with a line for each problem."""
        return "\n".join([f"{self.source} is not valid:", *(f"  {problem}" for problem in self.problems)])


class OccupiedError(LocalError):
    """Refuse to mix new results with existing files."""


class UnreadableResultError(LocalError):
    """Report that a file or directory holds no result."""

    exit_code = Exit.INVALID_SPEC

    def __init__(self, message: str) -> None:
        """Create the error; the message, which can quote several lines of a file, is put on one line."""
        from accelbench.document import on_one_line

        super().__init__(on_one_line(message))

"""Load a user's script in this process, which has to survive it and to keep its standard output for results."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from accelbench.catalogue import script
from accelbench.machine.output import STANDARD_ERROR, print_to

TRIAL_SECONDS = 60
"""Maximum seconds to load a script; every launch loads it too."""
RETURNED = 86
"""Exit status of a trial whose script returned, in whichever way; no script is expected to exit with it."""
TRIAL = f"""
import os, sys
from pathlib import Path
from accelbench.catalogue import script
from accelbench.machine.output import flush_output
try:
    script.load(Path(sys.argv[1]))
except script.InvalidWorkloadError:
    pass  # who loads it next reports the error
flush_output()
os._exit({RETURNED})
"""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
ADVICE = 'what stands at its top runs in every process: put it into a function, or under if __name__ == "__main__"'


class ScriptDoesNotReturnError(Exception):
    """Report a script that ends or keeps the process that loads it."""


@contextmanager
def use(file: Path) -> Iterator[None]:
    """Make `file` the script of this process within the `with` block; what its code prints there is dropped.

    The block loads the script. If the script does more than define something, another process loads it first: what it
    prints there is shown, and ScriptDoesNotReturnError is raised if it ends or keeps that process. Afterwards, the
    working directory is what it was before.
    """
    with script.use(file):
        problem = _problem_of_trial(file) if _runs_statements(file) else ""
        if problem:
            raise ScriptDoesNotReturnError(problem)
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            with Path(os.devnull).open("w") as nowhere, print_to(nowhere.fileno()):
                yield
        finally:
            os.fchdir(directory)
            os.close(directory)


def _runs_statements(file: Path) -> bool:
    """Return True if the script has statements at its top that are neither definitions nor values."""
    try:
        statements = ast.parse(file.read_bytes()).body
    except (OSError, ValueError, SyntaxError):
        return False  # who loads it reports the error
    return not all(isinstance(statement, DEFINITIONS) or _is_value(statement) for statement in statements)


def _is_value(statement: ast.stmt) -> bool:
    """Return True for a docstring, and for the assignment of a value that is written out."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return False
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True


@cache
def _problem_of_trial(file: Path) -> str:
    """Load the script in another process; return why that did not come to its end, or an empty text."""
    try:
        trial = subprocess.run(
            [sys.executable, "-c", TRIAL, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=STANDARD_ERROR,
            timeout=TRIAL_SECONDS,
            check=False,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )
    except subprocess.TimeoutExpired:
        return f"{file.name} had not been loaded after {TRIAL_SECONDS} s; {ADVICE}"
    if trial.returncode == RETURNED:
        return ""
    end = f"status {trial.returncode}" if trial.returncode >= 0 else f"signal {-trial.returncode}"
    return f"{file.name} ends the process that loads it, with {end}; {ADVICE}"

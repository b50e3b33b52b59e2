"""Load a user's script so that it can neither end this process nor print to its standard output."""

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
"""Exit status of a trial if loading the script returned or raised an exception; no script should exit with it."""
TRIAL = f"""
import os, sys
from pathlib import Path
from accelbench.catalogue import script
from accelbench.machine.output import flush_output
try:
    script.load(Path(sys.argv[1]))
except script.InvalidWorkloadError:
    pass  # the next load reports the error
flush_output()
os._exit({RETURNED})
"""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
"""Statements that count as definitions: a script of only these is not tried in another process."""
ADVICE = 'what stands at its top runs in every process: put it into a function, or under if __name__ == "__main__"'


class ScriptDoesNotReturnError(Exception):
    """Report a script that ends the process that loads it, or that does not return."""


@contextmanager
def use(file: Path) -> Iterator[None]:
    """Make `file` the script of this process within the `with` block, and drop what its code prints there.

    A script that does more than define something is first loaded in another process: ScriptDoesNotReturnError is raised
    if the script ends that process or does not return. After the block, the working directory is restored.
    """
    with script.use(file):
        problem = _try_in_other_process(file) if _runs_statements(file) else ""
        if problem:
            raise ScriptDoesNotReturnError(problem)
        working_directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            with Path(os.devnull).open("w") as null_device, print_to(null_device.fileno()):
                yield
        finally:
            os.fchdir(working_directory)
            os.close(working_directory)


def _runs_statements(file: Path) -> bool:
    """Return True if loading the script does more than define functions, classes and literal values."""
    try:
        statements = ast.parse(file.read_bytes()).body
    except (OSError, ValueError, SyntaxError):
        return False  # the code that loads the script reports the error
    return not all(isinstance(statement, DEFINITIONS) or _is_value(statement) for statement in statements)


def _is_value(statement: ast.stmt) -> bool:
    """Return True for a docstring and for the assignment of a literal, which run no code of the user."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return False
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True


@cache
def _try_in_other_process(file: Path) -> str:
    """Load the script in another process; return why it ended that process or took too long, or an empty text.

    A script that raises is no problem here: loading it in this process raises too. A script is tried once, however many
    runs use it.
    """
    try:
        trial = subprocess.run(
            [sys.executable, "-c", TRIAL, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=STANDARD_ERROR,
            timeout=TRIAL_SECONDS,
            check=False,
            env={**os.environ, "PYTHONSAFEPATH": "1"},  # a jax.py in the working directory must not hide the framework
        )
    except subprocess.TimeoutExpired:
        return f"{file.name} had not been loaded after {TRIAL_SECONDS} s; {ADVICE}"
    if trial.returncode == RETURNED:
        return ""
    end = f"status {trial.returncode}" if trial.returncode >= 0 else f"signal {-trial.returncode}"
    return f"{file.name} ends the process that loads it, with {end}; {ADVICE}"

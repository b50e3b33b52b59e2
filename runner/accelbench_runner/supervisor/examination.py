"""Decide from the examination of a Python environment whether variants can run in it, and explain why not."""

import errno
import os
import platform
import signal
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ConfigDict

from accelbench.api.environment import CaseEnvironment
from accelbench.api.rules import PYTHON_MINORS
from accelbench.document import Document, Line
from accelbench.frameworks import Framework
from accelbench_runner.supervisor.children import ChildExit
from accelbench_runner.supervisor.outcome import crash_location, find_last_line

PACKAGE_OF_MODULE = {"yaml": "pyyaml", "pynvml": "nvidia-ml-py"}
"""Package by module that accelbench imports, where the two have different names."""
MAXIMUM_CHANGED = 3
"""Maximum number of packages that a message lists."""
ELF_MAGIC = b"\x7fELF"
"""First bytes of each program in Linux's binary format."""
_SUPPORTED_PYTHONS = f"{PYTHON_MINORS[0]} to {PYTHON_MINORS[-1]}"


class Examination(Document):
    """Hold what `python -m accelbench_runner.environment` found in its environment."""

    model_config = ConfigDict(extra="ignore")

    python: Line
    """Version of Python."""
    directories: tuple[Line, ...] = ()
    """Directories that hold its packages."""
    packages: dict[Line, Line] = {}
    """Version of each package, by normalized name."""
    accelbench: Line = ""
    """File of the accelbench that it imports."""
    importing: Line = ""
    """The module that could not be imported; meaningless if every import succeeded."""
    missing: Line = ""
    """Name of a module that is not installed."""
    problem: Line = ""
    """Exception that an import raised."""


def why_unusable(examination: Examination, environment: CaseEnvironment, framework: Framework, source: Path) -> str:
    """Return why variants of `framework` cannot run in the examined environment; empty if they can.

    `source` is the directory with the code of this accelbench, which the environment must import.
    """
    return next(_problems(examination, environment, framework, source), "")


def _problems(
    examination: Examination, environment: CaseEnvironment, framework: Framework, source: Path
) -> Iterator[str]:
    """Yield each problem of an environment; an earlier problem may be the cause of a later one."""
    minor = ".".join(examination.python.split(".")[:2])
    if minor not in PYTHON_MINORS:
        yield f"it has Python {examination.python}, and accelbench measures in Python {_SUPPORTED_PYTHONS}"
    if changed := _changed_packages(environment.packages, examination.packages):
        # Only an environment that accelbench has installed has packages: its interpreter is DIRECTORY/venv/bin/python.
        directory = Path(environment.interpreter).parent.parent.parent
        yield f"its packages are no longer those of its lock ({changed}): delete {directory}, and run again"
    # A framework that is not installed is reported as missing below, so it must not be reported as too old here.
    if too_old := framework.why_too_old(examination.packages.get(framework.package, framework.oldest)):
        yield too_old
    if not examination.accelbench.startswith(f"{source}{os.sep}"):
        file = examination.accelbench or "which cannot be imported"
        yield f"it imports another accelbench, {file}: remove what puts it on the path, such as a .pth file"
    if examination.missing:
        package = _package_of(examination.missing)
        yield f"{package} is not installed in it: {_install_advice(package, environment)}"
    if examination.problem:
        yield f"importing {examination.importing} in it raised {examination.problem}"


def _changed_packages(lock: Mapping[str, str], installed: Mapping[str, str]) -> str:
    """List packages whose installed version is not the lock's, such as `jax 0.9.1 in place of 0.9.2`; empty if none.

    A package that is not installed is listed as `no jax`; at most `MAXIMUM_CHANGED` packages are named.
    """
    changed = []
    for name, version in lock.items():
        if name not in installed:
            changed.append(f"no {name}")
        elif installed[name] != version:
            changed.append(f"{name} {installed[name]} in place of {version}")
    more = f", {len(changed) - MAXIMUM_CHANGED} more" if len(changed) > MAXIMUM_CHANGED else ""
    return ", ".join(changed[:MAXIMUM_CHANGED]) + more


def _package_of(module: str) -> str:
    """Return the name by which pip installs a module: `pyyaml` for `yaml`."""
    top_level = module.partition(".")[0]
    return PACKAGE_OF_MODULE.get(top_level, top_level)


def _install_advice(package: str, environment: CaseEnvironment) -> str:
    """Return how to install the package in the environment."""
    if environment.requirements:
        return f"add it to the requirements of environment {environment.name}"
    return f"{environment.interpreter} -m pip install {package}"


def describe_missing_answer(interpreter: str, child_exit: ChildExit, stderr_tail: bytes, limit_seconds: float) -> str:
    """Describe how an interpreter's process ended, if it was started and wrote no answer."""
    if child_exit.killed_for == "limit":
        return f"it had not been imported after {limit_seconds:.0f} s{crash_location(stderr_tail, '; it was')}"
    if child_exit.status < 0:
        name = signal.Signals(-child_exit.status).name
        return f"{name} ended its Python during imports{crash_location(stderr_tail)}"
    error = find_last_line(stderr_tail)
    if error.startswith("SyntaxError"):
        return f"the Python of {interpreter} is too old: accelbench measures in Python {_SUPPORTED_PYTHONS}"
    hint = f": {error}" if error else ": is it a Python?"
    return f"{interpreter} ended with status {child_exit.status} and reported nothing{hint}"


def describe_start_error(interpreter: str, error: OSError) -> str:
    """Describe why the interpreter's process cannot be started."""
    descriptions = {
        errno.ENOENT: _describe_absence,
        errno.EACCES: _describe_denial,
        errno.ENOEXEC: _describe_format,
    }
    describe = descriptions.get(error.errno or 0)  # no error has the number 0: `or` is for mypy
    if describe is None:
        return f"{interpreter} cannot be started: {error.strerror}"
    return f"{interpreter} {describe(Path(interpreter))}"


def _describe_absence(path: Path) -> str:
    """Describe why the kernel does not find the program at this path, or its loader."""
    if path.exists():
        return "needs a loader that is not here: it was built for another system"
    if path.is_symlink():
        return f"is a link to {path.readlink()}, which does not exist"
    return "does not exist"


def _describe_denial(path: Path) -> str:
    """Describe why this process may not execute the file."""
    if path.is_dir():
        return f"is a directory: name the interpreter in it, such as {path}/bin/python"
    if _is_marked_executable(path):
        return "cannot be executed: its file system may be mounted with noexec"
    return f"is not executable: chmod +x {path}"


def _is_marked_executable(path: Path) -> bool:
    """Return True if the file's mode allows anybody to execute it."""
    try:
        return bool(path.stat().st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH))
    except OSError:
        return False


def _describe_format(path: Path) -> str:
    """Describe a file that the kernel cannot execute: a program for another processor, or no program."""
    try:
        with path.open("rb") as file:
            is_binary = file.read(len(ELF_MAGIC)) == ELF_MAGIC
    except OSError:
        is_binary = False
    if is_binary:
        return f"is built for another processor than this machine's, {platform.machine()}"
    return "is no program"

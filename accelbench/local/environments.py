"""Install the environments of a run with uv: locked, in a cache, compiled to bytecode.

Each environment has a directory in the cache, named by a hash of its requirements and its Python. The first use
resolves the requirements and writes a lock; later ones use the same lock, until the directory is deleted.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from accelbench import frameworks
from accelbench.api.environment import CaseEnvironment, Environment, normalize_package
from accelbench.api.run import BenchmarkRun
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.problem import Problem

LAUNCH_REQUIREMENTS = (
    "pydantic>=2.11",
    "pyyaml>=6.0",
    "numpy>=2.2",
    "scipy>=1.15",
    "psutil>=7",
    "nvidia-ml-py>=13",
    "setuptools>=75",
)
"""Requirements of accelbench itself: the packages of its extras `jax` and `torch`, without the frameworks."""
OPTION = "--environment"
LOCK = "requirements.lock"
LAYOUT = 1
"""Version of the layout of a directory in the cache. It is part of the directory's name, through `_key`."""
UV_SETTINGS = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
"""Environment variables for uv: it must not download an interpreter, nor draw progress bars."""
NOT_INHERITED = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_SYSTEM_PYTHON")
"""Environment variables that would direct uv to another environment."""
MAXIMUM_ERROR_LINES = 6
"""Maximum number of lines of an error of uv that a message quotes."""
_LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9][-A-Za-z0-9._]*)(\[.*\])?==(?P<version>[^\s;\\]+)", re.MULTILINE)
"""A line of a lock: name, extras and version of a package."""


PYTHON_ADVICE = "uv fetches no Python: install it, or give the path of an interpreter"
UNSATISFIABLE = "requirements are unsatisfiable"
"""Words of uv's error if no packages satisfy the requirements."""
RESOLUTION_ADVICE = "Choose releases that exist, fit together and support this Python ({python}), or another Python"


class UvError(Exception):
    """Report an error of uv, with the text of its standard error."""


@dataclass(frozen=True)
class Uv:
    """Run uv in a directory where it finds no settings of a project."""

    program: str
    directory: Path

    def __call__(self, *arguments: str, text: str = "") -> str:
        """Run uv with `text` as standard input, and return its standard output; raises UvError."""
        inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        done = subprocess.run(
            [self.program, *arguments, "--quiet"],
            cwd=self.directory,
            env={**inherited, **UV_SETTINGS},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise UvError(_shorten_error(done.stderr) or f"uv ended with status {done.returncode}")
        return done.stdout


def _shorten_error(text: str) -> str:
    """Return the first lines of uv's error as one line, without its hints, which name options of uv's own."""
    error, _, _hints = text.partition("\nhint:")
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return " ".join(lines[:MAXIMUM_ERROR_LINES]).removeprefix("error: ")


def install(run: BenchmarkRun, announce: Callable[[str], None]) -> tuple[CaseEnvironment, ...]:
    """Install the run's environments that are not in the cache yet, and return all of them.

    `announce` is called with a line before each installation, which may take a minute. An environment without
    requirements is an existing interpreter: nothing is installed or checked. Raises InvalidSpecError if uv is missing,
    or cannot install an environment.
    """
    return tuple(_install(run, index, announce) for index in range(len(run.spec.environments)))


def _install(run: BenchmarkRun, index: int, announce: Callable[[str], None]) -> CaseEnvironment:
    """Return the environment of the run with this index, after installing its requirements, if it has any.

    Raises InvalidSpecError if they cannot be installed.
    """
    environment = run.spec.environments[index]
    path = f"spec.environments[{index}]"
    if not environment.requirements:
        return _to_case(environment, environment.python or "")  # the schema then requires a Python
    program = find_uv()
    if program is None:
        message = "installing requirements needs uv: pip install 'accelbench[environments]'"
        raise InvalidSpecError(run.metadata.name, [Problem(path, message)])
    directory = cache() / _key(environment)
    directory.mkdir(parents=True, exist_ok=True)
    lock = directory / LOCK
    interpreter = directory / "venv" / "bin" / "python"
    with _locked(directory / ".in-use"):
        if not lock.exists() or not interpreter.exists():
            uv = Uv(program, directory)
            announce(f"environment {environment.name}: installing {', '.join(environment.requirements)}")
            try:
                _install_packages(uv, environment, interpreter, lock)
            except UvError as error:
                message = f"{', '.join(environment.requirements)}: {error}"
                raise InvalidSpecError(run.metadata.name, [Problem(path, message)]) from error
    packages = parse_lock(lock.read_text(encoding="utf-8"))
    return _to_case(environment, str(interpreter), packages)


def _to_case(
    environment: Environment, interpreter: str, packages: Mapping[str, str] = MappingProxyType({})
) -> CaseEnvironment:
    """Return the environment as a case describes it, with the path of its interpreter and the packages of its lock."""
    return CaseEnvironment(
        name=environment.name,
        requirements=environment.requirements,
        python=environment.python,
        interpreter=interpreter,
        packages=dict(packages),
    )


def _install_packages(uv: Uv, environment: Environment, interpreter: Path, lock: Path) -> None:
    """Install the environment, and write its lock last: a directory with a lock is complete. Raises UvError."""
    virtual_environment = interpreter.parent.parent
    shutil.rmtree(virtual_environment, ignore_errors=True)  # what an interrupted installation left
    lock.unlink(missing_ok=True)
    try:
        uv("venv", "--python", environment.python or sys.executable, str(virtual_environment))
    except UvError as error:
        raise UvError(f"{error}; {PYTHON_ADVICE}") from error
    requirements = "\n".join((*environment.requirements, *LAUNCH_REQUIREMENTS))
    options = ("--python", str(interpreter), "--generate-hashes", "--no-header", "--no-annotate")
    try:
        text = uv("pip", "compile", *options, "-", text=requirements)
    except UvError as error:
        if UNSATISFIABLE not in str(error):
            raise
        python = environment.python or f"{sys.version_info.major}.{sys.version_info.minor}"
        raise UvError(f"{error} {RESOLUTION_ADVICE.format(python=python)}") from error
    if reason := _why_too_old(parse_lock(text)):
        raise UvError(reason)
    unfinished = lock.with_suffix(".partial")
    unfinished.write_text(text, encoding="utf-8")
    uv("pip", "sync", "--python", str(interpreter), "--compile-bytecode", str(unfinished))
    unfinished.replace(lock)


def _why_too_old(packages: Mapping[str, str]) -> str:
    """Return why a framework of the lock is too old to be measured; empty if none is."""
    for framework in frameworks.every():
        version = packages.get(normalize_package(framework.package))
        if version and (reason := framework.why_too_old(version)):
            return reason
    return ""


def find_uv() -> str | None:
    """Return the path of uv: from the installed package, else from PATH; None if uv is not installed."""
    if find_spec("uv") is not None:
        import uv

        return str(uv.find_uv_bin())
    return shutil.which("uv")


def cache() -> Path:
    """Return the directory in which environments are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "accelbench", "environments").absolute()


def parse_lock(text: str) -> dict[str, str]:
    """Return the version of each package in a lock, by normalized name."""
    return {normalize_package(match["name"]): match["version"] for match in _LOCKED.finditer(text)}


def _key(environment: Environment) -> str:
    """Return the name of the environment's directory in the cache: a hash of its requirements and its Python."""
    # Without a Python of its own, the environment uses this one, so each installation of Python has a directory.
    python = environment.python or f"{sys.base_prefix} {sys.version}"
    contents = [LAYOUT, sorted(environment.requirements), LAUNCH_REQUIREMENTS, python]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:16]


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Lock the directory of `file` within the `with` block: at most one process installs into it at a time."""
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def parse_option(text: str) -> dict[str, Any]:
    """Return the environment that `NAME=WORDS` describes, in the form of a manifest.

    A word such as `python3.12`, or the path of an interpreter, sets the environment's Python. Every other word is a
    requirement. Raises UsageError for a text of another form.
    """
    name, equals_sign, words = text.partition("=")
    if not name or not equals_sign or not words.split():
        raise UsageError(f'"{text}": write NAME=REQUIREMENT, as in before=jax==0.9.2', OPTION)
    return {"name": name, **parse_words(words)}


def parse_words(text: str) -> dict[str, Any]:
    """Return an environment in the form of a manifest: the requirements and the Python that `text` lists.

    The words of `text` are those after `NAME=` in `parse_option`.
    """
    environment: dict[str, Any] = {}
    for word in text.split():
        if minor := re.fullmatch(r"python(\d+\.\d+)", word):
            environment["python"] = minor[1]
        elif word.startswith(("/", "./", "../", "~")):
            environment["python"] = str(Path(word).expanduser().absolute())
        else:
            environment.setdefault("requirements", []).append(word)
    return environment

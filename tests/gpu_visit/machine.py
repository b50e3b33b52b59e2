"""Make an environment for a visit on a machine without a network, from wheels, and start the visit in it.

This module needs nothing but Python's standard library. The environment has the machine's own packages, such as JAX
and PyTorch, below those that travel as wheels: a wheel is installed only if the machine has no version that suffices.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {"accelbench": "accelbench", "accelbench_runner": "runner/accelbench_runner"}
"""Packages of accelbench's wheel, each with its folder in the checkout."""
START = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("gpu_visit", run_name="__main__", alter_sys=True)
"""
"""Starts the visit from the tests' folder, which children must not get: its packages could hide a framework's."""
PREPARE = "prepare them where there is a network: make gpu-visit-wheels"


class CannotMakeEnvironmentError(Exception):
    """Report why the environment cannot be made; the message says what to do."""


def make_environment(wheels: Path, work: Path) -> Path:
    """Return the Python of an environment with the wheels; make it unless it exists already.

    Raises CannotMakeEnvironmentError.
    """
    accelbench = _find_one(wheels, "accelbench")
    _require_current(accelbench)
    environment = work / "environment"
    python = environment / "bin" / "python"
    made_from = json.dumps([sys.executable, sorted([path.name, path.stat().st_size] for path in wheels.glob("*.whl"))])
    stamp = environment / "made-from.json"
    digest = hashlib.sha256(accelbench.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == made_from + digest:
        return python
    shutil.rmtree(environment, ignore_errors=True)
    environment.parent.mkdir(parents=True, exist_ok=True)
    _call(sys.executable, "-m", "venv", "--without-pip", str(environment))
    [packages] = environment.glob("lib/python3*/site-packages")
    # `--system-site-packages` would show those of the interpreter behind the machine's virtual environment instead.
    lines = [f"import site; site.addsitedir({path!r})" for path in sys.path if path.endswith("-packages")]
    (packages / "the-machines-own.pth").write_text("".join(f"{line}\n" for line in lines))
    pip = [str(python), str(_find_one(wheels, "pip") / "pip"), "install", "--quiet", "--no-index"]
    others = sorted({path.name.partition("-")[0] for path in wheels.glob("*.whl")} - {"accelbench", "pip"})
    _call(*pip, "--find-links", str(wheels), *others)
    # Even if the machine has an accelbench of its own.
    _call(*pip, "--ignore-installed", "--no-deps", str(accelbench))
    stamp.write_text(made_from + digest)
    return python


def _find_one(wheels: Path, package: str) -> Path:
    """Return the wheel of a package; raises CannotMakeEnvironmentError unless there is exactly one."""
    found = sorted(wheels.glob(f"{package}-*.whl"))
    if len(found) != 1:
        raise CannotMakeEnvironmentError(f"{wheels} has {len(found)} wheels of {package}, not one: {PREPARE}")
    return found[0]


def _require_current(wheel: Path) -> None:
    """Raise CannotMakeEnvironmentError if a module in the wheel differs from the checkout's."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            package, _, rest = name.partition("/")
            source = ROOT / SOURCES.get(package, "") / rest
            if package in SOURCES and name.endswith(".py") and source.read_bytes() != archive.read(name):
                raise CannotMakeEnvironmentError(f"{wheel.name} differs from {source}: {PREPARE}")


def _call(*command: str) -> None:
    """Run a command; raises CannotMakeEnvironmentError with its output if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment(), check=False
    )
    if done.returncode:
        raise CannotMakeEnvironmentError(f"{' '.join(command)}\n{done.stdout}")


def _environment() -> dict[str, str]:
    """Return the environment variables without those that let Python or pip look elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PIP_") and name not in {"PYTHONPATH", "PYTHONHOME"}
    }


def main() -> None:
    """Make the environment, and become the visit in it."""
    began = time.time()
    parser = argparse.ArgumentParser(prog="python -m gpu_visit.machine", description=__doc__)
    parser.add_argument("--wheels", type=Path, required=True, help="the directory of the wheels")
    parser.add_argument("--work", type=Path, required=True, help="a directory for the environment and temporary files")
    options, visit_arguments = parser.parse_known_args()
    try:
        python = make_environment(options.wheels, options.work)
    except (CannotMakeEnvironmentError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"environment made in {time.time() - began:.0f} s", file=sys.stderr)
    arguments = ["-c", START, str(ROOT / "tests"), "--began", str(began), "--work", str(options.work), *visit_arguments]
    os.execve(python, [str(python), *arguments], _environment())  # noqa: S606 - the command is this repository's own


if __name__ == "__main__":
    main()

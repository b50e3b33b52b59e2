"""The compilers for devices that are not there, in a folder of their own: no other test's JAX finds them."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.build import cache, locked
from cluster.errors import BuildError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
WANTED = ("libtpu", "jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc", "nvidia-nvvm")
"""The extras targets-tpu and targets-gpu, without what JAX and PyTorch bring along."""
MACHINE = ("linux", "x86_64")


def folder() -> Path:
    """Where they are; raises `ToolMissingError` where they are not."""
    directory = _directory()
    if not (directory / "installed").exists():
        raise ToolMissingError("the compilers for targets have not been fetched: run `make prepare-all`")
    return directory


def path() -> str:
    """PYTHONPATH with them first; raises `ToolMissingError` likewise."""
    return os.pathsep.join([str(folder()), *filter(None, [os.environ.get("PYTHONPATH")])])


def install(say: Callable[[str], None]) -> None:
    """Fetch them, unless they are there; raises `ToolMissingError` for other machines, `BuildError` where it fails."""
    if (sys.platform, platform.machine()) != MACHINE:
        raise ToolMissingError(f"compilers for targets are built for {' on '.join(reversed(MACHINE))} alone")
    directory = _directory()
    with locked(cache() / "targets.lock"):
        if (directory / "installed").exists():
            return
        say("fetching compilers for GPUs and TPUs (445 MB) ...")
        start = time.monotonic()
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--no-deps"]
        done = subprocess.run(
            [*command, "--constraint", str(CONSTRAINTS), "--target", str(directory), *WANTED],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"the compilers for targets cannot be installed:\n{done.stderr[-2000:]}")
        (directory / "installed").touch()
        say(f"fetched in {time.monotonic() - start:.0f} s")


def _directory() -> Path:
    digest = hashlib.sha256(CONSTRAINTS.read_bytes() + sys.version.encode())
    return cache() / f"targets-{digest.hexdigest()[:16]}"

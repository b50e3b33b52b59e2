"""Fetch and build everything that the tests start and Python does not bring, before the first of them.

`make prepare` calls it for the quick tests, `make prepare-check` with `check` for those of a push, and `make
prepare-all` with `all` for every test. It names what this machine cannot have: tests that need it are skipped, or fail
if CI is set. Only the compiler is needed by too many to skip.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from chart.schemas import MINORS, NEWEST, build_schemas
from cluster.build import build
from cluster.errors import ClusterError, ToolMissingError
from report.browser import install

if TYPE_CHECKING:
    from collections.abc import Callable

INSTALL = ("apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends")


def find_compiler(say: Callable[[str], None]) -> None:
    """Find what torch.compile calls, or install it where that is allowed; raises `ToolMissingError` without."""
    if shutil.which(os.environ.get("CXX", "g++")) or _installed("g++", say):
        return
    raise ToolMissingError("torch.compile needs a C++ compiler: install one first (Debian: apt-get install g++)")


def find_wrong_clocks(say: Callable[[str], None]) -> None:
    """Find what gives a process a wrong clock, or install it likewise; raises `ToolMissingError` without."""
    if any(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")) or _installed("libfaketime", say):
        return
    raise ToolMissingError("a clock that is wrong needs libfaketime (Debian: apt-get install libfaketime)")


def find_shells(say: Callable[[str], None]) -> None:
    """Find the shells whose completion is tried, or install them likewise; raises `ToolMissingError` without."""
    for package, there in {
        "bash-completion": Path("/usr/share/bash-completion/bash_completion").exists(),
        "zsh": shutil.which("zsh"),
        "fish": shutil.which("fish"),
    }.items():
        if not there and not _installed(package, say):
            raise ToolMissingError(f"completion is tried in three shells (Debian: apt-get install {package})")


def _installed(package: str, say: Callable[[str], None]) -> bool:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say(f"{' '.join(INSTALL)} {package} ...")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "--quiet=2"], env=quiet, stdout=subprocess.DEVNULL, check=False)
    return subprocess.run([*INSTALL, package], env=quiet, stdout=subprocess.DEVNULL, check=False).returncode == 0


def main() -> int:
    """Take every step, also after an optional one that failed; return the exit status."""
    if not _done("compiler", find_compiler):
        return 1
    everything = "all" in sys.argv[1:]
    check = everything or "check" in sys.argv[1:]
    optional: dict[str, Callable[[Callable[[str], None]], object]] = {
        "programs": functools.partial(build, node=check),
        "schemas": functools.partial(build_schemas, minors=MINORS if everything else (NEWEST,)),
        "browser": install,
        "clocks": find_wrong_clocks,
    }
    if check:
        optional |= _for_check()
    if everything:
        optional |= _for_nightly_tests()
    done = [_done(name, step) for name, step in optional.items()]
    return 0 if all(done) or not os.environ.get("CI") else 1


def _for_check() -> dict[str, Callable[[Callable[[str], None]], object]]:
    """Return the steps whose modules need what the wheel brings."""
    from alerting.build import build_alertmanager
    from grafana.renderer import install as install_dashboards
    from kubectl.krew import build_krew
    from kueue.build import build_kueue
    from release.tools import REGISTRY, build_tool
    from targets import compilers

    return {
        "kueue": build_kueue,
        "dashboards": install_dashboards,
        "krew": build_krew,
        "shells": find_shells,
        "targets": compilers.install,
        "alertmanager": build_alertmanager,
        "registry": functools.partial(build_tool, REGISTRY),
    }


def _for_nightly_tests() -> dict[str, Callable[[Callable[[str], None]], object]]:
    from gitops.build import build_judges
    from release.tools import COSIGN, SYFT, build_tool

    return {
        "bill of materials": functools.partial(build_tool, SYFT),
        "signatures": functools.partial(build_tool, COSIGN),
        "judges of GitOps tools": build_judges,
    }


def _done(name: str, step: Callable[[Callable[[str], None]], object]) -> bool:
    say = functools.partial(print, f"{name}:", file=sys.stderr, flush=True)
    try:
        step(say)
    except ClusterError as error:
        say(str(error))
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

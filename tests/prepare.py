"""Everything that the tests start and Python does not bring, fetched and built before the first of them.

`make prepare` calls it, and `make prepare-node` with `node`, for tests that need a kubelet. What this machine cannot
have is named: the tests that need it are skipped, with CI set they fail. Only the compiler is needed by too many.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from cluster.build import build
from cluster.errors import ClusterError, ToolMissingError
from report.browser import install

if TYPE_CHECKING:
    from collections.abc import Callable

INSTALL = ("apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends", "g++")


def find_compiler(say: Callable[[str], None]) -> None:
    """Find what torch.compile calls, or install it where that is allowed; raises `ToolMissingError` without."""
    if shutil.which(os.environ.get("CXX", "g++")):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"{' '.join(INSTALL)} ...")
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "--quiet=2"], env=quiet, stdout=subprocess.DEVNULL, check=False)
        if subprocess.run(INSTALL, env=quiet, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            return
    raise ToolMissingError("torch.compile needs a C++ compiler: install one first (Debian: apt-get install g++)")


def main() -> int:
    """Take every step, also after an optional one that failed; return the exit status."""
    if not _done("compiler", find_compiler):
        return 1
    optional = {"programs": functools.partial(build, node="node" in sys.argv[1:]), "browser": install}
    done = [_done(name, step) for name, step in optional.items()]
    return 0 if all(done) or not os.environ.get("CI") else 1


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

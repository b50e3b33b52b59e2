"""The judges of GitOps tools: kstatus, Flux's edition of it, and Argo CD's health checks. Built once into the cache.

They are a module of their own, as Argo CD is made of another release of Kubernetes than the tests' cluster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.build import cache, digest_of, go, locked
from cluster.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["build_judges", "judges"]

SOURCES = Path(__file__).parent / "go"
PACKAGES = (".",)
OPTIONS = ("-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false -l", "-ldflags=-s -w")


def judges() -> Path:
    """Return the program from the cache; raises `ToolMissingError` where it has not been built."""
    program = _program()
    if not program.exists():
        raise ToolMissingError("the judges of GitOps tools have not been built: run `make prepare-all`, with Go 1.26")
    return program


def build_judges(say: Callable[[str], None]) -> Path:
    """Build it, unless it is in the cache; raises `ToolMissingError` without Go, `BuildError` when it fails."""
    program = _program()
    with locked(cache() / "build.lock"):
        if not program.exists():
            say("building the judges of GitOps tools; minutes, the first time ...")
            program.parent.mkdir(parents=True, exist_ok=True)
            go(["build", "-v", *OPTIONS, "-o", f"{program.parent}{os.sep}", *PACKAGES], SOURCES, say)
    return program


def _program() -> Path:
    return cache() / f"gitops-{digest_of(SOURCES, PACKAGES)}" / "gitops"

"""krew and its validator of manifests, built once into the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.build import cache, digest_of, go, locked
from cluster.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["build_krew", "krew"]

SOURCES = Path(__file__).parent / "go"
PACKAGES = ("sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")


def krew() -> Path:
    """Return the directory of both programs; raises `ToolMissingError` where they have not been built."""
    directory = _directory()
    if not (directory / "built").exists():
        raise ToolMissingError("krew has not been built: run `make prepare-all`, with Go 1.26 or later")
    return directory


def build_krew(say: Callable[[str], None]) -> Path:
    """Build it, unless it is in the cache; raises `ToolMissingError` without Go, `BuildError` when it fails."""
    directory = _directory()
    with locked(cache() / "build.lock"):
        if not (directory / "built").exists():
            say("building krew ...")
            directory.mkdir(parents=True, exist_ok=True)
            options = ["-v", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w"]
            go(["build", *options, "-o", f"{directory}{os.sep}", *PACKAGES], SOURCES, say)
            # As kubectl finds it.
            (directory / "kubectl-krew").symlink_to("krew")
            (directory / "built").touch()
    return directory


def _directory() -> Path:
    return cache() / f"krew-{digest_of(SOURCES, PACKAGES)}"

"""Alertmanager, a module of its own, built once into the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.build import cache, digest_of, go, locked
from cluster.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["alertmanager", "build_alertmanager"]

SOURCES = Path(__file__).parent / "go"
PACKAGES = ("github.com/prometheus/alertmanager/cmd/alertmanager",)
OPTIONS = ("-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false -l", "-ldflags=-s -w")


def alertmanager() -> Path:
    """Return the program from the cache; raises `ToolMissingError` where it has not been built."""
    program = _directory() / "alertmanager"
    if not program.exists():
        raise ToolMissingError("Alertmanager has not been built: run `make prepare-all`, with Go 1.26 or later")
    return program


def build_alertmanager(say: Callable[[str], None]) -> Path:
    """Build it, unless it is in the cache; raises `ToolMissingError` without Go, `BuildError` when it fails."""
    directory = _directory()
    with locked(cache() / "build.lock"):
        if not (directory / "alertmanager").exists():
            say("building Alertmanager ...")
            directory.mkdir(parents=True, exist_ok=True)
            go(["build", "-v", *OPTIONS, "-o", f"{directory}{os.sep}", *PACKAGES], SOURCES, say)
    return directory / "alertmanager"


def _directory() -> Path:
    return cache() / f"alertmanager-{digest_of(SOURCES, PACKAGES)}"

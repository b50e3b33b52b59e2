"""Programs that a release needs and Python does not bring, built once from `release/go` and `release/go_signing`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.build import cache, digest_of, go, locked
from cluster.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COSIGN", "REGISTRY", "SYFT", "build_tool", "tool"]

COSIGN = "github.com/sigstore/cosign/v3/cmd/cosign"
SYFT = "github.com/anchore/syft/cmd/syft"
REGISTRY = "github.com/distribution/distribution/v3/cmd/registry"

SOURCES = Path(__file__).parent / "go"
SIGNING_SOURCES = Path(__file__).parent / "go_signing"
"""A module of its own: only nightly tests sign, and cosign has as many modules as the other two together."""


def tool(package: str) -> Path:
    """The program, from the cache; raises `ToolMissingError` where it has not been built."""
    program = _program(package)
    if not program.exists():
        raise ToolMissingError(f"{program.name} has not been built: run `make prepare-all`, with Go 1.26 or later")
    return program


def build_tool(package: str, say: Callable[[str], None]) -> Path:
    """Build it, unless it is in the cache; raises `ToolMissingError` without Go, `BuildError` when it fails."""
    program = _program(package)
    with locked(cache() / "build.lock"):
        if not program.exists():
            say(f"building {program.name}; minutes, the first time ...")
            program.parent.mkdir(parents=True, exist_ok=True)
            options = ["-v", "-buildvcs=false", "-trimpath", "-ldflags=-s -w"]
            go(["build", *options, "-o", f"{program.parent}{os.sep}", package], _sources(package), say)
    return program


def _program(package: str) -> Path:
    return cache() / f"release-{digest_of(_sources(package), ())}" / package.rpartition("/")[2]


def _sources(package: str) -> Path:
    """Return the Go module that pins a program."""
    return SIGNING_SOURCES if package == COSIGN else SOURCES

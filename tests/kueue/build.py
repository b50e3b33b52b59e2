"""Kueue as the tests run it: its controller, and the manifests that its module brings, built once into the cache.

It is a module of its own, as Kueue is made of another release of Kubernetes than the tests' cluster.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.build import cache, digest_of, go, locked
from cluster.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PREPARE", "Kueue", "build_kueue", "kueue"]

SOURCES = Path(__file__).parent / "go"
MODULE = "sigs.k8s.io/kueue"
PACKAGES = (f"{MODULE}/cmd/kueue",)
PREPARE = "make prepare-all"


@dataclass(frozen=True)
class Kueue:
    """What was built."""

    directory: Path

    @property
    def program(self) -> Path:
        return self.directory / "kueue"

    @property
    def crds(self) -> Path:
        return self.directory / "crds"

    @property
    def webhooks(self) -> Path:
        """The webhook configurations of all its integrations, which name a Service."""
        return self.directory / "webhooks.yaml"


def kueue() -> Kueue:
    """Return Kueue from the cache; raises `ToolMissingError` where it has not been built."""
    found = Kueue(cache() / f"kueue-{digest_of(SOURCES, PACKAGES)}")
    if not (found.directory / "built").exists():
        raise ToolMissingError(f"Kueue has not been built: run `{PREPARE}`, with Go 1.26 or later")
    return found


def build_kueue(say: Callable[[str], None]) -> Kueue:
    """Build it, unless it is in the cache; raises `ToolMissingError` without Go, `BuildError` when it fails."""
    made = Kueue(cache() / f"kueue-{digest_of(SOURCES, PACKAGES)}")
    with locked(cache() / "build.lock"):
        if (made.directory / "built").exists():
            return made
        say("building Kueue; minutes, the first time ...")
        made.crds.mkdir(parents=True, exist_ok=True)
        options = ["-v", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false -l", "-ldflags=-s -w"]
        go(["build", *options, "-o", f"{made.directory}{os.sep}", *PACKAGES], SOURCES, say)
        [module] = go(["list", "-m", "-f", "{{.Dir}}", MODULE], SOURCES, lambda _: None)
        components = Path(module.strip(), "config", "components")
        for crd in (components / "crd" / "bases").glob("*.yaml"):
            shutil.copyfile(crd, made.crds / crd.name)
        shutil.copyfile(components / "webhook" / "manifests.yaml", made.webhooks)
        (made.directory / "built").touch()
    return made

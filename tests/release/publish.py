"""`make publish REGISTRY=registry.example.com/ml`: the images and the chart of dist/, to a registry.

Who may push is what `buildah login` and `helm registry login` have said before; where REGISTRY_USER and
REGISTRY_PASSWORD are set, both are done here.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

from accelbench import __version__
from chart.helm import helm
from cluster.build import binaries
from cluster.errors import BuildError, ClusterError
from image.build import Target, push_images
from release.build import DIST

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost")

say = functools.partial(print, "publish:", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Push; returns the exit status."""
    parser = argparse.ArgumentParser(description="Push what `make release` has made.")
    parser.add_argument("registry", help="host and path, without a scheme: registry.example.com/ml")
    registry = parser.parse_args(arguments).registry.rstrip("/")
    try:
        if os.environ.get("REGISTRY_USER"):
            log_in(registry, os.environ["REGISTRY_USER"], os.environ.get("REGISTRY_PASSWORD", ""))
        for target in get_args(Target):
            publish_image(target, DIST, registry)
        publish_chart(DIST, registry)
    except ClusterError as error:
        say(str(error))
        return 1
    return 0


def log_in(registry: str, user: str, password: str) -> None:
    """For images and chart; raises `BuildError` with what the registry said."""
    host = registry.partition("/")[0]
    for command in (["buildah", "login"], [binaries().helm, "registry", "login"]):
        asked = [*command, host, f"--username={user}", "--password-stdin"]
        done = subprocess.run(asked, input=password, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{host}: {done.stderr.strip()}")


def publish_image(target: Target, directory: Path, registry: str) -> None:
    """All architectures under one name; raises `BuildError` without an archive, and with what the registry said."""
    archives = sorted(directory.glob(f"accelbench-{target}-{__version__}-*.tar"))
    if not archives:
        raise BuildError(f"{directory} has no image of the {target}: make release")
    name = f"{registry}/accelbench-{target}:{__version__}"
    push_images(archives, name, plain=is_plain(registry))
    say(name)


def publish_chart(directory: Path, registry: str) -> None:
    """As an OCI artefact; raises `BuildError` with what helm said."""
    place = f"oci://{registry}/charts"
    plain = ["--plain-http"] if is_plain(registry) else []
    done = helm("push", directory / f"accelbench-{__version__}.tgz", place, *plain)
    if done.returncode:
        raise BuildError(done.stderr)
    say(f"{place}/accelbench, version {__version__}")


def is_plain(registry: str) -> bool:
    """Whether it is on this machine, where a registry has no certificate."""
    return registry.partition("/")[0].partition(":")[0] in LOOPBACK


if __name__ == "__main__":
    sys.exit(main())

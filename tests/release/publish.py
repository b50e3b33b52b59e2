"""`make publish REGISTRY=registry.example.com/ml`: the images and the chart of dist/, to a registry.

Log in with `buildah login`, `helm registry login` and `cosign login` first, or set REGISTRY_USER and REGISTRY_PASSWORD:
then it is done here. With SIGNING_KEY, all that is pushed is signed, and the images get signed bills of materials.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

from accelbench import __version__
from chart.helm import helm
from cluster.build import binaries
from cluster.errors import BuildError, ClusterError
from image.build import Target, push_images
from release.build import DIST
from release.signing import sign
from release.tools import COSIGN, build_tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost")

say = functools.partial(print, "publish:", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Push everything of a release, and sign it if there is a key; return the exit status."""
    parser = argparse.ArgumentParser(description="Push what `make release` has made.")
    parser.add_argument("registry", help="host and path, without a scheme: registry.example.com/ml")
    registry = parser.parse_args(arguments).registry.rstrip("/")
    key = os.environ.get("SIGNING_KEY", "")
    try:
        if os.environ.get("REGISTRY_USER"):
            log_in(registry, os.environ["REGISTRY_USER"], os.environ.get("REGISTRY_PASSWORD", ""), key)
        digests = {target: publish_image(target, DIST, registry, key) for target in get_args(Target)}
        publish_chart(DIST, registry, key)
    except ClusterError as error:
        say(str(error))
        return 1
    say(f"{write_values(DIST, registry, digests).name}: values that name both images by digest")
    if not key:
        say("nothing is signed: set SIGNING_KEY to a key of `cosign generate-key-pair`")
    return 0


def log_in(registry: str, user: str, password: str, key: str = "") -> None:
    """Log in to a registry for images and chart, and for signatures if there is a key.

    Raises:
        BuildError: The registry's message.
    """
    host = registry.partition("/")[0]
    commands: list[list[str | Path]] = [["buildah", "login"], [binaries().helm, "registry", "login"]]
    if key:
        commands.append([build_tool(COSIGN, say), "login"])
    for command in commands:
        options = [host, f"--username={user}", "--password-stdin"]
        done = subprocess.run([*command, *options], input=password, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{host}: {done.stderr.strip()}")


def publish_image(target: Target, directory: Path, registry: str, key: str = "") -> str:
    """Push an image, all architectures under one name, and return the digest of its index.

    Args:
        target: Which image.
        directory: What `make release` has written.
        registry: Host and path.
        key: The key that signs the image and its bills of materials; empty: it is not signed.

    Raises:
        BuildError: There is no archive of the image, or the registry's or cosign's message.
    """
    archives = sorted(directory.glob(f"accelbench-{target}-{__version__}-*.tar"))
    if not archives:
        raise BuildError(f"{directory} has no image of the {target}: make release")
    name = f"{registry}/accelbench-{target}"
    digest = push_images(archives, f"{name}:{__version__}", plain=is_plain(registry))
    say(f"{name}:{__version__}@{digest}")
    if key:
        bills = [archive.with_suffix(".cdx.json") for archive in archives]
        sign(f"{name}@{digest}", key, bills, say, plain=is_plain(registry))
    return digest


def publish_chart(directory: Path, registry: str, key: str = "") -> None:
    """Push the chart as an OCI artefact, and sign it if there is a key.

    Raises:
        BuildError: Helm's or cosign's message.
    """
    place = f"{registry}/charts"
    plain = ["--plain-http"] if is_plain(registry) else []
    done = helm("push", directory / f"accelbench-{__version__}.tgz", f"oci://{place}", *plain)
    digest = re.search(r"^Digest: (sha256:[0-9a-f]{64})$", done.stdout + done.stderr, re.MULTILINE)
    if done.returncode or digest is None:
        raise BuildError(done.stderr)
    say(f"oci://{place}/accelbench, version {__version__}@{digest[1]}")
    if key:
        sign(f"{place}/accelbench@{digest[1]}", key, [], say, plain=is_plain(registry))


def write_values(directory: Path, registry: str, digests: Mapping[Target, str]) -> Path:
    """Write and return a values file of the chart that names the published images by digest."""
    values = directory / "published.yaml"
    lines = [f"  registry: {registry}", *(f"  {target}Digest: {digest}" for target, digest in digests.items())]
    values.write_text("\n".join(["images:", *lines, ""]))
    return values


def is_plain(registry: str) -> bool:
    """Whether it is on this machine, where a registry has no certificate."""
    return registry.partition("/")[0].partition(":")[0] in LOOPBACK


if __name__ == "__main__":
    sys.exit(main())

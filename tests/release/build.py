"""`make release`: everything of a version, into `dist/`: wheel, chart, plugin, both images, what they hold, checksums.

The plugin of kubectl is an archive for each platform, and the manifest with which krew installs it. An image is built
for each architecture that this machine can run the programs of; the others are named.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from accelbench import __version__
from chart.helm import CHART, helm
from cluster.errors import BuildError, ClusterError, ToolMissingError
from image.build import MACHINES, Target, export_image, mounted
from release.tools import SYFT, build_tool

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
SUMS = "SHA256SUMS"

say = functools.partial(print, "release:", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Make it; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make a release in dist/, beside the wheel that is there.")
    parser.add_argument("--tag", default="", help="the tag that is released: refused where it is not this version's")
    parser.add_argument("--images", default="operator,runner", help="which images to build; none: empty")
    parser.add_argument(
        "--architectures", nargs="+", choices=list(MACHINES), default=list(MACHINES), help="which to build them for"
    )
    parser.add_argument("--plugin-uri", default="", help="where the archives of the kubectl plugin will be found")
    parser.add_argument("--platforms", nargs="+", default=[], help="which to build that plugin for; default: all")
    asked = parser.parse_args(arguments)
    try:
        check_tag(asked.tag)
        DIST.mkdir(exist_ok=True)
        chart = package_chart(DIST)
        say(f"{chart.name}")
        for archive in release_plugin(DIST, asked.plugin_uri, asked.platforms):
            say(archive.name)
        for target in get_args(Target):
            if target in asked.images.split(","):
                release_image(target, DIST, asked.architectures)
        say(write_sums(DIST).name)
    except ClusterError as error:
        say(str(error))
        return 1
    return 0


def check_tag(tag: str) -> None:
    """Raises `BuildError` for a tag of another version."""
    if tag and tag != f"v{__version__}":
        raise BuildError(
            f"the tag {tag} is not v{__version__}: change __version__ in accelbench/__init__.py, make generate"
        )


def package_chart(directory: Path) -> Path:
    """Raises `BuildError` with what helm said."""
    done = helm("package", CHART, "--destination", directory)
    if done.returncode:
        raise BuildError(done.stderr)
    return directory / f"accelbench-{__version__}.tgz"


def release_plugin(directory: Path, uri: str, platforms: Iterable[str] = ()) -> list[Path]:
    """What krew installs, of the wheel in that directory: archives, then the manifest; raises `BuildError`.

    Without a `uri` the manifest has the archives' bare names: krew then takes them from beside it, by `--archive`.
    """
    wheels = list(directory.glob(f"accelbench-{__version__}-*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"{directory} has no wheel of {__version__}: make wheel")
    options = ("--uri", uri, "--out", directory, "--wheel", wheels[0], *(f"--platform={each}" for each in platforms))
    command = [sys.executable, ROOT / "krew" / "build.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"the kubectl plugin was not built: {done.stderr[-2000:]}")
    return [*sorted(directory.glob(f"kubectl-accelbench-v{__version__}-*.tar.gz")), directory / "accelbench.yaml"]


def release_image(target: Target, directory: Path, architectures: Iterable[str]) -> None:
    """For each architecture; raises `ClusterError` where there is not even one, or in CI where one is missing."""
    made = 0
    name = f"docker.io/library/accelbench-{target}:{__version__}"
    for architecture in architectures:
        archive = directory / f"accelbench-{target}-{__version__}-{architecture}.tar"
        try:
            export_image(target, name, architecture, archive)
        except ToolMissingError as error:
            if os.environ.get("CI"):
                raise
            say(f"no {target} for {architecture}: {error}")
            continue
        with mounted(name, architecture) as files:
            describe(files, archive.with_suffix(".cdx.json"))
        say(archive.name)
        made += 1
    if not made:
        raise BuildError(f"no image of the {target} was built")


def describe(files: Path, bill: Path) -> None:
    """What an image holds, as CycloneDX; raises `BuildError` with what syft said.

    Syft reads the mounted files: of an archive it would make a copy three times its size.
    """
    named = (f"--source-name={bill.name.removesuffix('.cdx.json')}", f"--source-version={__version__}")
    options = ("--override-default-catalogers=image", *named, f"--output=cyclonedx-json={bill}")
    quiet = os.environ | {"SYFT_CHECK_FOR_APP_UPDATE": "false"}
    command = [build_tool(SYFT, say), f"dir:{files}", *options]
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(
            f"syft ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:] or 'it said nothing'}"
        )


def write_sums(directory: Path) -> Path:
    """As `sha256sum --check` reads them."""
    sums = directory / SUMS
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != SUMS)
    sums.write_text("".join(f"{_digest(path)}  {path.name}\n" for path in files))
    return sums


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())

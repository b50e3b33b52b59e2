"""The Dockerfile's images, built here: by buildah, which needs no daemon, into an OCI archive for containerd.

Where the base image cannot be pulled, a stand-in of the same Debian and the same Python is made by debootstrap and
committed under the base's own name, so that the Dockerfile stays what it is. Layers outlive a test run:
`rm -rf ~/.cache/accelbench/images` gives the disk back.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cluster.build import cache, locked
from cluster.errors import BuildError, ClusterError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "BASE",
    "MACHINES",
    "NATIVE",
    "Target",
    "base_layers",
    "build_image",
    "export_image",
    "image_name",
    "mounted",
    "push_images",
]

Target = Literal["operator", "runner"]
ROOT = Path(__file__).resolve().parents[2]
BASE = "docker.io/library/python:3.11-slim-bookworm"
DEBIAN = "bookworm"
# What the real base has beyond Debian's minimum. The headers are those that torch.compile includes.
DEBIAN_PACKAGES = "python3,python3-venv,python3-dev,ca-certificates"
CONTENT = ("Dockerfile", "accelbench", "operator", "runner", "pyproject.toml", "constraints.txt")
PULL_SECONDS = 120
QUICKLY_PACKED = ("--compression-format=zstd", "--compression-level=1")
"""For the tests' node: 106 s of processor time for the runner's layers; gzip takes 172 s, and no packing over 190 s."""
# A machine behind a proxy or with an index of its own says so in these; the images are built as it would install.
MACHINE_SETTINGS = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""An image's architecture, and what Linux calls it."""
NATIVE = next((name for name, machine in MACHINES.items() if machine == platform.machine()), platform.machine())
EMULATORS = Path("/proc/sys/fs/binfmt_misc")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


def image_name(target: Target) -> str:
    """Return the name that the archive gives the image. Its tag is not `latest`, so nothing tries to pull it."""
    return f"docker.io/library/accelbench-{target}:test"


def build_image(target: Target) -> Path:
    """Build a final target of the Dockerfile and return its OCI archive; unchanged, it is the one from before.

    Raises `ToolMissingError` without buildah or debootstrap, `BuildError` with the build's last words.
    """
    directory = _directory()
    with locked(directory / "build.lock"):
        image = _build(directory, target, image_name(target))
        archive = directory / f"{target}-{image}.tar"
        if not archive.exists():
            for older in directory.glob(f"{target}-*.tar*"):
                older.unlink()
            _export(directory, image_name(target), archive, *QUICKLY_PACKED)
        return archive


def export_image(target: Target, name: str, architecture: str, archive: Path) -> None:
    """Build a final target for an architecture, and write it as an OCI archive that calls it by that name.

    Raises `ToolMissingError` also where this machine cannot run that architecture's programs.
    """
    if architecture != NATIVE and not Path(EMULATORS, f"qemu-{MACHINES[architecture]}").exists():
        raise ToolMissingError(f"nothing here runs programs of {architecture} (Debian: qemu-user-static)")
    directory = _directory(architecture)
    with locked(directory / "build.lock"):
        _build(directory, target, name)
        archive.unlink(missing_ok=True)
        _export(directory, name, archive)


@contextlib.contextmanager
def mounted(name: str, architecture: str) -> Iterator[Path]:
    """The files of an image that was exported under that name, for as long as the block runs; raises `BuildError`."""
    directory = _directory(architecture)
    with locked(directory / "build.lock"):
        container = _buildah(directory, "from", "--pull-never", f"--platform=linux/{architecture}", name)
        try:
            yield Path(_buildah(directory, "mount", container))
        finally:
            _buildah(directory, "rm", container)


def _build(directory: Path, target: Target, name: str) -> str:
    """Build it under that name; the beginning of the image's digest."""
    _ensure_base(directory)
    identity = directory / f"{target}.id"
    arguments = (
        "build",
        "--layers",
        "--pull-never",
        f"--platform=linux/{directory.name}",
        "--network=host",
        f"--target={target}",
        f"--tag={name}",
        f"--iidfile={identity}",
        *(f"--build-arg={key}={value}" for key, value in _labels().items()),
        ROOT,
    )
    _follow(_buildah_command(directory, arguments))
    return identity.read_text().removeprefix("sha256:")[:16]


def _export(directory: Path, name: str, archive: Path, *packing: str) -> None:
    unfinished = archive.with_suffix(".tar.part")
    _buildah(directory, "push", "--quiet", *packing, name, f"oci-archive:{unfinished}:{name}")
    unfinished.rename(archive)


def push_images(archives: Sequence[Path], name: str, *, plain: bool) -> str:
    """Push one image of several architectures to a registry, and return the digest of its index.

    Args:
        archives: The image of each architecture.
        name: The image's name in the registry, with a tag.
        plain: Whether the registry speaks HTTP without TLS.

    Raises:
        ToolMissingError: There is no buildah.
        BuildError: The registry's message, if it refuses the image.
    """
    directory = _directory()
    with locked(directory / "build.lock"), tempfile.NamedTemporaryFile("r") as digest:
        _buildah(directory, "manifest", "rm", name, check=False)
        _buildah(directory, "manifest", "create", name)
        for archive in archives:
            _buildah(directory, "manifest", "add", name, f"oci-archive:{archive}")
        options = (f"--tls-verify={str(not plain).lower()}", f"--digestfile={digest.name}")
        _buildah(directory, "manifest", "push", "--all", *options, name, f"docker://{name}")
        _buildah(directory, "manifest", "rm", name)
        return digest.read().strip()


def _directory(architecture: str = NATIVE) -> Path:
    """Where the images of one architecture are: a base has one name for all of them."""
    return cache().parent / "images" / architecture


def base_layers() -> list[str]:
    """Return the digests of the base's layers, uncompressed; the base is there once an image has been built."""
    image = json.loads(_buildah(_directory(), "inspect", "--type=image", BASE))
    digests: list[str] = image["OCIv1"]["rootfs"]["diff_ids"]
    return digests


def _labels() -> dict[str, str]:
    version = re.search(r'__version__ = "(.+)"', (ROOT / "accelbench" / "__init__.py").read_text())
    # The last commit that changed the image, not the last one: the same content stays the same image.
    log = ["git", "log", "-1", "--format=%H", "--", *CONTENT]
    commit = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    if version is None:
        raise BuildError("accelbench/__init__.py names no __version__")
    return {"VERSION": version[1], "REVISION": commit or "unknown"}


def _ensure_base(directory: Path) -> None:
    if _buildah(directory, "images", "--quiet", BASE, check=False):
        return
    architecture = directory.name
    with contextlib.suppress(BuildError, subprocess.TimeoutExpired):
        _buildah(directory, "pull", "--quiet", f"--platform=linux/{architecture}", BASE, seconds=PULL_SECONDS)
        return
    if shutil.which("debootstrap") is None:
        raise ToolMissingError(f"{BASE} cannot be pulled, and its stand-in needs debootstrap (Debian: debootstrap)")
    files = directory / DEBIAN
    if not (files / "complete").exists():
        shutil.rmtree(files, ignore_errors=True)
        options = (f"--arch={architecture}", "--variant=minbase", f"--include={DEBIAN_PACKAGES}")
        _follow(["debootstrap", *options, DEBIAN, files / "root"])
        shutil.copyfile(AUTHORITIES, files / "root" / AUTHORITIES.relative_to("/"))
        (files / "complete").touch()
    container = _buildah(directory, "from", "scratch")
    settings = {name: os.environ[name] for name in MACHINE_SETTINGS if name in os.environ}
    settings |= {"SSL_CERT_FILE": str(AUTHORITIES), "PIP_CERT": str(AUTHORITIES)}
    _buildah(directory, "add", "--quiet", container, files / "root", "/")
    environment = (f"--env={name}={value}" for name, value in settings.items())
    _buildah(directory, "config", f"--arch={architecture}", *environment, container)
    _buildah(directory, "commit", "--quiet", "--rm", container, BASE)
    shutil.rmtree(files)


def _buildah(directory: Path, *arguments: str | Path, check: bool = True, seconds: float | None = None) -> str:
    command = _buildah_command(directory, arguments)
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False, timeout=seconds)
    if check and done.returncode:
        raise BuildError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout.strip()


def _buildah_command(directory: Path, arguments: Sequence[str | Path]) -> list[str | Path]:
    if shutil.which("buildah") is None:
        raise ToolMissingError("images are built with buildah (Debian: buildah)")
    storage = (f"--root={directory / 'storage'}", f"--runroot={directory / 'run'}", "--storage-driver=overlay")
    return ["buildah", *storage, *arguments]


def _environment() -> dict[str, str]:
    # chroot: this machine may forbid the namespaces that a container would get.
    return os.environ | {"BUILDAH_ISOLATION": "chroot"}


def _follow(command: Sequence[str | Path]) -> None:
    """Run what takes minutes, and let its output be followed."""
    last: deque[str] = deque(maxlen=60)
    with subprocess.Popen(
        command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            last.append(line)
            sys.stderr.write(line)
    if running.returncode:
        raise BuildError(f"{' '.join(map(str, command))} failed:\n{''.join(last)}")


def main() -> int:
    """Build the targets that the command line names; return the exit status."""
    for target in get_args(Target):
        if target in sys.argv[1:]:
            sys.stderr.write(f"image: building the {target}'s, minutes the first time ...\n")
            start = time.monotonic()
            try:
                archive = build_image(target)
            except ClusterError as error:
                sys.stderr.write(f"image: {error}\n")
                return 1
            sys.stderr.write(f"image: {archive} after {time.monotonic() - start:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

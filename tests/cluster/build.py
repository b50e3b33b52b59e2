"""Building what the cluster is made of, once for each version, into a cache outside the checkout.

The first build takes minutes; every later one finds the binary there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import BuildError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Binaries", "binaries", "cache", "go_tool", "locked"]

SOURCES = Path(__file__).parent / "go"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")


@dataclass(frozen=True)
class Binaries:
    """The built programs. Each component is a link, so that processes carry the names one looks for."""

    directory: Path

    def component(self, name: str) -> Path:
        """Return the program of a Kubernetes component."""
        return self.directory / name

    @property
    def kubectl(self) -> Path:
        return self.component("kubectl")

    @property
    def pod(self) -> Path:
        """The static program that runs inside test pods."""
        return self.directory / "pod"


def cache() -> Path:
    """Return the directory for everything that outlives a test run."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "accelbench" / "cluster"


def kubernetes_version() -> str:
    """Return the version of Kubernetes that go.mod asks for, as v1.2.3."""
    match = re.search(r"^\tk8s\.io/kubernetes (v\S+)$", (SOURCES / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildError("go.mod does not require k8s.io/kubernetes")
    return match[1]


def binaries() -> Binaries:
    """Return the programs of the cluster, built first where they are not in the cache yet.

    Raises `ToolMissingError` without Go, `BuildError` when it fails.
    """
    sources = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    directory = cache() / digest.hexdigest()[:16]
    with locked(cache() / "build.lock"):
        if not (directory / "built").exists():
            _build(directory)
    return Binaries(directory)


def go_tool(module_path: str, version: str) -> Path:
    """Return a program that is published as a Go module, such as ("helm.sh/helm/v3/cmd/helm", "v3.22.0").

    It is named after the path's last element (helm), built first where it is not in the cache yet.
    """
    name = module_path.rpartition("/")[2]
    program = cache() / "tools" / f"{name}@{version}" / name
    with locked(cache() / f"{name}.lock"):
        if not program.exists():
            _go(["install", f"{module_path}@{version}"], environment={"GOBIN": str(program.parent)})
    return program


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that only one process on this machine can hold."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    common = ("build", "-buildvcs=false", "-trimpath")
    _go([*common, "-ldflags", f"-s -w {_version_flags()}", "-o", directory / "kube", "."])
    _go([*common, "-ldflags", "-s -w", "-o", directory / "pod", "./pod"], environment={"CGO_ENABLED": "0"})
    for component in COMPONENTS:
        link = directory / component
        link.unlink(missing_ok=True)
        link.symlink_to("kube")
    (directory / "built").touch()


def _version_flags() -> str:
    # A server without them calls itself v0.0.0-master, which kubectl cannot parse.
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = {"Version": version, "Major": major, "Minor": minor, "Commit": "unknown", "TreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.git{name}={value}" for name, value in stamp.items())


def _go(arguments: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    if shutil.which("go") is None:
        raise ToolMissingError(
            "the test cluster is built with Go, and there is no `go` on the PATH: install 1.26 or later"
        )
    done = subprocess.run(
        ["go", *arguments],
        cwd=SOURCES,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"go {' '.join(map(str, arguments))} failed:\n{done.stdout[-4000:]}")

"""The programs that the tests start: Kubernetes, helm, Prometheus. Built once for each version of `go/`, into a cache.

`python -m prepare` builds them, for minutes, before the first test; a test only finds them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import BuildError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["COMPILER", "PREPARE", "Binaries", "binaries", "build", "cache", "digest_of", "go", "locked"]

SOURCES = Path(__file__).parent / "go"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
# One module requires them all: they share what they are made of, and nearly everything is compiled once.
PACKAGES = (
    ".",
    "./pod",
    "helm.sh/helm/v3/cmd/helm",
    "github.com/prometheus/prometheus/cmd/prometheus",
    "github.com/prometheus/prometheus/cmd/promtool",
)
NODE_PACKAGES = ("./kubelet",)
"""What a node needs besides: only `make e2e` has one."""
# Nobody debugs these programs: without their DWARF, compiling takes a fifth less time, and with a collector of garbage
# that runs seldom a tenth less. Without inlining, but into what serves each request, it takes another fifth less.
HOT = ("std", "google.golang.org/...", "go.etcd.io/...", "k8s.io/apimachinery/...", "sigs.k8s.io/...")
COMPILER = ("-gcflags=all=-dwarf=false -l", *(f"-gcflags={packages}=-dwarf=false" for packages in HOT))
ENVIRONMENT = {"CGO_ENABLED": "0", "GOGC": "800", "GOMEMLIMIT": "2GiB"}
PREPARE = "make prepare"
PROGRESS_SECONDS = 15


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
    def kubelet(self) -> Path:
        """Raises `ToolMissingError` where it has not been built."""
        program = self.component("kubelet")
        if not program.exists():
            raise ToolMissingError(f"the kubelet has not been built: run `{PREPARE}-node`, with Go 1.26 or later")
        return program

    @property
    def helm(self) -> Path:
        return self.directory / "helm"

    @property
    def prometheus(self) -> Path:
        return self.directory / "prometheus"

    @property
    def promtool(self) -> Path:
        return self.directory / "promtool"

    @property
    def pod(self) -> Path:
        """The static pause program of test pods."""
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
    """Return the programs from the cache; raises `ToolMissingError` where they have not been built."""
    directory = _directory()
    if not (directory / "built").exists():
        raise ToolMissingError(f"the tests' programs have not been built: run `{PREPARE}`, with Go 1.26 or later")
    return Binaries(directory)


def build(say: Callable[[str], None], *, node: bool = False) -> Binaries:
    """Build what is not in the cache yet, with `node` the kubelet too, and say how far it is.

    Raises `ToolMissingError` without Go, `BuildError` when it fails.
    """
    directory = _directory()
    with locked(cache() / "build.lock"):
        if not (directory / "built").exists():
            say("building Kubernetes, helm and Prometheus; minutes, the first time ...")
            _build(directory, PACKAGES, say)
            (directory / "cluster").replace(directory / "kube")
            for component in COMPONENTS:
                link = directory / component
                link.unlink(missing_ok=True)
                link.symlink_to("kube")
            (directory / "built").touch()
        if node and not (directory / "kubelet").exists():
            say("building the kubelet ...")
            _build(directory, NODE_PACKAGES, say)
    return Binaries(directory)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that only one process on this machine can hold."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest_of(sources: Path, packages: tuple[str, ...]) -> str:
    """Return a name for what is built of these packages: another one as soon as any source is another."""
    digest = hashlib.sha256(" ".join(packages).encode())
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(path.relative_to(sources).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _directory() -> Path:
    return cache() / digest_of(SOURCES, PACKAGES)


def _build(directory: Path, packages: tuple[str, ...], say: Callable[[str], None]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    # -v names each package as it is compiled.
    options = ["-v", "-buildvcs=false", "-trimpath", *COMPILER]
    flags = f"-ldflags=-s -w {_version_flags()}"
    go(["build", *options, flags, "-o", f"{directory}{os.sep}", *packages], SOURCES, say)


def _version_flags() -> str:
    # A server without them calls itself v0.0.0-master, which kubectl cannot parse.
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = {"Version": version, "Major": major, "Minor": minor, "Commit": "unknown", "TreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.git{name}={value}" for name, value in stamp.items())


def go(arguments: list[str], sources: Path, say: Callable[[str], None]) -> list[str]:
    """Run Go on the module in that directory, and say how far it is; return the lines that it printed.

    Raises `ToolMissingError` without Go, `BuildError` when it fails.
    """
    # The environment's own Go, from constraints.txt, comes first.
    program = shutil.which("go", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if program is None:
        raise ToolMissingError("the tests' programs are built with Go, and there is no `go`: install 1.26 or later")
    start = said = time.monotonic()
    downloaded = compiled = 0
    lines: list[str] = []
    with subprocess.Popen(
        [program, *arguments],
        cwd=sources,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            lines.append(line)
            if line.startswith("go: downloading"):
                downloaded += 1
            else:
                compiled += 1
            if time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                say(f"{downloaded} modules fetched, {compiled} packages compiled, {said - start:.0f} s")
    if running.returncode:
        raise BuildError(f"go {' '.join(arguments)} failed:\n{''.join(lines)[-4000:]}")
    say(f"done in {time.monotonic() - start:.0f} s")
    return lines

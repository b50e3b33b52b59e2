"""The real API server of every minor, and what it says against everything that the chart can write.

`python -m chart.minors` builds each from its own Go modules, for minutes the first time, starts it beside the tests'
etcd and controllers, applies each switch to it, strictly and without keeping anything; then docs/results/minors.md.
`python -m chart.minors 1.31.14` tries one, and writes nothing. No other test does: `test_schemas` has the schemas of
every minor, and this takes longer than all of them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from chart.schemas import KUBERNETES, MINORS, schemas
from chart.switches import EVERYTHING, SWITCHES
from chart.test_install import THE_NAMESPACES_OWN, refusal
from cluster.build import COMPILER, Binaries, binaries, cache, go, locked
from cluster.cluster import Cluster
from cluster.control_plane import LOOPBACK, start_control_plane
from cluster.processes import Processes, end_processes

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER = "kube-apiserver"
PROGRAM = """\
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
"""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "minors.md"
TEXT = """\
# The chart on each Kubernetes

`PYTHONPATH=tests python -m chart.minors`, {day}. The chart says that it runs on Kubernetes 1.31 and later. Each of
these API servers was built from its own release and given the chart's objects, CRDs included, once for each set of
values: the defaults, everything at once, each switch alone, and the pod of `helm test`. kubectl 1.37 applied them with
`--dry-run=server --validate=strict`, so unknown fields are errors, and the rules of the CRDs are compiled by that
server. Nothing was kept, and no pod ran.

| Kubernetes | sets of values | taken |
| --- | ---: | ---: |"""
TEST_POD = "--show-only=templates/tests/at-work.yaml"

say = functools.partial(print, "minors:", file=sys.stderr, flush=True)


def main(requested: list[str]) -> int:
    """Test the requested versions, or all of them; return the exit status."""
    found: dict[str, dict[str, str]] = {}
    for version in requested or MINORS:
        with tempfile.TemporaryDirectory() as directory:
            found[version] = try_version(Path(directory), build_server(version, say))
        for name, refused in found[version].items():
            say(f"{version}: {name}: {refused or 'taken'}")
    if not requested:
        PAGE.write_text(page(found, dt.datetime.now(tz=dt.UTC).date()))
    return int(any(refused for one in found.values() for refused in one.values()))


def page(found: dict[str, dict[str, str]], day: dt.date) -> str:
    """Return which objects each version accepted, and the refusals of the others."""
    lines = [TEXT.format(day=day)]
    for version, refusals in found.items():
        lines.append(f"| {version} | {len(refusals)} | {sum(not refused for refused in refusals.values())} |")
    refused_by = [
        f"- {version}, {name}: {' '.join(refused.split())}"
        for version, refusals in found.items()
        for name, refused in refusals.items()
        if refused
    ]
    return "\n".join([*lines, "", *(refused_by or ["None refused any."]), ""])


def try_version(directory: Path, server: Path) -> dict[str, str]:
    """Return the refusals by the name of the tested object; empty if it is accepted."""
    programs = directory / "programs"
    programs.mkdir()
    for program in binaries().directory.iterdir():
        (programs / program.name).symlink_to(server if program.name == SERVER else program)
    processes = Processes(directory, die_with_parent=True)
    try:
        plane = start_control_plane(directory, Binaries(programs), processes, LOOPBACK)
        cluster = Cluster(kubeconfig=plane.kubeconfig, kubectl_program=binaries().kubectl)
        cluster.define(schemas().crds)
        cluster.kubectl("create", "namespace", "team")
        own = dataclasses.replace(cluster, namespace="team")
        tried = {"the defaults": {}, "everything": EVERYTHING, **SWITCHES}
        found = {name: refusal(own, values) for name, values in tried.items()}
        return found | {"the pod of helm test": refusal(own, EVERYTHING | THE_NAMESPACES_OWN, TEST_POD)}
    finally:
        end_processes(directory)
        processes.reap()


def build_server(version: str, say: Callable[[str], None]) -> Path:
    """Build it, unless it is in the cache. Raises `ToolMissingError` without Go, `BuildError` when it fails."""
    directory = cache() / f"minor-{version}"
    program = directory / SERVER
    with locked(cache() / "build.lock"):
        if program.exists():
            return program
        say(f"building the API server {version}; minutes ...")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "main.go").write_text(PROGRAM)
        (directory / "go.mod").write_text(_module(version, directory))
        go(["mod", "tidy"], directory, say)
        _, minor, _ = version.split(".")
        stamp = {"Version": f"v{version}", "Major": "1", "Minor": minor}
        flags = " ".join(f"-X k8s.io/component-base/version.git{name}={value}" for name, value in stamp.items())
        go(["build", "-v", "-trimpath", *COMPILER, f"-ldflags=-s -w {flags}", "-o", str(program), "."], directory, say)
    return program


def _module(version: str, directory: Path) -> str:
    """Kubernetes' own go.mod replaces its staging modules by folders; each is published under a version of its own."""
    lines = go(["mod", "download", "-json", f"{KUBERNETES}@v{version}"], directory.parent, lambda _: None)
    found = json.loads("".join(line for line in lines if not line.startswith("go:")))
    staging = re.findall(r"^\t(k8s\.io/[a-z-]+) v0\.0\.0$", Path(found["GoMod"]).read_text(), re.MULTILINE)
    published = f"v0.{version.removeprefix('1.')}"
    replaced = "".join(f"\t{name} => {name} {published}\n" for name in staging)
    return f"module minor\n\ngo 1.26.0\n\nrequire {KUBERNETES} v{version}\n\nreplace (\n{replaced})\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

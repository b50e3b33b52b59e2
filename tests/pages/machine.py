"""The start of a reader: a checkout, a Python environment without accelbench, a cluster."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.build import binaries
from pages.page import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.cluster import Cluster

__all__ = ["at_cluster", "checkout", "python_environment", "wheel"]

LEFT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", ".fuzz", "__pycache__")
OURS = ("accelbench", "__editable__", "_editable_impl")
BUILT = {"build", "dist", "results"}


def checkout(to: Path) -> Path:
    """A copy of the repository without what was built or measured in it."""

    def left(folder: str, names: list[str]) -> set[str]:
        return LEFT(folder, names) | (BUILT if folder == str(ROOT) else set())

    shutil.copytree(ROOT, to, ignore=left, symlinks=True)
    return to


def wheel(to: Path) -> Path:
    """The folder `to` with accelbench's wheel, where pip looks for packages in place of an index."""
    build = [sys.executable, "-c", f"import hatchling.build; hatchling.build.build_wheel({str(to)!r})"]
    to.mkdir()
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return to


def python_environment(directory: Path, packages: Path) -> dict[str, str]:
    """A new virtual environment, as variables: it sees what the tests' own interpreter has, but not its accelbench.

    So `pip install` builds and installs accelbench as a reader's does, and finds everything that it needs in place.
    """
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    [site] = (directory / "lib").glob("python*/site-packages")
    for bundled in site.glob("setuptools*"):  # an old one, with some Pythons, which would hide the tests' own
        shutil.rmtree(bundled)
    for there in (entry for place in sys.path if place.endswith("site-packages") for entry in Path(place).iterdir()):
        if not (there.name.startswith(OURS) or there.suffix == ".pth" or (site / there.name).exists()):
            (site / there.name).symlink_to(there)
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "COLUMNS", "FORCE_COLOR"}}
    return kept | {
        "PATH": os.pathsep.join([str(directory / "bin"), os.environ["PATH"]]),
        "VIRTUAL_ENV": str(directory),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(packages),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def at_cluster(cluster: Cluster, directory: Path, values: Mapping[str, Any] | None = None) -> dict[str, str]:
    """A shell of the cluster's administrator: kubectl, helm and accelbench, the cluster's namespace current.

    `values` are given to helm beside the page's own: how a pod reaches this cluster's API server. Where its images come
    from is the page's matter, so a value that names an image is refused.
    """
    if other := set(values or ()) - {"extraEnv"}:
        raise ValueError(f"the page has to say it itself: {', '.join(sorted(other))}")
    directory.mkdir()
    kubeconfig, given = directory / "kubeconfig", directory / "values.yaml"
    shutil.copyfile(cluster.kubeconfig, kubeconfig)
    given.write_text(json.dumps(values or {}))
    here = [sys.executable, "-c", "from accelbench.cli.main import main; main()"]
    helm = shlex.quote(str(binaries().helm))
    for name, script in {
        "kubectl": f'exec {shlex.quote(str(cluster.kubectl_program))} "$@"',
        "helm": f'case "$1" in install|upgrade) set -- "$@" --values {given} --timeout 15m;; esac; exec {helm} "$@"',
        "accelbench": f'exec {shlex.join(here)} "$@"',
    }.items():
        program = directory / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(directory), os.environ["PATH"]]),
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(directory / "cache"),
        "KUBERC": "off",
        "HOME": str(directory),
    }
    current = ["kubectl", "config", "set-context", "--current", f"--namespace={cluster.namespace}"]
    subprocess.run(current, env=environment, check=True, stdout=subprocess.DEVNULL)
    return environment

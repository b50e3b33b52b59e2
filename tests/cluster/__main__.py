"""The test cluster by hand: `PYTHONPATH=tests python -m cluster up --node`, then `down`.

`up` builds Kubernetes where that has not been done, which takes minutes the first time.
"""

# ruff: noqa: T201 - a command line prints

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path

from cluster.build import build, cache
from cluster.errors import ClusterError
from cluster.run import down, up


def main() -> int:
    """Do what the command line asks; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    parser.add_argument(
        "--directory", type=Path, default=cache() / "run", help="the cluster's state (default: %(default)s)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start a cluster, in place of the one that may be there")
    starting.add_argument("--node", action="store_true", help="with a node that runs pods; needs root")
    commands.add_parser("down", help="end it and remove all that it left")
    commands.add_parser("kubeconfig", help="print the path of its kubeconfig")
    arguments = parser.parse_args()
    # Relative paths would be looked for where each component runs.
    directory = arguments.directory.resolve()
    try:
        match arguments.command:
            case "up":
                build(functools.partial(print, file=sys.stderr, flush=True), node=arguments.node)
                cluster, _ = up(directory, node=arguments.node, die_with_parent=False)
                print("Run this in each terminal; kubectl and helm come with it:", file=sys.stderr, flush=True)
                print(f"export KUBECONFIG={cluster.kubeconfig} PATH={cluster.kubectl_program.parent}:$PATH")
            case "down":
                down(directory)
                print("The cluster is gone, with its runs and results.", file=sys.stderr)
            case "kubeconfig":
                print(_kubeconfig(directory))
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _kubeconfig(directory: Path) -> Path:
    path = directory / "kubeconfig"
    if not path.exists():
        raise ClusterError(f"no cluster is up in {directory}: start one with `up`")
    return path


if __name__ == "__main__":
    sys.exit(main())

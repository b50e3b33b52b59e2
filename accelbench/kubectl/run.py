"""Implement `kubectl accelbench run -f FILE`: create runs, follow them, exit with the code of their outcome."""

import sys
from collections.abc import Sequence

import click

from accelbench.kubectl.options import Cluster, RunOutput, cluster_options, follow_options
from accelbench.local.exits import Exit, help_text
from accelbench.terminal.program import Command


@click.command(cls=Command, epilog=help_text())
@click.option(
    "--filename",
    "-f",
    "files",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    multiple=True,
    required=True,
    help="BenchmarkRun manifests; - is standard input. Repeatable.",
)
@follow_options
@cluster_options
def run(files: Sequence[str], wait: bool, timeout: float | None, output: RunOutput, cluster: Cluster) -> None:
    """Create runs, follow them, and print their verdicts.

    A gate for CI: the exit code says how they ended. Manifests are checked before anything is created. Several runs
    are followed one after the other; the cluster measures them when it can. Progress goes to standard error,
    verdicts to standard output. Ctrl-C does not end the run.
    """
    from accelbench.kubectl.apply import apply
    from accelbench.kubectl.follow_runs import follow_runs, print_applied_runs
    from accelbench.kubectl.manifests import RunManifest, duplicate_names, read_manifests
    from accelbench.local.errors import InvalidSpecError
    from accelbench.local.manifests import STANDARD_INPUT

    if files.count(STANDARD_INPUT) > 1:
        raise click.BadParameter("- can be given once: standard input is read once", param_hint="--filename")
    manifests: list[RunManifest] = []
    errors: list[InvalidSpecError] = []
    for file in files:
        try:
            manifests += read_manifests(file)
        except InvalidSpecError as error:
            errors.append(error)
    duplicates = tuple(duplicate_names(manifests))
    if duplicates and not errors:
        errors.append(InvalidSpecError(", ".join(files), duplicates))
    for invalid_spec in errors:
        click.echo(invalid_spec.explanation(), err=True)
    if errors:
        sys.exit(Exit.INVALID_SPEC)
    with cluster.connect() as client:
        applied_runs = apply(client, manifests)
        print_applied_runs(applied_runs, output, wait=wait)
        if wait:
            sys.exit(follow_runs(client, applied_runs, timeout_seconds=timeout, output=output))

"""Implement `kubectl accelbench run -f FILE`: create runs, follow them, exit with the code of their outcome."""

from typing import Annotated

import typer

from accelbench.kubectl.options import (
    Cluster,
    Context,
    Kubeconfig,
    Namespace,
    RunOutput,
    RunPrinted,
    Switch,
    Timeout,
    Wait,
    seconds,
)
from accelbench.local.exits import Exit


def run(
    files: Annotated[
        list[str],
        typer.Option(
            "--filename", "-f", metavar="FILE", help="BenchmarkRun manifests; - is standard input. Repeatable."
        ),
    ],
    wait: Wait = Switch.TRUE,
    timeout: Timeout = None,
    output: RunPrinted = RunOutput.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Create runs, follow them, and print their verdicts.

    A gate for CI: the exit code says how they ended. Manifests are checked before anything is created. Several runs
    are followed one after the other; the cluster measures them when it can. Progress goes to standard error,
    verdicts to standard output. Ctrl-C does not end the run.
    """
    limit = seconds(timeout)
    from accelbench.kubectl.apply import apply
    from accelbench.kubectl.follow_runs import follow_runs, print_created
    from accelbench.kubectl.manifests import RunManifest, duplicate_names, read_manifests
    from accelbench.local.errors import InvalidSpecError
    from accelbench.local.manifests import STANDARD_INPUT

    if files.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("- can be given once: standard input is read once", param_hint="--filename")
    manifests: list[RunManifest] = []
    invalid: list[InvalidSpecError] = []
    for file in files:
        try:
            manifests += read_manifests(file)
        except InvalidSpecError as error:
            invalid.append(error)
    if not invalid and (problems := tuple(duplicate_names(manifests))):
        invalid.append(InvalidSpecError(", ".join(files), problems))
    for invalid_file in invalid:
        typer.echo(invalid_file.explained(), err=True)
    if invalid:
        raise typer.Exit(Exit.INVALID_SPEC)
    with Cluster(namespace, context, kubeconfig).ask() as client:
        applied = apply(client, manifests)
        waits = wait is Switch.TRUE
        print_created(applied, output, wait=waits)
        if waits:
            raise typer.Exit(follow_runs(client, applied, timeout=limit, output=output))

"""`kubectl accelbench logs RUN`: what the pod of a case says, its progress in words."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accelbench.kubectl.options import RUN, Cluster, Context, Kubeconfig, Namespace
from accelbench.local.exits import Exit

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

RETRY_SECONDS = 2.0
OVER = ("Succeeded", "Failed")


def logs(
    name: Annotated[str, typer.Argument(metavar="RUN", help=RUN)],
    case: Annotated[
        str | None,
        typer.Option(
            "--case", metavar="CASE", help="The case of a sweep. Default: the one that is running, or ran last."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the case has ended.")] = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Print the log of a run, or of one of its cases.

    Shows what launches printed, and each launch and round in words. The log also has the compressed results, which are
    left out here; `kubectl logs POD` shows them.
    """
    from accelbench.delivery.log import MARK, parse_event
    from accelbench.document import printable
    from accelbench.kubectl.runs import run_named
    from accelbench.report.live import Lines
    from accelbench.terminal.console import console

    with Cluster(namespace, context, kubeconfig).ask() as client:
        pod = _pod(client, run_named(client, name), case, follow=follow)
        typer.echo(f"pod {pod}:", err=True)
        words = Lines(console())
        try:
            for line in _lines(client, pod, follow=follow):
                if (event := parse_event(line)) is not None:
                    words.event(event)
                elif not line.startswith(f"{MARK} "):
                    typer.echo(printable(line))
        except KeyboardInterrupt:
            raise typer.Exit(Exit.INTERRUPTED) from None


def _lines(client: "Client", pod: str, *, follow: bool) -> Iterator[str]:
    """Yield the lines of a pod's log; with `follow` wait for its container, and resume after a broken connection."""
    from accelbench.cluster_api.errors import InvalidError, NotFoundError, UnreachableError
    from accelbench.cluster_api.kinds import POD

    printed = 0
    while True:
        try:
            for number, line in enumerate(client.log(client.namespace, pod, follow=follow), start=1):
                if number > printed:
                    printed = number
                    yield line.decode(errors="replace").rstrip("\r\n")
            if not follow or client.get(POD.path(client.namespace, pod))["status"].get("phase") in OVER:
                return
        except NotFoundError:
            if printed:  # It ended, and its Job was deleted.
                return
            if not follow:
                raise
            client.get(POD.path(client.namespace, pod))  # Raises if it was deleted; else its kubelet has no log yet.
        except (InvalidError, UnreachableError):  # Its container has not started, or the connection broke off.
            if not follow:
                raise
        time.sleep(RETRY_SECONDS)


def _pod(client: "Client", run: dict[str, Any], case: str | None, *, follow: bool) -> str:
    """The name of the pod that is meant; raises ClusterError where there is none, or it is not clear which."""
    from accelbench.api import labels
    from accelbench.cluster_api.errors import ClusterError
    from accelbench.cluster_api.kinds import POD
    from accelbench.kubectl.gate import condition, is_finished
    from accelbench.kubectl.runs import parsed
    from accelbench.plan.cases import plan_cases
    from accelbench.problem import unknown

    metadata = run["metadata"]
    cases = [each.name for each in plan_cases(parsed(run))]
    if case is not None and case not in cases:
        raise typer.BadParameter(unknown("case", case, cases), param_hint="--case")
    selector = f"{labels.RUN_UID}={metadata['uid']}" + (f",{labels.CASE}={case}" if case else "")
    found = client.items(POD.path(metadata["namespace"]), labelSelector=selector)
    if not found:
        what = f"case {case} of benchmarkrun/{metadata['name']}" if case else f"benchmarkrun/{metadata['name']}"
        measured = (run.get("status") or {}).get("measuredCases") or ()
        if is_finished(run) or (case or "") in measured:
            kept = f"its result stays: kubectl accelbench report {metadata['name']}"
            raise ClusterError(f"{what} no longer has a pod, and its log went with the pod; {kept}")
        why = condition(run, "Finished").get("message") or "no operator has picked up the run yet"
        raise ClusterError(f"{what} has no pod yet: {why}")
    running = [each for each in found if each["status"].get("phase") == "Running"]
    if len(running) > 1:
        names = sorted(each["metadata"]["labels"][labels.CASE] for each in running)
        raise ClusterError(f"{len(names)} cases run: choose one with --case: {', '.join(names)}")
    latest = max(running or found, key=lambda each: str(each["metadata"]["creationTimestamp"]))
    pod = str(latest["metadata"]["name"])
    if latest["status"].get("phase") == "Pending":
        waits = f"pod {pod} has not started: {condition(run, 'Finished').get('message', '')}"
        if not follow:
            raise ClusterError(waits)
        typer.echo(waits, err=True)
    return pod

"""Implement `kubectl accelbench logs RUN`: print the log of a case's pod, its progress events in words."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from accelbench.kubectl import complete
from accelbench.kubectl.options import Cluster, cluster_options, run_argument
from accelbench.terminal.program import Command

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

RETRY_SECONDS = 2.0
"""Time before a log is read again."""
ENDED_PHASES = ("Succeeded", "Failed")


@click.command(cls=Command)
@run_argument("name")
@click.option(
    "--case",
    metavar="CASE",
    help="The case of a sweep. Default: the one that is running, or ran last.",
    shell_complete=complete.cases,
)
@click.option("--follow", "-f", is_flag=True, help="Follow the log until the case has ended.")
@cluster_options
def logs(name: str, case: str | None, follow: bool, cluster: Cluster) -> None:
    """Print the log of a run, or of one of its cases.

    Shows what launches printed, and each launch and round in words. The log also has the compressed results, which are
    left out here; `kubectl logs POD` shows them.
    """
    from accelbench.delivery.log import MARK, parse_event
    from accelbench.document import escape_unprintable
    from accelbench.kubectl.runs import get_run
    from accelbench.report.live import Lines
    from accelbench.terminal.console import console

    with cluster.connect() as client:
        pod = _choose_pod(client, get_run(client, name), case, follow=follow)
        click.echo(f"pod {pod}:", err=True)
        progress = Lines(console())
        for line in _read_lines(client, pod, follow=follow):
            if (event := parse_event(line)) is not None:
                progress.event(event)
            elif not line.startswith(f"{MARK} "):  # other lines with the mark are compressed results
                click.echo(escape_unprintable(line))


def _read_lines(client: "Client", pod: str, *, follow: bool) -> Iterator[str]:
    """Yield the lines of a pod's log.

    With `follow`, wait for the container, and continue until the pod ends.
    """
    from accelbench.cluster_api.errors import InvalidError, NotFoundError, UnreachableError
    from accelbench.cluster_api.kinds import POD

    yielded_lines = 0
    while True:
        try:
            for number, line in enumerate(client.log(client.namespace, pod, follow=follow), start=1):
                if number > yielded_lines:  # after a broken connection the log starts again
                    yielded_lines = number
                    yield line.decode(errors="replace").rstrip("\r\n")
            if not follow or _has_ended(client, pod):
                return
        except NotFoundError:
            if yielded_lines:  # The pod ended, and its Job was deleted.
                return
            if not follow:
                raise
            # Raises NotFoundError again if the pod was deleted. If not, its kubelet has no log yet.
            client.get(POD.path(client.namespace, pod))
        except (InvalidError, UnreachableError):  # The container has not started, or the connection broke off.
            if not follow:
                raise
        time.sleep(RETRY_SECONDS)


def _has_ended(client: "Client", pod: str) -> bool:
    """Return True if the pod has ended, so that nothing is added to its log."""
    from accelbench.cluster_api.kinds import POD

    return client.get(POD.path(client.namespace, pod))["status"].get("phase") in ENDED_PHASES


def _choose_pod(client: "Client", run: dict[str, Any], case: str | None, *, follow: bool) -> str:
    """Return the name of the pod whose log to print: the running one, or else the latest.

    `case` chooses among the pods of a sweep; None allows all. Raises BadParameter if the run has no such case, and
    ClusterError if there is no pod, if several pods run or, without `follow`, if the pod has not started.
    """
    from accelbench.api import labels
    from accelbench.cluster_api.errors import ClusterError
    from accelbench.cluster_api.kinds import POD
    from accelbench.kubectl.gate import condition
    from accelbench.kubectl.runs import parse_run
    from accelbench.plan.cases import plan_cases
    from accelbench.problem import describe_unknown

    metadata = run["metadata"]
    case_names = [planned_case.name for planned_case in plan_cases(parse_run(run))]
    if case is not None and case not in case_names:
        raise click.BadParameter(describe_unknown("case", case, case_names), param_hint="--case")
    selector = f"{labels.RUN_UID}={metadata['uid']}"
    if case:
        selector += f",{labels.CASE}={case}"
    pods = client.items(POD.path(metadata["namespace"]), labelSelector=selector)
    if not pods:
        raise ClusterError(_explain_no_pod(run, case))
    running_pods = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    if len(running_pods) > 1:
        running_cases = sorted(pod["metadata"]["labels"][labels.CASE] for pod in running_pods)
        raise ClusterError(f"{len(running_cases)} cases run: choose one with --case: {', '.join(running_cases)}")
    chosen_pod = max(running_pods or pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    pod_name = str(chosen_pod["metadata"]["name"])
    if chosen_pod["status"].get("phase") == "Pending":
        # While a run has not finished, the message of its condition Finished has the reason why it waits.
        message = f"pod {pod_name} has not started: {condition(run, 'Finished').get('message', '')}"
        if not follow:
            raise ClusterError(message)
        click.echo(message, err=True)
    return pod_name


def _explain_no_pod(run: dict[str, Any], case: str | None) -> str:
    """Explain why the run, or one case of it, has no pod."""
    from accelbench.kubectl.gate import condition, is_finished

    name = run["metadata"]["name"]
    subject = f"case {case} of benchmarkrun/{name}" if case else f"benchmarkrun/{name}"
    measured_cases = (run.get("status") or {}).get("measuredCases") or ()
    if is_finished(run) or case in measured_cases:
        advice = f"its result is kept: kubectl accelbench report {name}"
        return f"{subject} no longer has a pod, and its log went with the pod; {advice}"
    reason = condition(run, "Finished").get("message") or "no operator has picked up the run yet"
    return f"{subject} has no pod yet: {reason}"

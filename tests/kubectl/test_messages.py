"""Keep the wording of the plugin's messages in one golden file."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import click
import pytest

from accelbench.cluster_api.client import error_with_remedy
from accelbench.cluster_api.kinds import POD, RUN
from accelbench.kubectl import apply, follow, follow_runs, logs, manifests, options, runs
from accelbench.kubectl.apply import AppliedRun
from accelbench.kubectl.clone_run import clone_run
from accelbench.local.errors import InvalidSpecError
from operator_world.builders import run_manifest

Manifest = dict[str, Any]


def finished(reason: str, message: str, status: str = "True") -> Manifest:
    condition = {"type": "Finished", "status": status, "reason": reason, "message": message}
    status_ = {"conditions": [condition], "completionTime": "2026-03-01T12:00:00Z"}
    return {**run_manifest(), "status": status_}


def messages(capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[str, str]]:
    waiting = finished("Queued", "No node takes the pod", status="False")
    done = finished("Succeeded", "1 of 1 cases")
    invalid = finished("InvalidSpec", 'unknown profile "h10"')
    yield "a created run", AppliedRun(waiting, was_created=True).describe()
    yield "an existing run that has not finished", AppliedRun(waiting, was_created=False).describe()
    yield "an existing run with a result", AppliedRun(done, was_created=False).describe()
    yield "an existing run whose spec is invalid", AppliedRun(invalid, was_created=False).describe()
    yield "another run with another workload", apply._explain_difference("chain", ["workload", "measurement"])
    refused_run = apply._explain_difference("chain", ["variants"], was_refused=True)
    yield "a refused run with other variants", refused_run
    yield "another run with another runPolicy", apply._explain_difference("chain", ["runPolicy"])
    with pytest.raises(InvalidSpecError) as refused:
        clone_run(invalid)
    yield "a rerun of an invalid spec", refused.value.explanation()
    named: Any = SimpleNamespace(run=SimpleNamespace(metadata=SimpleNamespace(namespace="", name="one")))
    yield "two manifests of one name", "\n".join(map(str, manifests.duplicate_names([named, named])))
    with pytest.raises(click.BadParameter) as bad:
        options.parse_duration("5 minutes")
    yield "a duration that Go does not read", bad.value.message
    client: Any = SimpleNamespace(namespace="team")
    yield "an unknown run", runs._explain_unknown_name(client, "chian", ["chain", "other"])
    yield "an unknown run of none", runs._explain_unknown_name(client, "chian", [])
    yield "no operator", follow.NO_OPERATOR.format(name="chain", namespace="team", class_name="accelbench")
    yield "no pod before an operator", logs._explain_no_pod(run_manifest(), None)
    yield "no pod yet", logs._explain_no_pod(waiting, "size-64")
    yield "no pod any more", logs._explain_no_pod(done, "size-64")
    follow_runs._print_unfinished([AppliedRun(waiting, was_created=True)], "--timeout has passed")
    yield "an unfinished run", capsys.readouterr().err.rstrip()


REFUSALS = (
    (401, "Unauthorized", "GET", RUN.path("team")),
    (403, 'benchmarkruns is forbidden: User "jane" cannot create resource', "POST", RUN.path("team")),
    (403, 'pods "a" is forbidden: User "jane" cannot get resource', "GET", POD.path("team", "a", "log")),
    (403, "exceeded quota", "POST", RUN.path("team")),
    (404, "404 page not found", "GET", RUN.path("team")),
    (404, 'benchmarkruns "chain" not found', "GET", RUN.path("team", "chain")),
)


def test_the_wording_of_messages(golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    parts = [*messages(capsys)]
    parts += [(f"HTTP status {status}", error_with_remedy(status, *rest).message) for status, *rest in REFUSALS]
    golden("messages.txt", "\n".join(f"# {title}\n{text}\n" for title, text in parts))

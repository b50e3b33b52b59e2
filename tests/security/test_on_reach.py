"""A user who may create BenchmarkRuns, and nothing else, cannot reach beyond their pods."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.api.crd import DIRECTORY
from accelbench.api.profiles import Profiles
from accelbench_operator.runs.accept import Plan, Refused, accept
from accelbench_operator.runs.job import build_job
from api.manifests import GOOD, changed
from cluster.wait import wait_until
from operator_world.builders import IMAGE, run_manifest
from security.reach import ALLOWED, REFUSED_BY_THE_API_SERVER, REFUSED_BY_THE_OPERATOR
from security.release import installed, permissions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow

USER = "engineer"
DOCUMENT = Path(__file__).parents[2] / "docs" / "operations" / "security.md"


@pytest.fixture(scope="module")
def defined(control_plane: Cluster) -> Cluster:
    control_plane.define(DIRECTORY)
    return control_plane


@pytest.fixture
def engineered(defined: Cluster, cluster: Cluster) -> Iterator[Cluster]:
    """A namespace in which the user has the chart's role for users, and no other."""
    with installed(cluster) as release:
        for part in ("edit", "view"):
            binding = ("create", "rolebinding", f"{USER}-{part}", f"--clusterrole={release}-{part}", f"--user={USER}")
            cluster.kubectl(*binding)
        wait_until(lambda: bool(permissions(cluster, USER, cluster.namespace)), what="the roles to count")
        yield cluster


def apply(cluster: Cluster, template: dict[str, Any], *options: str) -> str:
    """Return the API server's refusal of the user's run; empty if it is accepted."""
    manifest = json.dumps(changed({"spec.podTemplate": template}, GOOD))
    asked = ("create", f"--as={USER}", "--dry-run=server", "--filename=-", *options)
    done = cluster.kubectl(*asked, input=manifest, check=False)
    return done.stderr if done.returncode else ""


def accepted(template: dict[str, Any]) -> Plan | Refused:
    return accept(run_manifest(podTemplate=template), Profiles(), IMAGE)


def test_the_role_of_users_is_for_runs_and_results_alone(engineered: Cluster) -> None:
    of_runs = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
    of_results = {"get", "list", "watch", "delete", "deletecollection"}
    assert permissions(engineered, USER, engineered.namespace) == {
        *(("accelbench.dev", "benchmarkruns", verb) for verb in of_runs),
        *(("accelbench.dev", "benchmarkresults", verb) for verb in of_results),
    }
    assert permissions(engineered, USER, "default") == set()


def test_fields_that_reach_beyond_the_pod_are_refused_at_creation(engineered: Cluster) -> None:
    # --validate=false is a client of any kind; kubectl's own validation would ask for the cluster's definitions.
    refusals = {what: apply(engineered, each, "--validate=false") for what, each in REFUSED_BY_THE_API_SERVER.items()}
    assert {
        what: text for what, text in refusals.items() if "Forbidden: not for a run to set; remove it" not in text
    } == {}


@pytest.mark.parametrize("what", REFUSED_BY_THE_OPERATOR)
def test_fields_that_reach_into_the_runner_are_refused_by_the_operator(what: str) -> None:
    refused = accepted(REFUSED_BY_THE_OPERATOR[what])
    assert isinstance(refused, Refused)
    assert re.search("not for a run to set|the runner's own", refused.message)


@pytest.mark.parametrize("what", REFUSED_BY_THE_API_SERVER)
def test_an_operator_with_older_crds_refuses_those_fields_too(what: str) -> None:
    assert isinstance(accepted(REFUSED_BY_THE_API_SERVER[what]), Refused)


def test_allowed_fields_are_accepted_and_documented(engineered: Cluster) -> None:
    refusals = {what: apply(engineered, each, "--validate=false") for what, each in ALLOWED.items()}
    assert {what: text for what, text in refusals.items() if text} == {}
    for what, template in ALLOWED.items():
        assert isinstance(accepted(template), Plan), what
    rows = re.findall(r"^\| (.+?) \|", DOCUMENT.read_text(), re.MULTILINE)
    assert set(ALLOWED) <= set(rows)


@pytest.mark.parametrize("what", ALLOWED)
def test_isolation_of_the_pod_is_kept_with_all_allowed_fields(what: str) -> None:
    plan = accepted(ALLOWED[what])
    assert isinstance(plan, Plan)
    pod = build_job(plan.run, plan.cases[0], 1, plan.runner)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["command"] == ["python", "-m", "accelbench_runner"]

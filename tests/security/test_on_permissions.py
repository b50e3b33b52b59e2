"""The permissions of the operator's account in each installation, according to the API server."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from accelbench_operator.rbac import LEASE, RULES
from security.release import installed, permissions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow

NEEDED = {(rule.group, rule.resource, verb) for rule in RULES for verb in rule.verbs}
OWN = {(LEASE.group, LEASE.resource, verb) for verb in LEASE.verbs}
NEVER = (
    ("get", "secrets"),
    ("list", "secrets"),
    ("get", "configmaps"),
    ("create", "pods"),
    ("create", "pods/exec"),
    ("create", "pods/ephemeralcontainers"),
    ("delete", "pods"),
    ("update", "jobs.batch"),
    ("patch", "jobs.batch"),
    ("create", "deployments.apps"),
    ("create", "serviceaccounts/token"),
    ("update", "benchmarkruns.accelbench.dev"),
    ("create", "benchmarkruns.accelbench.dev"),
    ("update", "benchmarkresults.accelbench.dev"),
    ("list", "nodes"),
    ("patch", "nodes"),
    ("get", "namespaces"),
    ("bind", "clusterroles.rbac.authorization.k8s.io"),
    ("escalate", "clusterroles.rbac.authorization.k8s.io"),
    ("create", "rolebindings.rbac.authorization.k8s.io"),
    ("impersonate", "users"),
    ("update", "customresourcedefinitions.apiextensions.k8s.io"),
    ("approve", "signers.certificates.k8s.io"),
)
"""Of it all, what would be worst in the hands of whoever takes the operator's token."""


@pytest.fixture
def elsewhere(cluster: Cluster) -> Iterator[Cluster]:
    """Another namespace than that of the release."""
    other = dataclasses.replace(cluster, namespace=f"{cluster.namespace}-else")
    cluster.kubectl("create", "namespace", other.namespace)
    yield other
    cluster.kubectl("delete", "namespace", other.namespace, "--wait=false")


def account(release: str) -> str:
    return f"system:serviceaccount:{release}:{release}"


def may(cluster: Cluster, who: str, verb: str, resource: str) -> bool:
    asked = ("auth", "can-i", verb, resource, f"--as={who}")
    return cluster.kubectl(*asked, check=False).stdout.strip() == "yes"


@pytest.mark.parametrize("labels", [{}, {"accelbench.dev/runs": "allowed"}], ids=["any namespace", "by their labels"])
def test_an_operator_of_the_whole_cluster_may_do_what_it_needs_and_nothing_else(
    cluster: Cluster, elsewhere: Cluster, labels: dict[str, str]
) -> None:
    with installed(cluster, namespaceLabels=labels) as release:
        assert permissions(cluster, account(release), cluster.namespace) == NEEDED | OWN
        assert permissions(cluster, account(release), elsewhere.namespace) == NEEDED
        assert [what for what in NEVER if may(cluster, account(release), *what)] == []


def test_an_operator_of_one_namespace_may_do_nothing_in_another_not_even_in_its_own(
    cluster: Cluster, elsewhere: Cluster
) -> None:
    with installed(cluster, namespaces=[elsewhere.namespace]) as release:
        assert permissions(cluster, account(release), elsewhere.namespace) == NEEDED
        assert permissions(cluster, account(release), cluster.namespace) == OWN
        assert permissions(cluster, account(release), "default") == set()
        assert [what for what in NEVER if may(elsewhere, account(release), *what)] == []


def test_the_account_of_a_runs_pods_may_do_nothing(cluster: Cluster) -> None:
    with installed(cluster):
        assert permissions(cluster, f"system:serviceaccount:{cluster.namespace}:default", cluster.namespace) == set()

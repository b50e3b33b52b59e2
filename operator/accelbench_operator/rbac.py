"""What the operator may do, and which of its parts needs it: the chart's role is held against this, and so is a test.

Where `ACCELBENCH_NAMESPACES` names namespaces, the same rules stand in a Role in each of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Permission:
    """One rule of a Role, and why it is there."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    reason: str

    def to_manifest(self) -> dict[str, list[str]]:
        """The rule as RBAC has it."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}


RULES = (
    Permission(
        "accelbench.dev", "benchmarkruns", ("get", "list", "watch"), "watch hears of runs, reconcile reads them live"
    ),
    Permission("accelbench.dev", "benchmarkruns", ("delete",), "apply deletes a run whose time to live is over"),
    Permission("accelbench.dev", "benchmarkruns/status", ("update",), "reconcile records attempts and reports"),
    Permission(
        "accelbench.dev",
        "benchmarkruns/finalizers",
        ("update",),
        "job sets blockOwnerDeletion, which some clusters admit only to those who may do this",
    ),
    Permission("accelbench.dev", "benchmarkresults", ("list", "watch"), "reflector holds their headlines"),
    Permission("accelbench.dev", "benchmarkresults", ("get", "create"), "apply asks for a result live, and stores it"),
    Permission(
        "accelbench.dev", "benchmarkresults", ("delete",), "retention deletes what is more than the history to keep"
    ),
    Permission("batch", "jobs", ("list", "watch"), "reflector holds them"),
    Permission("batch", "jobs", ("get", "create", "delete"), "apply makes, confirms and deletes a case's Job"),
    Permission(
        "resource.k8s.io",
        "resourceclaimtemplates",
        ("get", "create"),
        "apply has a run's pods claim a device, where the profile names a DeviceClass",
    ),
    Permission("kueue.x-k8s.io", "workloads", ("list",), "kueue asks why a queue holds a Job, while one does"),
    Permission("kueue.x-k8s.io", "localqueues", ("list",), "kueue names the queues that are there, where one is not"),
    Permission("", "pods", ("list", "watch"), "reflector holds them: why a case is pending, how it ended"),
    Permission("", "pods/log", ("get",), "collect reads the result, live how far a case has come"),
    Permission("", "events", ("create",), "reconcile tells of transitions"),
    Permission("", "events", ("list",), "apply asks why a case does not start, which is told there alone"),
)

LEASE = Permission("coordination.k8s.io", "leases", ("get", "create", "update"), "lead: of several replicas one acts")
"""In the operator's own namespace alone."""

SCRAPERS = (
    Permission("authentication.k8s.io", "tokenreviews", ("create",), "scrapers asks who scrapes"),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",), "scrapers asks whether they may"),
)
"""In the whole cluster, where `ACCELBENCH_METRICS_AUTHORIZATION` is on, and else not at all."""

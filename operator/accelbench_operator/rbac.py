"""List the operator's permissions and the module that needs each one; a test compares the chart's role with this.

With `ACCELBENCH_NAMESPACES`, a Role in each of these namespaces has the same rules.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Permission:
    """Describe one rule of a Role and its reason."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    reason: str

    def to_manifest(self) -> dict[str, list[str]]:
        """Return the permission as an entry of `rules` in a Role."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}


RULES = (
    Permission(
        "accelbench.dev", "benchmarkruns", ("get", "list", "watch"), "watch follows runs, reconcile reads them live"
    ),
    Permission(
        "accelbench.dev",
        "benchmarkruns",
        ("delete",),
        "reconcile deletes a run whose time to live is over, retention one beyond the history",
    ),
    Permission("accelbench.dev", "benchmarkruns/status", ("update",), "reconcile records attempts and reports"),
    Permission(
        "accelbench.dev",
        "benchmarkruns/finalizers",
        ("update",),
        "job sets blockOwnerDeletion, which some clusters admit only to those who may do this",
    ),
    Permission("accelbench.dev", "benchmarkresults", ("list", "watch"), "reflector holds their headlines"),
    Permission("accelbench.dev", "benchmarkresults", ("get", "create"), "apply reads a result live, and stores it"),
    Permission("accelbench.dev", "benchmarkresults", ("delete",), "retention deletes results beyond the history"),
    Permission("batch", "jobs", ("list", "watch"), "reflector holds them"),
    Permission("batch", "jobs", ("get", "create", "delete"), "apply makes, confirms and deletes a case's Job"),
    Permission(
        "resource.k8s.io",
        "resourceclaimtemplates",
        ("get", "create"),
        "apply has a run's pods claim a device, where the profile names a DeviceClass",
    ),
    Permission("kueue.x-k8s.io", "workloads", ("list",), "kueue reads why a queue holds a Job"),
    Permission(
        "kueue.x-k8s.io", "localqueues", ("list",), "kueue names existing queues if the run's queue does not exist"
    ),
    Permission("", "pods", ("list", "watch"), "reflector holds them: why a case is pending, how it ended"),
    Permission("", "pods/log", ("get",), "collect reads the result, live reads progress"),
    Permission("", "events", ("create",), "reconcile reports transitions"),
    Permission("", "events", ("list",), "apply reads why a case does not start, which only events contain"),
)

LEASE = Permission(
    "coordination.k8s.io", "leases", ("get", "create", "update"), "election: one of several replicas leads"
)
"""In the operator's own namespace only."""

SCRAPERS = (
    Permission("authentication.k8s.io", "tokenreviews", ("create",), "scrapers authenticates a scrape"),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",), "scrapers authorizes a scrape"),
)
"""In the whole cluster, only with `ACCELBENCH_METRICS_AUTHORIZATION`."""

"""What the operator may do, and which of its parts needs it: the chart's role is held against this, and so is a test.

Where `ACCELBENCH_NAMESPACES` names namespaces, the same rules stand in a Role in each of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One rule of a Role, and why it is there."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    reason: str

    def to_manifest(self) -> dict[str, list[str]]:
        """The rule as RBAC has it."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}


RULES = (
    Rule("accelbench.dev", "benchmarkruns", ("get", "list", "watch"), "watch hears of runs, reconcile reads them live"),
    Rule("accelbench.dev", "benchmarkruns", ("delete",), "apply deletes a run whose time to live is over"),
    Rule("accelbench.dev", "benchmarkruns/status", ("update",), "reconcile records attempts and reports"),
    Rule(
        "accelbench.dev",
        "benchmarkruns/finalizers",
        ("update",),
        "job sets blockOwnerDeletion, which some clusters admit only to those who may do this",
    ),
    Rule("accelbench.dev", "benchmarkresults", ("list", "watch"), "reflector holds their headlines"),
    Rule("accelbench.dev", "benchmarkresults", ("get", "create"), "apply asks for a result live, and stores it"),
    Rule("accelbench.dev", "benchmarkresults", ("delete",), "retention deletes what is more than the history to keep"),
    Rule("batch", "jobs", ("list", "watch"), "reflector holds them"),
    Rule("batch", "jobs", ("get", "create", "delete"), "apply makes, confirms and deletes a case's Job"),
    Rule("", "pods", ("list", "watch"), "reflector holds them: why a case is pending, how it ended"),
    Rule("", "pods/log", ("get",), "collect reads the result"),
    Rule("", "events", ("create",), "reconcile tells of transitions"),
)

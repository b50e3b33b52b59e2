from accelbench_operator.rbac import LEASE, RULES

# Whoever adds a line here lets the operator do more in every cluster that it is installed in.
ALLOWED = """
accelbench.dev/benchmarkresults: create delete get list watch
accelbench.dev/benchmarkruns: delete get list watch
accelbench.dev/benchmarkruns/finalizers: update
accelbench.dev/benchmarkruns/status: update
batch/jobs: create delete get list watch
core/events: create list
core/pods: list watch
core/pods/log: get
kueue.x-k8s.io/localqueues: list
kueue.x-k8s.io/workloads: list
resource.k8s.io/resourceclaimtemplates: create get
"""


def test_the_operator_may_do_this_and_nothing_else() -> None:
    verbs: dict[str, set[str]] = {}
    for rule in RULES:
        verbs.setdefault(f"{rule.group or 'core'}/{rule.resource}", set()).update(rule.verbs)

    assert [f"{name}: {' '.join(sorted(may))}" for name, may in sorted(verbs.items())] == ALLOWED.strip().splitlines()


def test_in_its_own_namespace_the_operator_may_hold_a_lease_but_not_delete_one() -> None:
    assert LEASE.to_manifest() == {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "update"],
    }


def test_no_rule_is_a_wildcard_and_each_gives_its_reason() -> None:
    for rule in RULES:
        assert "*" not in {rule.group, rule.resource, *rule.verbs}
        assert rule.reason

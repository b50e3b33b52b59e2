"""A case counts only if its Job and pod ran the case document that the operator put into them."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from accelbench.api import labels
from accelbench_operator.runs.actions import Collect, DeleteJob
from accelbench_operator.runs.job import build_job
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.same_case import describe_changes, document_of, find_changes
from operator_world.api_server import Id, Manifest
from operator_world.applying import ATTEMPT, CREATE, PLAN, World
from operator_world.builders import ALL_RETRIES, make_plan
from operator_world.decisions import message, next_for
from operator_world.world import simulated

DIGEST = f"sha256:{'0' * 64}"
SCRIPT = {"script": {"configMapKeyRef": {"name": "scripts", "key": "mine.py"}}}


def template_of(**run: Any) -> Manifest:
    plan = make_plan(**run)
    template: Manifest = build_job(plan.run, plan.cases[0], 1, plan.runner)["spec"]["template"]
    return template


RUNNER = {"name": "runner", "image": f"registry/runner@{DIGEST}", "env": [{"name": "XLA_FLAGS", "value": ""}]}
OURS = template_of(workload=SCRIPT, podTemplate={"spec": {"containers": [RUNNER]}})


def changed(change: Callable[[Manifest, Manifest, Manifest], object]) -> tuple[str, ...]:
    """Return the differences found after `change` was applied to the template, its spec and its container."""
    theirs = copy.deepcopy(OURS)
    change(theirs, theirs["spec"], theirs["spec"]["containers"][0])
    return find_changes(OURS, theirs)


def rewrite(template: Manifest, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(document_of(template))
    change(document)
    template["metadata"]["annotations"][labels.CASE_ANNOTATION] = json.dumps(document, indent=1)


def api_server(template: Manifest, spec: Manifest, container: Manifest) -> None:
    """Add the defaults of an API server, drop empty values, and write quantities as it does."""
    spec |= {"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30}
    for volume in spec["volumes"]:
        if "downwardAPI" in volume:
            volume["downwardAPI"]["defaultMode"] = 420
            volume["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] = "v1"
        if "emptyDir" in volume:
            volume["emptyDir"] = {"sizeLimit": f"{int(volume['emptyDir']['sizeLimit'].removesuffix('Gi')) * 1024}Mi"}
    for variable in container["env"]:
        if variable["value"] == "":
            variable.pop("value")
    memory = container["resources"]["limits"]["memory"]
    container["resources"]["limits"]["memory"] = f"{int(memory.removesuffix('Gi')) * 1024}Mi"


HONEST: dict[str, Callable[[Manifest, Manifest, Manifest], object]] = {
    "an API server": api_server,
    "a queue's node selector": lambda _t, spec, _c: spec["nodeSelector"].update(pool="reserved"),
    "a queue's toleration": lambda _t, spec, _c: spec["tolerations"].append({"key": "x", "operator": "Exists"}),
    "a queue's gate": lambda _t, spec, _c: spec.update(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}]),
    "a queue's label": lambda template, _s, _c: template["metadata"]["labels"].update({"kueue.x-k8s.io/podset": "a"}),
    "a sidecar": lambda _t, spec, _c: spec["containers"].insert(0, {"name": "istio-proxy", "image": "proxy"}),
    "an init container": lambda _t, spec, _c: spec.update(initContainers=[{"name": "istio-init"}]),
    "a volume": lambda _t, spec, _c: spec["volumes"].append({"name": "ca", "configMap": {"name": "ca"}}),
    "a mount": lambda _t, _s, container: container["volumeMounts"].append({"name": "ca", "mountPath": "/ca"}),
    "a variable": lambda _t, _s, container: container["env"].insert(0, {"name": "HTTPS_PROXY", "value": "x"}),
    "more of its processors": lambda _t, _s, container: container["resources"]["limits"].update(cpu="500"),
    "more memory requested": lambda _t, _s, container: container["resources"]["requests"].update(memory="900Gi"),
    "a pull policy": lambda _t, _s, container: container.update(imagePullPolicy="Always"),
    "a mirror": lambda _t, _s, container: container.update(image=f"mirror.example/cache/runner@{DIGEST}"),
    "a taken label": lambda template, _s, _c: template["metadata"]["labels"].clear(),
    "a document in other words": lambda template, _s, _c: rewrite(template, lambda case: case.pop("comparisonsInRun")),
}


@pytest.mark.parametrize("change", HONEST.values(), ids=HONEST.keys())
def test_additions_by_queues_and_webhooks_do_not_change_the_case(change: Any) -> None:
    assert changed(change) == ()


FORGED: dict[str, Callable[[Manifest, Manifest, Manifest], object]] = {
    "measurement.roundsMax is 2 instead of 20": lambda template, _s, _c: rewrite(
        template, lambda case: case["measurement"].update(roundsMax=2)
    ),
    "workload is xor instead of mine": lambda template, _s, _c: rewrite(
        template, lambda case: case.update(workload="xor")
    ),
    "variants[1].use is jax/eager instead of jax/jit": lambda template, _s, _c: rewrite(
        template, lambda case: case["variants"][1].update(use="jax/eager")
    ),
    "its case document cannot be read": lambda template, _s, _c: template["metadata"]["annotations"].clear(),
    "image of container runner is attacker instead of": lambda _t, _s, container: container.update(image="attacker"),
    "command of container runner is": lambda _t, _s, container: container.update(command=["sleep"]),
    "args of container runner is": lambda _t, _s, container: container.update(args=["/other"]),
    "envFrom of container runner is": lambda _t, _s, container: container.update(
        envFrom=[{"configMapRef": {"name": "x"}}]
    ),
    "lifecycle of container runner is": lambda _t, _s, container: container.update(
        lifecycle={"postStart": {"exec": {"command": ["forge"]}}}
    ),
    "variable HOME has another value": lambda _t, _s, container: container["env"].append(
        {"name": "HOME", "value": "/x"}
    ),
    "variable XLA_FLAGS has another value": lambda _t, _s, container: container["env"].append(
        {"name": "XLA_FLAGS", "value": "--xla_cpu_enable_fast_math=true"}
    ),
    "variable HOME is missing": lambda _t, _s, container: container.update(
        env=[variable for variable in container["env"] if variable["name"] != "HOME"]
    ),
    "variable LD_PRELOAD was added": lambda _t, _s, container: container["env"].append(
        {"name": "LD_PRELOAD", "value": "/x"}
    ),
    "limits of cpu are 1m instead of": lambda _t, _s, container: container["resources"]["limits"].update(cpu="1m"),
    "requests of memory are missing": lambda _t, _s, container: container["resources"]["requests"].pop("memory"),
    "volumes has another accelbench-script": lambda _t, spec, _c: spec["volumes"][-1]["configMap"].update(name="x"),
    "volumes lacks accelbench-case": lambda _t, spec, _c: spec["volumes"].pop(0),
    "volumeMounts has another /etc/accelbench-script/mine.py": lambda _t, _s, container: container["volumeMounts"][
        -1
    ].update(name="accelbench-tmp"),
    "nodeSelector has": lambda _t, spec, _c: spec["nodeSelector"].clear(),
    "it has no container runner": lambda _t, _s, container: container.update(name="other"),
}


@pytest.mark.parametrize(("difference", "change"), FORGED.items(), ids=FORGED.keys())
def test_a_change_of_the_case_is_named(difference: str, change: Any) -> None:
    assert any(found.startswith(difference) for found in changed(change)), changed(change)


def test_a_long_list_of_long_values_stays_short() -> None:
    found = changed(
        lambda template, _s, _c: rewrite(
            template, lambda case: case.update(workload="x" * 9999, swept={"a": 1, "b": 2, "c": 3})
        )
    )
    assert len(describe_changes(found)) < 500
    assert "and 2 more" in describe_changes(found)


@pytest.fixture
def world() -> World:
    world = World()
    world.do(CREATE)
    return world


def halve_rounds(body: Manifest) -> None:
    rewrite(body, lambda case: case["measurement"].update(roundsMax=2))


def decided(world: World) -> Any:
    world.cluster.list_into(world.store)
    return next_for(PLAN, world.observed(), at=world.cluster.now, attempts=(world.attempt,))


@pytest.mark.parametrize("where", ["the Job", "the pod"])
def test_a_case_that_a_user_changes_ends_at_once_and_names_the_change(world: World, where: str) -> None:
    if where == "the pod":
        world.cluster.start_pods()
        halve_rounds(world.cluster.pods[ATTEMPT.job])
    else:
        world.cluster.hold(ATTEMPT.job)
        halve_rounds(world.cluster.jobs[ATTEMPT.job]["spec"]["template"])
    assert [type(action) for action in decided(world).actions] == [Collect]
    world.do(Collect(world.attempt, ALL_RETRIES))

    decision = decided(world)
    (attempt,) = decision.status.attempts
    assert (attempt.finished, attempt.reason) == (True, "CaseChanged")
    assert "measurement.roundsMax is 2 instead of 20" in message(decision)
    assert [type(action) for action in decision.actions] == [DeleteJob]


def test_an_equal_case_in_another_notation_continues(world: World) -> None:
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    for body in (world.cluster.jobs[ATTEMPT.job]["spec"]["template"], world.cluster.pods[ATTEMPT.job]):
        rewrite(body, lambda case: case.pop("comparisonsInRun"))
    assert [type(action) for action in decided(world).actions] == [Collect]
    world.do(Collect(world.attempt, ALL_RETRIES))
    assert decided(world).actions == ()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.do(Collect(world.attempt, ALL_RETRIES))
    assert len(world.cluster.results) == 1


def test_a_job_that_was_changed_back_before_it_was_examined_continues(world: World) -> None:
    job = world.cluster.jobs[ATTEMPT.job]
    original = copy.deepcopy(job)
    halve_rounds(job["spec"]["template"])
    world.cluster.list_into(world.store)
    observed = world.observed()
    job["spec"] = original["spec"]
    world.do(Collect(world.attempt, ALL_RETRIES), observed)
    assert world.failures() == []
    assert decided(world).actions == ()


@pytest.mark.parametrize("how", ["whole", "variant-failed", "out-of-memory", "interrupted"])
def test_a_pod_that_ran_another_program_delivers_no_result(world: World, how: str) -> None:
    world.cluster.start_pods()
    world.cluster.pods[ATTEMPT.job]["spec"]["containers"][0]["image"] = "attacker"
    world.cluster.end(ATTEMPT.job, how)
    world.cluster.list_into(world.store)
    world.do(Collect(world.attempt, ALL_RETRIES))
    assert world.failures() == ["CaseChanged"]
    assert not world.cluster.results


def test_a_result_counts_only_while_its_pod_shows_what_it_ran(world: World) -> None:
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    pod = world.cluster.pods[ATTEMPT.job]
    log = world.cluster.logs[pod["metadata"]["uid"]]
    pod["metadata"]["uid"] = "another"  # deleted, and another has taken its name
    world.cluster.logs["another"] = log
    world.do(Collect(world.attempt, ALL_RETRIES))
    (result,) = world.cluster.results.values()
    assert not result["result"]["complete"]
    assert "verdict" not in result["result"]["comparisons"][0]


def test_a_restarted_operator_knows_the_cases_of_its_jobs() -> None:
    with simulated() as world:
        world.apply({"sizes": (64,), "labels": {labels.QUEUE: "team-a"}})
        seen: list[Any] = []

        def attack(_: str, version: Any, __: Any) -> None:
            """Change the Job in its queue, once its UID is recorded, while no operator is there."""
            jobs = world.server.all("jobs")
            attempts = (version.manifest.get("status") or {}).get("attempts") or ()
            if version.id.plural == "benchmarkruns" and jobs and attempts and attempts[0].get("jobUid") and not seen:
                seen.append(jobs[0])
                world.time.later(0.0, lambda: world.kill(0, 5.0))
                id_ = Id("jobs", jobs[0]["metadata"]["namespace"], jobs[0]["metadata"]["name"])
                world.server.change(id_, jobs[0]["metadata"]["uid"], lambda job: halve_rounds(job["spec"]["template"]))

        world.server.changed.append(attack)
        world.passes(600.0)
        (run,) = world.server.all("benchmarkruns")
        assert seen[0]["spec"]["suspend"]
        assert [attempt.reason for attempt in read_status(run).attempts] == ["CaseChanged"]
        assert read_status(run).phase == "CaseFailed"
        assert not world.server.all("benchmarkresults")

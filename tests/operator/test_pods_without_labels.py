"""A user can remove the labels of a run's pod: the watch then reports it as deleted although it still runs."""

from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.reasons import AttemptReason
from accelbench_operator.runs.actions import Collect, ConfirmFailure, ReadPods
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.memory import BETWEEN_READS, MAXIMUM_PODS
from accelbench_operator.runs.observed import observe_pod
from operator_world.api_server import Id, Manifest
from operator_world.applying import ATTEMPT, CREATE, PLAN, World
from operator_world.builders import NAMESPACE
from operator_world.decisions import message, next_for
from operator_world.nodes import Fate
from operator_world.world import World as WholeWorld
from operator_world.world import simulated


@pytest.fixture
def world() -> World:
    world = World()
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    world.observed()
    return world


def take_labels_off(world: World) -> Manifest:
    """Remove all labels of ours from the pod, and let the watch report it as deleted."""
    pod: Manifest = world.cluster.pods[ATTEMPT.job]
    pod["metadata"]["labels"] = {}
    world.store.remove("Pod", (NAMESPACE, pod["metadata"]["name"]))
    return pod


def decided(world: World, **attempt: Any) -> Any:
    return next_for(PLAN, world.observed(), at=world.cluster.now, attempts=(world.attempt.model_copy(update=attempt),))


def act(world: World, decision: Any) -> None:
    for action in decision.actions:
        world.do(action)


def test_the_case_continues_and_its_pod_is_read_at_intervals(world: World) -> None:
    take_labels_off(world)
    first = decided(world)
    assert [type(action) for action in first.actions] == [ReadPods]
    act(world, first)
    later = decided(world)
    assert (later.actions, later.status.phase) == ((), "Running")
    assert later.requeue_at == world.cluster.now + BETWEEN_READS


def test_its_result_is_taken_when_it_has_ended(world: World) -> None:
    take_labels_off(world)
    act(world, decided(world))
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.jobs[ATTEMPT.job]["status"].pop("conditions")  # the pod alone shows it
    world.cluster.advance(BETWEEN_READS)
    act(world, decided(world))
    assert [type(action) for action in decided(world).actions] == [Collect]
    act(world, decided(world))
    assert len(world.cluster.results) == 1


def test_a_pod_that_was_really_deleted_is_forgotten_after_one_read(world: World) -> None:
    take_labels_off(world)
    del world.cluster.pods[ATTEMPT.job]
    act(world, decided(world))
    assert world.observed().pods == {}
    assert "has no pod yet" in message(decided(world), "Finished")


def test_another_pod_of_its_name_is_not_taken_for_it(world: World) -> None:
    take_labels_off(world)["metadata"]["uid"] = "another"
    act(world, decided(world))
    assert world.observed().pods == {}


def test_the_next_attempt_waits_for_a_pod_without_labels_and_without_owner(world: World) -> None:
    pod = take_labels_off(world)
    pod["metadata"]["ownerReferences"] = []  # as `kubectl delete job --cascade=orphan` leaves it
    between = {"job": "", "job_uid": None, "reason": "JobDeleted", "message": "gone", "retries": 1}
    attempt = world.attempt
    world.cluster.server.objects.pop(Id("jobs", NAMESPACE, ATTEMPT.job))
    world.store.remove("Job", (NAMESPACE, ATTEMPT.job))

    def next_step() -> Any:
        return next_for(PLAN, world.observed(), at=world.cluster.now, attempts=(attempt.model_copy(update=between),))

    act(world, next_step())
    held = next_step()
    assert held.actions == ()
    assert "has not ended yet" in message(held, "Finished")
    world.cluster.server.objects.pop(Id("pods", NAMESPACE, pod["metadata"]["name"]))
    world.cluster.advance(BETWEEN_READS)
    act(world, next_step())
    assert next_step().status.attempts[0].number == 2


def test_a_pod_that_lost_the_label_of_the_job_controller_alone_is_found_by_its_name(world: World) -> None:
    del world.cluster.pods[ATTEMPT.job]["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    world.do(ConfirmFailure(world.attempt, AttemptFailure(AttemptReason.NODE_LOST, "gone")))
    assert world.failures() == ["NodeLost"]  # and not that there is no pod


def test_the_number_of_remembered_pods_is_bounded(world: World) -> None:
    pod = world.cluster.pods[ATTEMPT.job]
    for number in range(50):
        metadata = pod["metadata"] | {"name": f"copy-{number}", "uid": f"copy-{number}"}
        world.cluster.server._store("ADDED", Id("pods", NAMESPACE, f"copy-{number}"), pod | {"metadata": metadata})
    since = world.store.tick
    for body in world.cluster.server.all("pods"):
        world.store.put(observe_pod(body))
    world.observed()
    world.store.replace("Pod", None, [], since)
    assert len(world.observed().next_reads) == MAXIMUM_PODS


def strip_first_pod(world: WholeWorld, then: Any = None) -> list[str]:
    """Remove the label that the watch selects by from the first pod that runs."""
    stripped: list[str] = []

    def strip(_: str, version: Any, __: Any) -> None:
        if version.id.plural != "pods" or stripped or (version.manifest.get("status") or {}).get("phase") != "Running":
            return
        stripped.append(version.uid)
        world.time.later(1.0, lambda: world.server.change(version.id, version.uid, _unlabel))
        # A list does without it, as a watch does.
        world.time.later(2.0, world.expire)
        if then:
            world.time.later(30.0, then)

    world.server.changed.append(strip)
    return stripped


def _unlabel(pod: Manifest) -> None:
    del pod["metadata"]["labels"][labels.MANAGED_BY]


def test_a_run_whose_pod_lost_its_labels_is_measured_once() -> None:
    with simulated(fates=[Fate(4.0, 400.0, "whole")]) as world:
        stripped = strip_first_pod(world)
        world.apply({"sizes": (64,), "runPolicy": {"startDeadlineSeconds": 60}})
        world.passes(900.0)
        (run,) = world.server.all("benchmarkruns")
        assert stripped
        assert (read_status(run).phase, read_status(run).attempts) == ("Succeeded", ())


def orphan(world: WholeWorld) -> None:
    """Delete the Job and orphan its pod."""
    ((job, version),) = [(id_, version) for id_, version in world.server.objects.items() if id_.plural == "jobs"]
    ((pod, owned),) = [(id_, version) for id_, version in world.server.objects.items() if id_.plural == "pods"]
    world.server.change(pod, owned.uid, lambda body: body["metadata"].update(ownerReferences=[]))
    world.server._owned.pop(version.uid)
    world.server.delete(job, version.uid)


@pytest.mark.parametrize("has_labels", [True, False])
def test_no_attempt_begins_while_a_pod_that_its_job_left_behind_still_runs(*, has_labels: bool) -> None:
    with simulated(fates=[Fate(4.0, 200.0, "whole")]) as world:
        if has_labels:
            world.time.later(30.0, lambda: orphan(world))
        else:
            strip_first_pod(world, then=lambda: orphan(world))
        world.apply({"sizes": (64,)})
        world.passes(900.0)  # a law is that no two pods of a case run at once
        (run,) = world.server.all("benchmarkruns")
        assert read_status(run).phase == "Succeeded"
        (result,) = world.server.all("benchmarkresults")
        assert result["result"]["case"]["origin"]["attempt"] == 2

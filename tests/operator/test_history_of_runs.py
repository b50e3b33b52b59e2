"""The newest finished runs of a schedule stay; a run with a fixed name always stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs.history import RunHistory
from accelbench_operator.runs.retention import PERIOD_SECONDS
from accelbench_operator.settings import read_settings
from operator_world.builders import SETTINGS, run_manifest
from operator_world.world import simulated

FINISHED = {"type": "Finished", "status": "True"}


def record(history: RunHistory, day: int, name: str | None = None, **fields: Any) -> Key:
    """Add a run that finished on that day to the history; return its key."""
    given = {"namespace": "team", "generateName": "nightly-", "generation": 1, "resourceVersion": f"{day}00"} | fields
    metadata = {"name": name or f"nightly-{day:05}", "uid": f"uid-{name or day}", **given}
    metadata["creationTimestamp"] = f"2026-03-{day:02d}T02:00:00Z"
    status = {"observedGeneration": 1, "conditions": [FINISHED]}
    run = {"metadata": {name: value for name, value in metadata.items() if value}, "spec": {}, "status": status}
    key = Key.of("BenchmarkRun", run)
    history.record(key, run)
    return key


def owned_by(uid: str) -> list[dict[str, Any]]:
    """Return the owner references of a run that a schedule controls."""
    return [{"apiVersion": "example.com/v1", "kind": "Schedule", "name": "s", "uid": uid, "controller": True}]


def test_the_newest_runs_of_each_generated_name_namespace_and_controller_stay() -> None:
    history = RunHistory(2)
    runs = [record(history, day) for day in (3, 1, 4, 2)]
    for day in (1, 2):
        record(history, day, f"weekly-{day:05}", generateName="weekly-")
        record(history, day, f"nightly-gpu-{day:05}", generateName="nightly-gpu-")
        record(history, day, namespace="other")
        record(history, day, f"nightly-1{day:04}", ownerReferences=owned_by("another"))
    assert history.beyond_limit() == (runs[1], runs[3])


def test_among_runs_that_finished_in_one_second_the_choice_does_not_depend_on_names() -> None:
    history = RunHistory(1)
    record(history, 1, "nightly-aaaaa", uid="uid-2")
    older = record(history, 1, "nightly-bbbbb", uid="uid-1")
    assert history.beyond_limit() == (older,)


@pytest.mark.parametrize(
    "fields",
    [
        {"generateName": None},
        {"name": "nightly-before-the-upgrade"},
        {"name": "release-00001"},
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        {"annotations": {"argocd.argoproj.io/tracking-id": "team:accelbench.dev/BenchmarkRun:team/nightly-00001"}},
        {"labels": {"kustomize.toolkit.fluxcd.io/name": "benchmarks"}},
        {"annotations": {"helm.sh/resource-policy": "keep"}},
        {"annotations": {"argocd.argoproj.io/sync-options": "Replace=true, Prune=false"}},
        {"annotations": {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/sync-options": "Delete=false"}},
    ],
)
def test_a_run_that_may_be_in_git_or_is_marked_to_be_kept_is_never_deleted(fields: Any) -> None:
    history = RunHistory(1)
    kept = record(history, 1, **fields)
    deleted = record(history, 2)
    record(history, 3)
    assert history.beyond_limit() == (deleted,)
    assert history.version(kept) is None


def test_a_run_that_argo_cd_makes_for_each_sync_is_limited_though_it_is_tracked() -> None:
    history = RunHistory(1)
    hook = {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/tracking-id": "app:..."}
    hooks = [record(history, day, f"nightly-abc1234-postsync-{day}", annotations=hook) for day in (1, 2)]
    assert history.beyond_limit() == (hooks[0],)


def test_an_unfinished_or_corrected_run_is_neither_counted_nor_deleted() -> None:
    history = RunHistory(1)
    for day in (1, 2):
        record(history, day)
    record(history, 1, generation=2)
    assert history.beyond_limit() == ()


def test_a_deleted_run_is_forgotten() -> None:
    history = RunHistory(1)
    for key in [record(history, day) for day in (1, 2)]:
        history.forget(key)
    record(history, 3)
    assert history.beyond_limit() == ()


def test_without_a_limit_every_run_stays() -> None:
    history = RunHistory(read_settings({"ACCELBENCH_RUNNER_IMAGE": "runner:1"}).history_limit)
    for day in range(1, 29):
        record(history, day)
    assert history.beyond_limit() == ()


def test_the_operator_deletes_the_oldest_runs_and_keeps_their_results() -> None:
    def names(plural: str) -> list[str]:
        return sorted(manifest["metadata"]["name"] for manifest in world.server.all(plural))

    with simulated(settings=replace(SETTINGS, history_limit=2)) as world:
        for number in range(4):
            run = run_manifest()
            run["metadata"] |= {"name": f"nightly-{number:05}", "generateName": "nightly-"}
            world.server.create("benchmarkruns", run)
            world.passes(PERIOD_SECONDS / 5)
        world.apply({})
        world.finish()
        world.passes(PERIOD_SECONDS)
        assert names("benchmarkruns") == ["nightly-00002", "nightly-00003", "run-0"]
        assert len(names("benchmarkresults")) == 5


def test_a_run_that_somebody_changes_before_it_is_deleted_stays() -> None:
    """The watch is behind, so only the version in the deletion shows that the run has changed since it finished."""
    with simulated(settings=replace(SETTINGS, history_limit=1)) as world:
        for number in range(2):
            run = run_manifest()
            run["metadata"] |= {"name": f"nightly-{number:05}", "generateName": "nightly-"}
            world.server.create("benchmarkruns", run)
            world.passes(PERIOD_SECONDS / 5)
        world.lag("benchmarkruns", 10 * PERIOD_SECONDS)
        world.passes(PERIOD_SECONDS / 2 - 1)
        for id_, version in [entry for entry in world.server.objects.items() if entry[0].plural == "benchmarkruns"]:
            world.server.change(id_, version.uid, lambda run: run["metadata"].update(annotations={"keep": "me"}))
        world.passes(PERIOD_SECONDS)
        assert len(world.server.all("benchmarkruns")) == 2

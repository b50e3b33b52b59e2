"""Of the finished runs that a schedule makes, the newest stay; a run with a name of its own always stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs.history import RunHistory
from accelbench_operator.runs.retention import PERIOD_SECONDS
from accelbench_operator.settings import read_settings
from operator_world.builders import SETTINGS, run_manifest
from operator_world.world import simulated

FINISHED = {"type": "Finished", "status": "True"}


def record(history: RunHistory, day: int, name: str | None = None, **fields: Any) -> Key:
    """Show the history a run of that day that has finished; return its key."""
    given = {"namespace": "team", "generateName": "nightly-", "generation": 1} | fields
    metadata = {"name": name or f"nightly-{day}", "uid": f"uid-{name or day}", **given}
    metadata["creationTimestamp"] = f"2026-03-{day:02d}T02:00:00Z"
    status = {"observedGeneration": 1, "conditions": [FINISHED]}
    run = {"metadata": {name: value for name, value in metadata.items() if value}, "spec": {}, "status": status}
    key = Key.of("BenchmarkRun", run)
    history.record(key, run)
    return key


def test_the_newest_of_each_generated_name_and_namespace_stay() -> None:
    history = RunHistory(2)
    runs = [record(history, day) for day in (3, 1, 4, 2)]
    for day in (1, 2):
        record(history, day, f"weekly-{day}", generateName="weekly-")
        record(history, day, namespace="other")
    assert history.beyond_limit() == (runs[1], runs[3])


def test_a_run_that_may_be_in_git_is_never_deleted() -> None:
    history = RunHistory(1)
    for day in (1, 2, 3):
        record(history, day, f"run-{day}", generateName=None)
    assert history.beyond_limit() == ()


def test_a_run_that_has_not_finished_or_is_corrected_neither_counts_nor_goes() -> None:
    history = RunHistory(1)
    for day in (1, 2):
        record(history, day)
    record(history, 1, generation=2)
    assert history.beyond_limit() == ()


def test_a_run_that_is_gone_is_forgotten() -> None:
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
            run["metadata"] |= {"name": f"nightly-{number}", "generateName": "nightly-"}
            world.server.create("benchmarkruns", run)
            world.passes(PERIOD_SECONDS / 5)
        world.apply({})
        world.finish()
        world.passes(PERIOD_SECONDS)
        assert names("benchmarkruns") == ["nightly-2", "nightly-3", "run-0"]
        assert len(names("benchmarkresults")) == 5

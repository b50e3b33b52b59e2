"""All runs together take bounded memory, even if they are many or large, and every run is measured."""

import asyncio
import logging
import tracemalloc
from collections.abc import Iterator

import pytest

from accelbench.api.profiles import Profiles
from accelbench.api.result import Certificate, Check
from accelbench.api.run import MAXIMUM_SPEC_BYTES
from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.store import Store
from accelbench_operator.runs import known
from accelbench_operator.runs.accept import Plan, Refused, accept
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import observe_pod
from accelbench_operator.runs.reconcile import Reconciler
from accelbench_operator.runs.summary import summarize
from operator_world.builders import (
    IMAGE,
    NAMESPACE,
    SETTINGS,
    UID,
    large_run,
    make_plan,
    make_result,
    run_manifest,
)
from operator_world.churn import OPERATOR
from operator_world.played import PlayedCluster
from operator_world.world import simulated

MEBIBYTE = 1024 * 1024


def test_a_spec_that_is_too_large_is_refused_with_its_largest_field() -> None:
    assert isinstance(accept(large_run(1), Profiles(), IMAGE), Plan)
    refused = accept(large_run(1, text=256), Profiles(), IMAGE)
    assert isinstance(refused, Refused)
    assert refused.message.startswith("spec.variants: 67 KiB, and the whole spec has 85 KiB of JSON, at most 64 KiB; ")


def test_a_plan_costs_its_spec_and_the_names_of_its_cases() -> None:
    run = large_run(1, labels={f"example.com/{number}": "x" * 63 for number in range(1000)})
    run["metadata"]["annotations"] = {"example.com/notes": "x" * 200_000}
    accept(run, Profiles(), IMAGE)  # imports the catalogue
    tracemalloc.start()
    try:
        plan = accept(known.needed_fields(run), Profiles(), IMAGE)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(plan, Plan)
    assert held < MAXIMUM_SPEC_BYTES + 256 * 200


@pytest.fixture
def traced(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL)  # pytest keeps what is logged
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("reconciles", [True, False], ids=["leading", "following"])
def test_suspended_runs_of_the_largest_spec_share_a_bound(
    traced: None, reconciles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "MAXIMUM_RUN_BYTES", MEBIBYTE)
    monkeypatch.setattr(known, "MAXIMUM_EVENT_BYTES", MEBIBYTE)
    cluster = PlayedCluster(run_manifest(), lambda: "")
    objects = RunObjects(Store())
    operator = Reconciler(cluster, objects, Applier(cluster, objects, cluster.clock), SETTINGS, cluster.clock)
    for number in range(100):
        stored = cluster.server.create("benchmarkruns", large_run(number)).manifest
        key = Key.of("BenchmarkRun", stored)
        assert operator.changed(key, stored)
        if reconciles:
            asyncio.run(operator.reconcile(key))
            assert operator.phases[key] == "Suspended"
    held = sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(OPERATOR).statistics("filename"))
    assert held < 3 * MEBIBYTE


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_operator_that_can_remember_no_run_measures_each(replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "MAXIMUM_RUN_BYTES", 0)
    monkeypatch.setattr(known, "MAXIMUM_EVENT_BYTES", 0)
    with simulated(seed=1, replicas=replicas) as world:
        for number in range(12):
            world.apply({"sizes": (64, 128), "runPolicy": {"suspend": number % 3 == 0}})
            world.passes(30.0)
        world.heal()
        world.finish()
        world.empty()
    assert world.laws.broken == []


def test_what_is_stored_of_a_pod_has_a_bound() -> None:
    long = "x" * 100_000
    containers = [{"name": f"sidecar-{number}", "state": {"running": {}}} for number in range(1000)]
    terminated = {"exitCode": 1, "reason": long, "message": long}
    pod = {
        "metadata": {"name": "p", "namespace": NAMESPACE, "creationTimestamp": "2026-03-01T12:00:00Z"},
        "spec": {"containers": [{"name": "runner", "image": long}]},
        "status": {
            "reason": long,
            "message": long,
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Evicted", "message": long}],
            "containerStatuses": [{"name": "runner", "state": {"terminated": terminated}}, *containers],
        },
    }
    assert len(repr(observe_pod(pod))) < 12_000


def test_what_is_stored_of_a_result_has_a_bound() -> None:
    long = "x" * 10_000
    plan = make_plan()
    result = make_result(plan.cases[0])
    (comparison,) = result.comparisons
    check = Check(name=long, outcome="failed", reading=long)
    hostile = result.model_copy(
        update={
            "unit": long,
            "complete": False,
            "notes": (long,),
            "comparisons": (comparison.model_copy(update={"sentence": long, "baseline": long}),) * 1000,
            "certificate": Certificate(checks=(check,) * 1000),
            "variants": result.variants * 1000,
        }
    )
    summary = summarize(hostile, Key("BenchmarkResult", NAMESPACE, "r", "u"), UID, (), None)
    assert len(summary.comparisons) == 1
    assert len(repr(summary)) < 12_000

"""One tenant makes 200 attempts to change another's results, which stay those of its own pods."""

from itertools import cycle, islice, repeat

import pytest

from accelbench.api import labels
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.status import finished_at
from operator_world.builders import run_manifest
from operator_world.hostile import HONEST, PATCHES, Hostile
from operator_world.nodes import Fate
from operator_world.world import World, simulated
from tiers import on_a_push

TRIES = 200
RUNS = 10
HEADLINE = "jax/jit faster in 2 of 2, 2.00x"


def apply_honest_run(world: World, number: int) -> None:
    policy = {"activeDeadlineSeconds": 3600, "startDeadlineSeconds": 3600, "infrastructureRetries": 5}
    run = run_manifest(sizes=(64, 128), series="honest", runPolicy=policy)
    run["metadata"] |= {"name": f"honest-{number}", "namespace": HONEST}
    world.server.create("benchmarkruns", run)


@pytest.mark.slow
@pytest.mark.parametrize("seed", on_a_push(range(12), lambda seed: seed < 1))
def test_a_hostile_tenants_day_changes_no_result_of_another(seed: int) -> None:
    # Of the pods some are evicted, so that there are further attempts.
    fates = [Fate(4.0, 30.0, how) for how in ("whole", "whole", "evicted")]
    with simulated(seed=seed, fates=islice(cycle(fates), 20 * TRIES)) as world:
        hostile = Hostile(world, seed)
        for number in range(TRIES):
            if number % (TRIES // RUNS) == 0:
                apply_honest_run(world, number)
            hostile.attack()
            world.passes(world.random.uniform(0.0, 10.0))
        world.passes(4 * 3600.0)

        runs = [run for run in world.server.all("benchmarkruns") if run["metadata"]["name"].startswith("honest")]
        assert len(runs) == RUNS
        for run in runs:
            status = read_status(run)
            assert finished_at(status), status
            assert (status.phase, status.cases.measured) == ("Succeeded", 2), status
            assert status.headline == HEADLINE
        uids = {run["metadata"]["uid"] for run in runs}
        results = [
            result
            for result in world.server.all("benchmarkresults")
            if result["metadata"]["labels"][labels.RUN_UID] in uids
        ]
        assert len(results) == 2 * RUNS
        assert {result["result"]["comparisons"][0]["speedup"] for result in results} == {"2"}
        assert not any(result["summary"]["pod"].startswith("hostile") for result in results)
        (replica,) = world.replicas
        assert replica._lives == 1
        assert sum(hostile.tries.values()) >= TRIES // 2, hostile.tries


@pytest.mark.slow
@pytest.mark.parametrize("seed", on_a_push(range(8), lambda seed: seed < 1))
def test_a_user_who_may_patch_jobs_and_pods_cannot_store_a_result_of_another_case(seed: int) -> None:
    policy = {"startDeadlineSeconds": 1800}
    with simulated(seed=seed, fates=repeat(Fate(20.0, 60.0, "whole"))) as world:
        hostile = Hostile(world, seed, PATCHES)
        for number in range(TRIES):
            if number % (TRIES // RUNS) == 0:
                run = run_manifest(sizes=(64,), series="honest", labels={labels.QUEUE: "team-a"}, runPolicy=policy)
                run["metadata"] |= {"name": f"honest-{number}", "namespace": HONEST}
                world.server.create("benchmarkruns", run)
            hostile.attack()
            world.passes(world.random.uniform(0.0, 10.0))
        world.passes(2 * 3600.0)

        runs = [read_status(run) for run in world.server.all("benchmarkruns")]
        assert all(finished_at(status) for status in runs), runs
        assert {status.headline for status in runs} <= {"", "jax/jit faster 2.00x (1.90 to 2.10)"}
        reasons = {attempt.reason for status in runs for attempt in status.attempts}
        # A pod without its labels is not seen: if its Job fails then, the pod counts as deleted.
        assert reasons <= {"CaseChanged", "StartDeadlineExceeded", "PodLost"}, reasons
        assert "CaseChanged" in reasons
        results = world.server.all("benchmarkresults")
        assert {result["result"]["comparisons"][0]["speedup"] for result in results} == {"2"}
        assert hostile.tries["change_case"]
        assert hostile.tries["take_labels_off"]

"""One tenant tries 200 things against another, whose results are what its own pods measured."""

from itertools import cycle, islice

import pytest

from accelbench.api import labels
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.status import finished_at
from operator_world.builders import run_manifest
from operator_world.hostile import HONEST, Hostile
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
@pytest.mark.parametrize("seed", on_a_push(range(12), lambda seed: seed < 2))
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

"""The series of a run end with the run; those of its results end with the results."""

import re

from metrics.serving import text_of
from operator_world.nodes import Fate
from operator_world.world import World, simulated

SECONDS = 60.0
HOURS = Fate(4.0, 7200.0, "whole")
LIVE = {"accelbench_runs", "accelbench_run_cases", "accelbench_live_rounds"}
OF_A_RESULT = {"accelbench_run_info", "accelbench_result_valid"}
GOES, STAYS = 'namespace="team-0"', 'namespace="team-1"'
"""Every second run that a world applies is in the one namespace, every other in the other."""


def exported(world: World, having: str) -> set[str]:
    """Return the names of metrics that have a series with that label."""
    (operator,) = world.operators()
    return set(re.findall(rf"^(accelbench_\w+){{[^}}]*\b{having}", text_of(operator.snapshot()), re.MULTILINE))


def test_a_run_that_is_deleted_while_it_is_measured_leaves_no_series() -> None:
    with simulated(fates=[HOURS] * 4) as world:
        world.apply({})
        world.apply({})
        world.passes(5 * SECONDS)
        assert exported(world, GOES) >= LIVE
        world.delete("benchmarkruns", 0)
        world.passes(5.0)
        assert exported(world, GOES) == set()
        assert exported(world, STAYS) >= LIVE


def test_results_outlive_the_run_that_measured_them() -> None:
    with simulated() as world:
        world.apply({})
        world.apply({})
        world.finish()
        assert exported(world, GOES) >= {"accelbench_runs", *OF_A_RESULT}
        assert not exported(world, GOES) & (LIVE - {"accelbench_runs"})
        world.delete("benchmarkruns", 0)
        world.passes(SECONDS)
        of_results = exported(world, GOES)
        assert of_results >= OF_A_RESULT
        assert "accelbench_runs" not in of_results
        # Which result was stored first depends on how long the operator's requests took.
        stored = [id_.namespace for id_ in world.server.objects if id_.plural == "benchmarkresults"]
        world.delete("benchmarkresults", stored.index("team-0"))
        world.passes(SECONDS)
        assert exported(world, GOES) == set()
        assert exported(world, STAYS) >= {"accelbench_runs", *of_results}

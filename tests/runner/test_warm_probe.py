"""Test that the first rounds start every variant once more with the caches of its launch."""

from collections.abc import Callable

import pytest

from runner.simulation import LAUNCH_SECONDS, Simulation
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


def test_the_minimum_number_of_rounds_has_warm_probes(simulate: Simulation) -> None:
    ended = simulate(case_of("compiles", "compiles_2", rounds=4))
    probed = [(launch.round, launch.variant) for launch in ended.launches if launch.warm]
    assert sorted(probed) == [(number, variant) for number in (1, 2) for variant in ("compiles", "compiles_2")]
    warm = {phase.phase: phase.median_seconds for phase in ended.variant("compiles").warm_phases}
    assert warm == {"compile": "0.002", "first-step": "0.001"}
    assert float(ended.result.overhead["warm-probe"]) == 4 * LAUNCH_SECONDS


@pytest.mark.parametrize("other", ["raises", "fine"])
def test_variants_that_failed_or_compile_nothing_have_no_warm_probe(simulate: Simulation, other: str) -> None:
    ended = simulate(case_of("compiles", other))
    assert [launch.variant for launch in ended.launches if launch.warm] == ["compiles", "compiles"]


def test_a_warm_probe_uses_the_caches_of_its_own_launch(run: Run) -> None:
    ended = run(case_of("fine", "leaves-a-cache"))
    left = {(launch["round"], launch["variant"]): launch["warm"]["cache"] for launch in ended.launches}
    for number in (1, 2):
        assert left[number, "leaves-a-cache"] == {"hits": 1, "misses": 0, "before": 0}
        assert left[number, "fine"] == {"hits": 0, "misses": 1, "before": 0}
    assert ended.variant("fine").warm_phases == ()  # what it took is not what a cache answers

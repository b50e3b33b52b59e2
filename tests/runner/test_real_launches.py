"""The whole of a case with the real launch and the real judge: JAX against PyTorch on real arrays."""

import sys
from collections.abc import Callable

import pytest

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant
from runner.supervision import Supervised

LAUNCH = [sys.executable, "-m", "accelbench_runner.launch"]


@pytest.fixture
def case() -> Case:
    return Case(
        name="all",
        origin=CaseOrigin(run="real", series="real"),
        workload="matmul-chain",
        parameters={"size": 32, "length": 4},
        variants=(
            CaseVariant(name="pytorch/eager", use="pytorch/eager"),
            CaseVariant(name="jax/jit", use="jax/jit"),
            CaseVariant(name="jax/nonsense", use="jax/jit", options={"nonsense": 1}),
        ),
        baseline="pytorch/eager",
        measurement=CaseMeasurement(rounds_min=2, rounds_max=2, time_limit_seconds=40),
    )


def test_two_frameworks_are_measured_judged_and_delivered_and_a_bad_variant_is_named(
    start: Callable[..., Supervised], case: Case
) -> None:
    ended = start(case, launch=LAUNCH, judge_command=[sys.executable, "-m", "accelbench_runner.judge"]).end(280)
    assert ended.status == 0, ended.output.decode()[-3000:]
    result = ended.result
    assert result.complete
    measured = result.rounds + len(result.quarantined)
    assert result.rounds == 2 or result.stopped == "time-limit"
    comparison = result.comparisons[0]
    assert comparison.variant == "jax/jit"
    assert comparison.speedup is not None or comparison.invalid
    assert {"import", "compile", "steady"} <= {phase.phase for phase in result.variants[1].phases}
    assert ended.variant("jax/nonsense").failure is not None
    assert {"version.jax", "version.torch", "workloadSource"} <= result.fingerprint.keys()
    assert {"parameter.length", "precision", "seed"} <= result.fingerprint.keys()
    parity = [launch["parity"] for launch in ended.launches if not launch.get("failure")]
    assert len(parity) == 2 * measured
    assert all(reading["worstRatio"] <= 1 for reading in parity)

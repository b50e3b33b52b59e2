"""Make cases and launches as the supervisor passes them to the judge."""

from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench.api.result import Failure, FailureReason
from accelbench.launch.facts import Facts
from accelbench.launch.record import Block, LaunchRecord, ParityReading, UnseenReading

BASELINE = "pytorch/eager"
VARIANT = "jax/jit"
OTHER = "pytorch/compile"
GOOD_FACTS: dict[str, Any] = {
    "device": {"platform": "cpu", "name": "a processor", "count": 1},
    "threads": {"requested": 2, "affinity": 2, "framework": 2},
    "precision": {
        "policy": "float32",
        "dtype": "float32",
        "matmul": {"mkldnn.matmul": "ieee"},
        "flush_denormal": True,
    },
    "inputsDigest": "a" * 64,
    "parityUnits": 100,
    "recompilations": 0,
    "recompilationCauses": [],
    "clock": {"resolution_seconds": 5e-8},
    "operations": {
        "declared": {"products": 4, "convolutions": 0},
        "found": {"products": 4, "convolutions": 0},
        "source": "the operations dispatched",
    },
    "throttling": {"periods": 0, "seconds": 0.0, "steal_seconds": 0.0},
    "neighbours": {"busy_seconds": 0.01, "offered_seconds": 2.0},
    "emulated": "",
    "synchronisation": {"runs": [{"seconds": 0.02, "late_seconds": 0.0}], "ready": True},
    "gradients": {"wanted": False, "found": "off"},
    "dependence": {
        "units": 4,
        "seen": {"dot": 4},
        "dispatched": {"dot": 4},
        "again": [{"dot": 4}, {"dot": 8}, {"dot": 12}, {"dot": 16}],
        "replay": None,
    },
    "formula": {"units": 2, "types": ["float64"]},
    "flopsPerUnit": 1e6,
    "bytesPerUnit": 1e6,
    "limits": {"flops_per_second": 1e11, "bytes_per_second": 1e10},
    "workingSet": {"bytes": 1_000_000, "cache_bytes": 100_000},
}
GOOD_UNSEEN = ParityReading(units=4, finite=True, worst_ratio=0.1, worst_array="x", detail="x[0]: error 0.1")
GOOD_PARITY = ParityReading(
    units=100,
    finite=True,
    worst_ratio=0.2,
    worst_array="x",
    detail="x[0]: error 0.2",
    formula=ParityReading(units=2, finite=True, worst_ratio=0.3, worst_array="x", detail="x[0]: error 1e-16"),
    unseen=UnseenReading(reading=GOOD_UNSEEN, changes=True),
)


def a_case(*variants: str, comparisons: int = 1, **measurement: Any) -> Case:
    names = variants or (BASELINE, VARIANT)
    return Case(
        name="all",
        origin=CaseOrigin(run="run", series="series"),
        workload="matmul-chain",
        parameters={"size": 8, "length": 4},
        variants=tuple(CaseVariant(name=name, use=name) for name in names),
        baseline=names[0],
        comparisons_in_run=comparisons,
        measurement=CaseMeasurement(**measurement),
    )


def a_launch(
    variant: str = VARIANT,
    number: int = 1,
    *,
    seconds: float = 0.01,
    facts: Mapping[str, Any] | None = None,
    parity: ParityReading | None = GOOD_PARITY,
    block_seconds: float = 0.02,
) -> LaunchRecord:
    steps = max(1, round(block_seconds / seconds))
    return LaunchRecord(
        variant=variant,
        round=number,
        position=0,
        wall_seconds=1.0,
        blocks=(Block(units=steps, seconds=seconds * steps),) * 10,
        facts={**GOOD_FACTS, **(facts or {})},
        parity=parity,
    )


def with_facts(launch: LaunchRecord, **facts: Any) -> LaunchRecord:
    """Return the launch with these facts added; None removes one."""
    values = launch.facts.model_dump(by_alias=True) | facts
    return launch.model_copy(update={"facts": Facts.parse(values, launch.unchecked)})


def a_failure(variant: str, number: int, reason: FailureReason = "OutOfMemory") -> LaunchRecord:
    failure = Failure(reason=reason, message="it failed", round=number, phase="steady")
    return LaunchRecord(variant=variant, round=number, position=0, wall_seconds=1.0, failure=failure)


def rounds_of(times: Mapping[str, Sequence[float]]) -> tuple[LaunchRecord, ...]:
    """Return one launch per variant and round; `times` gives each variant's seconds per unit by round."""
    return tuple(
        a_launch(variant, index + 1, seconds=seconds)
        for index in range(max(map(len, times.values())))
        for variant, values in times.items()
        for seconds in values[index : index + 1]
    )

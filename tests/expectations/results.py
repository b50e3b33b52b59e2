"""Results that expectations are held against."""

from decimal import Decimal
from typing import Any

from accelbench.api.numbers import Numbers
from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    Failure,
    LaunchSummary,
    PhaseTime,
    Quantiles,
    Result,
    VariantResult,
)
from accelbench.api.run import Expectation
from accelbench.verdict.expectations import evaluate
from judge.launches import BASELINE, VARIANT, a_case

CLEAN = Certificate(checks=(Check(name="parity", outcome="passed", reading="0.2"),))
NUMBERS = Numbers(
    units_per_call=4,
    products_per_call=100,
    kernels_per_call=7,
    program_size=1234,
    aliased_bytes=0,
    temporary_bytes=4096,
    accessed_bytes=8192,
    parity="0.25",
)
OUT_OF_MEMORY = Failure(reason="OutOfMemory", message="too large", round=3, phase="steady")


def a_comparison(**changes: Any) -> Comparison:
    found: dict[str, Any] = {"verdict": "faster", "speedup": "2.04", "lower": "1.99", "upper": "2.09"}
    return Comparison(
        variant=VARIANT,
        baseline=BASELINE,
        rounds=8,
        confidence="0.95",
        sentence="No complete round yet.",
        **(found | changes),
    )


def a_result(
    comparison: Comparison | None = None,
    *,
    failed: str | None = None,
    certificate: Certificate = CLEAN,
    measured: bool = True,
) -> Result:
    times = {f"{name}_seconds": "0.010" for name in ("geometric_mean", "p25", "median", "p75")}
    first_step = PhaseTime(phase="first-step", median_seconds="0.5", min_seconds="0.5", max_seconds="0.5")
    compiling = {VARIANT: "1.5", BASELINE: "0.6"}
    warm = PhaseTime(phase="compile", median_seconds="0.2", min_seconds="0.2", max_seconds="0.2")
    return Result(
        case=a_case(),
        complete=True,
        unit="step",
        started="2026-01-01T00:00:00Z",
        finished="2026-01-01T00:01:00Z",
        rounds=8,
        variants=tuple(
            VariantResult(
                name=name,
                use=name,
                failure=OUT_OF_MEMORY if name == failed else None,
                seconds=Quantiles(p5_seconds="0.0098", p95_seconds="0.0103", **times)
                if measured and name != failed
                else None,
                phases=(_compile(compiling[name]), first_step) if measured else (),
                warm_phases=(warm,) if measured else (),
                launches=tuple(
                    LaunchSummary(round=number, seconds="0.010", blocks=10, units_per_block=4) for number in range(1, 4)
                )
                if measured
                else (),
                numbers=NUMBERS.model_copy(update={"peak_memory_bytes": 300 if name == VARIANT else 400})
                if measured
                else Numbers(),
            )
            for name in (BASELINE, VARIANT)
        ),
        comparisons=() if comparison is None else (comparison,),
        certificate=certificate,
    )


def _compile(seconds: str) -> PhaseTime:
    """Of launches that took up to 0.1 s more or less where it is more than a second."""
    apart = Decimal("0.1") if Decimal(seconds) > 1 else 0
    ends = {"min_seconds": str(Decimal(seconds) - apart), "max_seconds": str(Decimal(seconds) + apart)}
    return PhaseTime(phase="compile", median_seconds=seconds, parts={"backend": seconds}, **ends)


def outcome_of(result: Result, metric: str = "speedup", variant: str = VARIANT, **bounds: str) -> tuple[str, str]:
    expectation = Expectation.model_validate({"metric": metric, "variant": variant, **bounds})
    (found,) = evaluate((expectation,), result)
    return found.outcome, found.sentence

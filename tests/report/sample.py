"""Results as a runner would deliver them: what the reports are tested on."""

from collections.abc import Sequence
from typing import Any

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench.api.numbers import Numbers
from accelbench.api.observation import Observation, Observations, ObservedValue
from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    Disturbed,
    Failure,
    LaunchSummary,
    OutlierCounts,
    Payback,
    PhaseTime,
    Quantiles,
    Result,
    Spread,
    VariantResult,
)

CROWDED = "Other processes used 52 % of the CPU (python, pid 1234: 49 %)"
USES = ("pytorch/eager", "jax/jit", "jax/op-by-op")
PHASE_SECONDS = {
    "import": "0.612",
    "device-init": "0.0841",
    "setup": "0.0312",
    "compile": "0.0634",
    "first-step": "0.118",
    "warm-up": "1.02",
    "steady": "3.41",
}


PAYS_BACK = {
    "jax/jit": Payback(
        answer="after", steps=1240, lower=1181, upper=1312, first_call_seconds="0.78", extra_seconds="0.739"
    ),
    "jax/op-by-op": Payback(answer="never", first_call_seconds="0.31", extra_seconds="0.27"),
}


def case(uses: Sequence[str] = USES, **changes: Any) -> Case:
    return Case(
        name="all",
        origin=CaseOrigin(run="matmul-chain", series="matmul-chain"),
        workload="matmul-chain",
        parameters={"size": 512, "length": 100},
        variants=tuple(CaseVariant(name=use, use=use) for use in uses),
        baseline=uses[0],
        comparisons_in_run=max(1, len(uses) - 1),
        measurement=CaseMeasurement(rounds_max=8),
    ).model_copy(update=changes)


def variant(use: str, seconds: str, *, spread: float = 0.004) -> VariantResult:
    median = float(seconds)
    return VariantResult(
        name=use,
        use=use,
        seconds=Quantiles(
            geometric_mean_seconds=seconds,
            p5_seconds=f"{median * (1 - spread):.9f}",
            p25_seconds=f"{median * (1 - spread / 2):.9f}",
            median_seconds=seconds,
            p75_seconds=f"{median * (1 + spread / 2):.9f}",
            p95_seconds=f"{median * (1 + spread):.9f}",
        ),
        phases=tuple(
            PhaseTime(phase=phase, median_seconds=took, min_seconds=took, max_seconds=took)
            for phase, took in PHASE_SECONDS.items()
        ),
        launches=tuple(LaunchSummary(round=n, seconds=seconds, blocks=20, units_per_block=100) for n in range(1, 7)),
        spread=Spread(
            block_outliers=OutlierCounts(of=120, high_mild=2, high_severe=1),
            launch_outliers=OutlierCounts(of=6),
            between_launches="0.62",
            effective_blocks="17.4",
        ),
        numbers=Numbers(
            flops_per_unit="268435456",
            flops_per_second="230000000000",
            bytes_per_second="2700000000",
            share_of_limit="0.93",
            limit_flops_per_second="247000000000",
            peak_memory_bytes=312_000_000,
            compile_peak_memory_bytes=95_000_000,
        ),
        bound="compute",
        limits="measured",
    )


def failed(use: str) -> VariantResult:
    return VariantResult(
        name=use,
        use=use,
        failure=Failure(reason="OutOfMemory", message="needed 3.1 GB, had 2.0 GB: lower size", round=1, phase="setup"),
    )


def comparison(use: str, verdict: str, speedup: str, lower: str, upper: str, baseline: str = USES[0]) -> Comparison:
    return Comparison(
        variant=use,
        baseline=baseline,
        rounds=6,
        confidence="0.95",
        verdict=verdict,
        speedup=speedup,
        lower=lower,
        upper=upper,
        sentence=f"{use} is {verdict}: {speedup}x ({lower} to {upper}).",
        pays_back=PAYS_BACK.get(use),
    )


def invalid(use: str, *checks: str) -> Comparison:
    return Comparison(
        variant=use,
        baseline=USES[0],
        rounds=6,
        confidence="0.95",
        invalid=checks,
        sentence=f"{use} cannot be compared: {', '.join(checks)} failed.",
    )


def passed(name: str, use: str | None = None) -> Check:
    return Check(name=name, outcome="passed", reading="as it should be", threshold="0", variant=use)


PARITY = (passed("parity"), passed("non-finite"))
"""Without these of every variant no time is shown."""
CHECKS = (*PARITY, *(passed("recompiled", use) for use in USES), passed("clock"))

FINGERPRINT = {
    "cpu": "AMD EPYC 9B14",
    "cpus": "2",
    "cpusUsed": "2",
    "memoryBytes": str(16 * 2**30),
    "kernel": "6.8.0",
    "python": "CPython 3.13.1",
    "version.jax": "0.10.2",
    "version.torch": "2.15.0",
}


def result(**changes: Any) -> Result:
    """Three variants, two comparisons, every check passed; `changes` are fields of the result."""
    fields = {
        "case": case(),
        "complete": True,
        "stopped": "TargetMet",
        "unit": "product",
        "started": "2026-11-21T09:00:00Z",
        "finished": "2026-11-21T09:01:12Z",
        "rounds": 6,
        "variants": (
            variant("pytorch/eager", "0.00117"),
            variant("jax/jit", "0.000574"),
            variant("jax/op-by-op", "0.00121"),
        ),
        "comparisons": (
            comparison("jax/jit", "faster", "2.041", "2.012", "2.071"),
            comparison("jax/op-by-op", "inconclusive", "0.967", "0.951", "0.984"),
        ),
        "certificate": Certificate(checks=CHECKS),
        "fingerprint": FINGERPRINT,
        "overhead": {"total": "71.9", "steady": "40.1"},
    }
    return Result(**(fields | changes))


def noisy(**changes: Any) -> Result:
    """Other load disturbed two rounds, which count, as the case accepts noise."""
    shared = Check(name="shared-device", outcome="failed", reading=CROWDED, variant=USES[1])
    return result(
        comparisons=tuple(
            Comparison(
                variant=use,
                baseline=USES[0],
                rounds=6,
                confidence="0.95",
                noisy=True,
                speedup="2.041",
                lower="1.512",
                upper="2.771",
                sentence=f"Noisy: {use} was 2.04 times as fast.",
            )
            for use in USES[1:]
        ),
        certificate=Certificate(checks=(*CHECKS, shared)),
        noisy=tuple(Disturbed(round=number, reasons=(f"shared-device of jax/jit: {CROWDED}",)) for number in (2, 5)),
        **changes,
    )


def observing(**changes: Any) -> Result:
    """A case that was observed: one variant raised, of another the launches differ; nothing was timed."""
    return result(
        protocol="observe",
        comparisons=(),
        variants=tuple(VariantResult(name=use, use=use) for use in USES[:2]),
        observations=(
            observations(USES[0], calls="4", compilations="0", raised="KeyReuseError", message="Used <before> | now."),
            Observations(
                variant=USES[1],
                launches=6,
                found=(
                    *observations(USES[1], calls="4").found,
                    Observation(
                        name="compilations",
                        type="number",
                        values=(ObservedValue(value="1", launches=5), ObservedValue(value="2", launches=1)),
                    ),
                    *observations(USES[1], raised="nothing").found,
                ),
            ),
        ),
        **changes,
    )


def observations(use: str, **found: str) -> Observations:
    return Observations(
        variant=use,
        launches=6,
        found=tuple(
            Observation(
                name=name,
                type="number" if value.isdigit() else "text",
                values=(ObservedValue(value=value, launches=6),),
            )
            for name, value in found.items()
        ),
    )

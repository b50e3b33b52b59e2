"""Result documents as the runner writes them, and a snapshot of an operator that holds them."""

from __future__ import annotations

from accelbench.api.case import Case, CaseAccelerator, CaseOrigin, CaseVariant
from accelbench.api.numbers import Numbers
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
    SpeedupEstimate,
    Spread,
    VariantResult,
)
from accelbench_operator.engine.api import RequestKind
from accelbench_operator.engine.kinds import Key
from accelbench_operator.metrics.snapshot import LiveCase, QueueHealth, Snapshot
from accelbench_operator.runs.summary import summarize

PROGRAM = dict.fromkeys(
    (
        *("fits", "device_memory_bytes", "peak_bytes", "argument_bytes", "output_bytes", "aliased_bytes"),
        *("temporary_bytes", "kernels", "collectives", "collective_bytes", "all_reduce_bytes", "all_gather_bytes"),
        *("reduce_scatter_bytes", "all_to_all_bytes", "collective_permute_bytes"),
    ),
    1,
)
"""Of a program that was compiled for a target: every number that is exported, for panels to draw."""
REQUESTS = {
    "requests_per_second": 100,
    "utilisation": "0.5",
    "p99_seconds": "0.045",
    "service_seconds": "0.005",
    "service_p99_seconds": "0.006",
}
"""Of a variant that requests were served by."""

__all__ = ["failed", "faster", "invalid", "noisy", "snapshot"]

NO_OUTLIERS = OutlierCounts(of=10, low_severe=0, low_mild=0, high_mild=0, high_severe=0)


def faster(*, run: str = "matmul-chain", series: str = "matmul-chain", speedup: str = "2.04") -> Result:
    """jax/jit is faster than pytorch/eager, and every check passed."""
    comparison = Comparison(
        variant="jax/jit",
        baseline="pytorch/eager",
        rounds=8,
        confidence="0.95",
        verdict="faster",
        speedup=speedup,
        lower="2.01",
        upper="2.07",
        pays_back=Payback(answer="after", steps=120, first_call_seconds="0.1", extra_seconds="0.08"),
        sentence="jax/jit: faster",
    )
    return _result(run, series, (_measured("pytorch/eager", "0.0204"), _measured("jax/jit", "0.01")), (comparison,))


def invalid(*, run: str = "xor", series: str = "xor") -> Result:
    """Return a result in which jax/jit computed something else, so that its speed is unknown."""
    comparison = Comparison(
        variant="jax/jit",
        baseline="pytorch/eager",
        rounds=5,
        confidence="0.95",
        invalid=("parity",),
        sentence="jax/jit: invalid",
    )
    check = Check(name="parity", outcome="failed", reading="0.3", threshold="1e-5", variant="jax/jit")
    variants = (_measured("pytorch/eager", "0.0204"), _measured("jax/jit", "0.01"))
    return _result(run, series, variants, (comparison,), check)


def noisy(*, run: str = "busy", series: str = "busy") -> Result:
    """Rounds that other load disturbed count, as the run accepts noise."""
    found = faster(run=run, series=series)
    interval = found.comparisons[0].model_copy(update={"verdict": None, "noisy": True})
    round_2 = Disturbed(round=2, reasons=("shared-device of jax/jit: Other processes used 52 % of the CPU",))
    return found.model_copy(update={"comparisons": (interval,), "noisy": (round_2,)})


def failed(*, run: str = "memory", series: str = "memory") -> Result:
    """pytorch/compile ran out of memory; the baseline's measurement stands."""
    failure = Failure(reason="OutOfMemory", message="killed at 4 GiB", round=2, phase="compile")
    gone = VariantResult(name="tuned", use="pytorch/compile", failure=failure)
    comparison = Comparison(
        variant="tuned", baseline="pytorch/eager", rounds=1, confidence="0.95", sentence="tuned: ran out of memory"
    )
    return _result(run, series, (_measured("pytorch/eager", "0.0204"), gone), (comparison,))


def snapshot(*results: tuple[str, Result], leading: bool = True) -> Snapshot:
    """An operator that holds these results, each with its namespace."""
    summaries = tuple(
        summarize(
            result,
            Key("BenchmarkResult", namespace, f"{result.case.origin.run}-result", ""),
            result.case.origin.uid,
            ("too slow",),
            node="node-7",
        )
        for namespace, result in results
    )
    health = QueueHealth(depth=2, oldest_seconds=1.5, loop_lag_seconds=0.002, reconciled_total=40, failed_total=3)
    runs = {("team-a", "Succeeded"): 2, ("team-a", "Running"): 1, ("team-b", "Queued"): 4}
    estimates = (
        SpeedupEstimate(variant="jax/jit", speedup="1.98", lower="1.7", upper="2.3"),
        SpeedupEstimate(variant="jax/op-by-op", invalid=("parity",)),
    )
    live = LiveCase("team-a", "xor", "size-64", 3, "jax/jit", "steady", estimates)
    return Snapshot(
        leading=leading,
        results=summaries,
        runs=runs,
        stored_objects={"Job": 3, "Pod": 3},
        queue=health,
        requests={RequestKind("create", "jobs", 201): 3},
        cases={("team-a", "xor", "total"): 4, ("team-a", "xor", "measured"): 1},
        live=(live,),
        omitted=2,
        limit=3,
        unlisted_namespaces=("gone",),
    )


def _measured(use: str, seconds: str) -> VariantResult:
    quantiles = Quantiles(
        geometric_mean_seconds=seconds,
        p5_seconds=seconds,
        p25_seconds=seconds,
        median_seconds=seconds,
        p75_seconds=seconds,
        p95_seconds=seconds,
    )
    phases = (
        PhaseTime(phase="compile", median_seconds="0.06", min_seconds="0.05", max_seconds="0.07"),
        PhaseTime(phase="steady", median_seconds="1.1", min_seconds="1", max_seconds="1.2"),
    )
    return VariantResult(
        name=use,
        use=use,
        seconds=quantiles,
        phases=phases,
        launches=(LaunchSummary(round=1, seconds=seconds, blocks=10, units_per_block=5),),
        spread=Spread(
            block_outliers=NO_OUTLIERS,
            launch_outliers=NO_OUTLIERS,
            lower_seconds=seconds,
            upper_seconds="0.03",
            lower_p99_seconds="0.04",
            upper_p99_seconds="0.05",
        ),
        numbers=Numbers(
            flops_per_second="130000000000",
            share_of_limit="0.35",
            peak_memory_bytes=268435456,
            accessed_bytes=81920,
            **PROGRAM,
            device_joules_per_unit="3.5",
            cpu_joules_per_unit="0.9",
            price_per_unit="0.00006",
            recompilations=0,
            **REQUESTS,
        ),
    )


def _result(
    run: str, series: str, variants: tuple[VariantResult, ...], comparisons: tuple[Comparison, ...], *checks: Check
) -> Result:
    case = Case(
        name="size-512-0123456789",
        origin=CaseOrigin(run=run, series=series, namespace="team-a", uid=f"uid-of-{run}"),
        workload="matmul-chain",
        swept={"size": 512},
        variants=tuple(CaseVariant(name=variant.name, use=variant.use) for variant in variants),
        baseline="pytorch/eager",
        accelerator=CaseAccelerator(profile="cpu", price_per_hour="11.06 USD"),
    )
    return Result(
        case=case,
        complete=True,
        stopped="TargetMet",
        unit="chain",
        started="2026-01-02T03:00:00Z",
        finished="2026-01-02T03:04:05Z",
        rounds=8,
        variants=variants,
        comparisons=comparisons,
        certificate=Certificate(
            checks=(*checks, *(Check(name=name, outcome="passed", reading="0") for name in ("parity", "non-finite")))
        ),
    )

"""Results of cases that were compiled, as a runner would deliver them."""

from typing import Any

from accelbench.api.case import Case, CaseAccelerator, CaseOrigin, CaseVariant
from accelbench.api.compiled import CompiledVariant
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.result import Failure, PhaseTime, Result, VariantResult

ESTIMATES = tuple(number.name for number in MEASURED.values() if "cuda" in number.estimated_for)


def compiled(target: str = "h100x8", *, fits: bool = True, **changes: Any) -> Result:
    """jax/jit was compiled, and pytorch/eager cannot be."""
    numbers = Numbers(
        program_size=101,
        kernels=12,
        kernels_per_call=12,
        fusions=9,
        fits=int(fits),
        argument_bytes=2_000_000,
        output_bytes=1_000_000,
        temporary_bytes=4_000_000,
        aliased_bytes=1_000_000,
        peak_bytes=40_000_000_000,
        device_memory_bytes=80_000_000_000,
        compile_peak_memory_bytes=300_000_000,
        collectives=3,
        collective_bytes=6_000_000,
        all_reduces=3,
        all_reduce_bytes=6_000_000,
        all_gathers=0,
        all_gather_bytes=0,
        reduce_scatters=0,
        reduce_scatter_bytes=0,
        all_to_alls=0,
        all_to_all_bytes=0,
        collective_permutes=0,
        collective_permute_bytes=0,
    )
    phase = PhaseTime(phase="compile", median_seconds="2.5", min_seconds="2.5", max_seconds="2.5")
    why = Failure(reason="Unsupported", message="PyTorch compiles for no device that is not there", round=1)
    uses = ("pytorch/eager", "jax/jit")
    found = CompiledVariant(
        variant="jax/jit",
        target=target,
        devices=8,
        fits=fits,
        peak_bytes=numbers.peak_bytes,
        device_memory_bytes=numbers.device_memory_bytes,
        fused=("add, dot, tanh (4 kernels)",),
        estimates=ESTIMATES if target.startswith("h100") else (),
    )
    return Result(
        **{
            "case": Case(
                name=f"target-{target}",
                origin=CaseOrigin(run="chain", series="chain", namespace="team-a", uid="uid-of-chain"),
                workload="matmul-chain",
                variants=tuple(CaseVariant(name=use, use=use) for use in uses),
                baseline=uses[0],
                accelerator=CaseAccelerator(target=target),
            ),
            "complete": True,
            "stopped": "Compiled",
            "unit": "product",
            "started": "2026-01-02T03:00:00Z",
            "finished": "2026-01-02T03:04:05Z",
            "rounds": 1,
            "protocol": "compile",
            "variants": (
                VariantResult(name=uses[0], use=uses[0], failure=why),
                VariantResult(name=uses[1], use=uses[1], numbers=numbers, phases=(phase,)),
            ),
            "compiled": (found,),
            **changes,
        }
    )

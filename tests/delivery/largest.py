"""Results as large as a run can bring, with numbers that do not repeat, so that they compress as real ones do."""

import random

from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    LaunchSummary,
    Phase,
    PhaseTime,
    Quantiles,
    Result,
    VariantResult,
)
from runner.supervision import case_of

CHECKS = 14
"""For each variant, as the largest results under docs/results have."""
PHASES: tuple[Phase, ...] = ("import", "device-init", "setup", "compile", "first-step", "warm-up", "steady")


def result_of(variants: int, rounds: int, *, characters: int = 220) -> Result:
    """`characters` are those of each check's reading; a real result scaled to this size takes 208 KB as well."""
    rng = random.Random(0)  # noqa: S311

    def seconds() -> str:
        return f"0.00{rng.randrange(10**8, 10**9)}"

    def six() -> str:
        return f"0.00{rng.randrange(10**5, 10**6)}"

    def reading() -> str:
        words = f"{rng.random():.3g} of {rng.random():.3g} in launch {rng.randrange(50)}, "
        return (words * (characters // len(words) + 1))[:characters]

    names = [f"pytorch/compile-reduce-overhead-{number}" for number in range(variants)]
    return Result(
        case=case_of(*names),
        complete=True,
        unit="step",
        started="2026-01-01T00:00:00Z",
        finished="2026-01-01T00:00:00Z",
        rounds=rounds,
        variants=tuple(
            VariantResult(
                name=name,
                use="pytorch/compile",
                seconds=Quantiles(
                    geometric_mean_seconds=seconds(),
                    p5_seconds=six(),
                    p25_seconds=six(),
                    median_seconds=six(),
                    p75_seconds=six(),
                    p95_seconds=six(),
                ),
                phases=tuple(
                    PhaseTime(phase=phase, median_seconds=six(), min_seconds=six(), max_seconds=six())
                    for phase in PHASES
                ),
                launches=tuple(
                    LaunchSummary(
                        round=number,
                        seconds=seconds(),
                        p5_seconds=six(),
                        p95_seconds=six(),
                        blocks=rng.randrange(100, 200),
                        units_per_block=1000,
                    )
                    for number in range(1, rounds + 1)
                ),
            )
            for name in names
        ),
        comparisons=tuple(
            Comparison(
                variant=name,
                baseline=names[0],
                rounds=rounds,
                confidence="0.95",
                verdict="faster",
                speedup="1.23457",
                lower="1.23457",
                upper="1.23457",
                sentence="s" * 300,
            )
            for name in names[1:]
        ),
        certificate=Certificate(
            checks=tuple(
                Check(
                    name=f"check-{number}", outcome="passed", reading=reading(), threshold="at most 0.05", variant=name
                )
                for number in range(CHECKS)
                for name in names
            )
        ),
    )

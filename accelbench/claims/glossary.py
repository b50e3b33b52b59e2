"""Write the page that explains the terms and metrics of the other pages. Pure."""

from collections.abc import Sequence

from accelbench.api.number_registry import NUMBERS
from accelbench.claims.settle import SettledClaim
from accelbench.report.markdown import escape

TERMS = {
    "eager": "PyTorch by default: every operation runs when Python reaches it.",
    "compile": "`torch.compile`: PyTorch's compiler.",
    "op-by-op": "JAX without `jit`. Each operation is compiled by itself on its first use, and then called.",
    "jit": "`jax.jit`: JAX traces a whole function and compiles it with XLA, for each shape and type of argument.",
    "scan": "`jax.lax.scan`: a loop inside the compiled program. Its body is compiled once.",
    "donated": "The caller gives the old array away (`donate_argnums`), so the new one can take its memory.",
    "float32": "Matrix products, too, are in full float32, in both frameworks and on every device. By default that "
    "is so on CPUs alone. On GPUs since Ampere, JAX multiplies float32 in TF32. PyTorch does so in cuDNN's "
    "convolutions, and not in matrix products. On TPUs, JAX multiplies float32 as bfloat16. That can decide which of "
    "the two is faster.",
    "variant": "One of the programs that compute the same thing, such as jax/jit. [The list of "
    "workloads](../reference/workloads.md) says what each of them is.",
    "manifest": "The file that says what is measured: a workload, its variants, and how precisely.",
    "launch": "A new process that measures one variant.",
    "round": "One launch of every variant, in turn.",
    "certificate": "What was checked of a result: that all variants compute the same, that the machine was quiet, that "
    "times were steady, and more. Where a check failed, the comparison is invalid, and the check is named.",
    "against": "How the variant compares with the baseline that the column names. If it is 1.9 times as fast as the "
    "baseline, it takes 1/1.9 of the baseline's time.",
    "(1.6 to 2.2)": "The interval in which a ratio lies. The confidence of 95 % is for all ratios of the run together.",
    "within 3 %": "1 lies inside the interval, and neither end is further from 1 than that; at most 10 % are named so.",
    "unknown (0.1 to 7.4)": "1 lies inside the interval, which reaches further: either of the two may be faster.",
    "or wider": "Some launches were far from the others, so the interval may be too narrow: instead of 95 % it may "
    "cover 24 to 75 %. It decides nothing unless every round agrees.",
    "first call": "How long compiling and the first call take together, in a new process whose caches on disk are "
    "empty. The column `time` is of all later calls.",
    "cached": "The same in a process that finds compiled programs in a cache on disk. PyTorch has such a cache by "
    "default; JAX has one if jax_compilation_cache_dir is set.",
    "by program": "The verdict follows from compiled programs alone. They were not tuned, and nothing was measured.",
    "bounds": "What confirms or refutes a row. The commit first wrote them: before any result of the row, after an "
    "earlier result but before the one that decides, or after that.",
    "range": "Of compile times and first calls there is only the range of their launches. It decides if chance would "
    "place so many launches on one side of the bound in at most 1 of 20 cases.",
    "memory": "The most memory at once. On a GPU: of arrays. On a CPU: of the process while it ran the steps, above "
    "its level before it set them up. What Python imports meanwhile is part of it: torch.optim brings about 90 MB.",
    "power": "Mean power of the GPU while a launch's steps ran, by its own counter: the median over launches.",
    "matrix products": "How many were compiled or dispatched. Compilers turn small ones into sums.",
    "error over tolerance": "How far the outputs are from a float64 reference. Above 1, a variant is wrong. Where no "
    "number is finite, as at the end of the article's own chain in row 1, nothing can be checked.",
    "compiled for": "Nothing ran: XLA compiled the program for a device that is not here. For a GPU, kernels, "
    "temporary bytes and the most at once are estimates (≈), because nothing was tuned. XLA "
    "reports no accessed bytes for it.",
    "h100": "One NVIDIA H100.",
    "v5e-16": "A slice of sixteen TPU v5e chips. No program here is divided, so its numbers are those of one chip.",
    "kernel": "What a device runs in one go. Operations that are fused become one kernel.",
    "temporary": "Memory for what is neither argument nor result, such as copies. For a TPU it is not everything: "
    "the column `most at once` can show more than arguments, results and temporary memory together.",
    "older source": "The workload's program was changed after the measurement, so it has to be measured again.",
}


def page(settled_claims: Sequence[SettledClaim]) -> str:
    """Return the page as Markdown."""
    return f"# Claims: words\n\n{_list_terms(settled_claims)}\n"


def _list_terms(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a Markdown list that explains the terms and metrics of these claims."""
    metrics: set[str | None] = set()
    for settled_claim in settled_claims:
        metrics.update(expectation.metric for expectation in settled_claim.claim.expectations)
        for run in settled_claim.deciding_runs:
            for _, outcomes in run.measured_cases:
                metrics.update(outcome.expectation.metric for outcome in outcomes)
    meanings = list(TERMS.items())
    meanings += [(metric, escape(NUMBERS[metric].meaning)) for metric in sorted(filter(None, metrics))]
    return "\n".join(f"- **{term}**: {meaning}" for term, meaning in meanings)

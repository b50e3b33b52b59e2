"""Explain the page's terms: compilers, metrics, and workloads with their parameters and observations. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from accelbench import catalogue
from accelbench.api.number_registry import NUMBERS
from accelbench.api.result import Result
from accelbench.catalogue.observations import STANDARD
from accelbench.claims.settle import SettledClaim
from accelbench.report.markdown import escape, markdown_table

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
    "variant": "One of the programs that compute the same thing, such as jax/jit. [The end of the page](#workloads) "
    "says what each of them is.",
    "manifest": "The file that says what is measured: a workload, its variants, and how precisely.",
    "launch": "A new process that measures one variant.",
    "round": "One launch of every variant, in turn.",
    "certificate": "What was checked of a result: that all variants compute the same, that the machine was quiet, that "
    "times were steady, and more. Where a check failed, the comparison is invalid, and the check is named.",
    "against": "How the variant compares with the baseline that the column names. If it is 1.9 times as fast as the "
    "baseline, it takes 1/1.9 of the baseline's time.",
    "(1.6 to 2.2)": "The interval in which a ratio lies. The confidence of 95 % is for all ratios of the run together.",
    "no difference found": "1 lies inside the interval. The width says how large a difference it could hide.",
    "first call": "How long compiling and the first call take together, in a new process. The column `time` is of all "
    "later calls.",
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


def list_terms(settled_claims: Sequence[SettledClaim]) -> str:
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


def workloads_table(results: Iterable[Result]) -> str:
    """Return a table that explains the measured workloads, their variants, parameters and observations."""
    variants_by_workload: defaultdict[str, set[str]] = defaultdict(set)
    for result in results:
        variants_by_workload[result.case.workload].update(variant.name for variant in result.variants)
    rows = []
    for workload_name in sorted(variants_by_workload.keys() & set(catalogue.names())):
        workload = catalogue.find(workload_name)
        first_paragraph = (workload.__doc__ or "").strip().partition("\n\n")[0]
        rows.append((workload_name, "", " ".join(first_paragraph.split())))
        for variant_name, variant in workload.variants().items():
            if variant_name in variants_by_workload[workload_name] and variant.summary:
                rows.append((workload_name, variant_name, variant.summary))
        for parameter, field in workload.Parameters.model_fields.items():
            rows.append((workload_name, parameter, field.description or ""))
        for observation, meaning in workload.observes.items():
            rows.append((workload_name, observation, meaning))
    for observation, meaning in STANDARD.items():
        rows.append(("all that are observed", observation, meaning))
    return markdown_table(("workload", "name", "meaning"), rows, right=set())

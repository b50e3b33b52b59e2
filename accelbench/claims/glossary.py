"""What the page's words mean: of compilers, of metrics, of workloads with their parameters and observations. Pure."""

from collections.abc import Iterable, Sequence

from accelbench import catalogue
from accelbench.api.numbers import NUMBERS
from accelbench.api.result import Result
from accelbench.claims.settle import Settled
from accelbench.report.markdown import escaped, markdown_table

WORDS = {
    "eager": "PyTorch as it comes: every operation runs when Python reaches it.",
    "compile": "`torch.compile`: PyTorch's compiler.",
    "op-by-op": "JAX without `jit`. Each operation is compiled by itself, when it first comes up, and then called.",
    "jit": "`jax.jit`: JAX traces a whole function and compiles it with XLA, for each shape and type of argument.",
    "scan": "`jax.lax.scan`: a loop inside the compiled program, its body compiled once.",
    "donated": "The old array is given away (`donate_argnums`), so that the new one can take its memory.",
    "float32": "Products, too, are in full float32, in both frameworks and on every device. As they come they would "
    "not be. On GPUs since Ampere JAX multiplies float32 in TF32; PyTorch does so in cuDNN's convolutions, and not in "
    "products. On TPUs JAX multiplies float32 as bfloat16. That can decide which of the two is faster.",
    "beside": "How many times as fast or as slow a variant is as the baseline that the column names. 1.9 times as "
    "fast: it takes 1/1.9 of the baseline's time.",
    "(1.6 to 2.2)": "The interval in which a ratio lies. The confidence, 95 %, is for all ratios of the run together.",
    "no difference found": "1 lies inside the interval. Its width says how large a difference could be hidden.",
    "first call": "What compiling and the first call take in a new process; all later calls are the time beside it.",
    "matrix products": "Counted in what was compiled or dispatched. Compilers make sums of small ones.",
    "error over tolerance": "How far the outputs are from a float64 reference; above 1 a variant is wrong.",
    "compiled for": "Nothing ran: XLA compiled the program for a device that is not here. For a GPU kernels and "
    "temporary bytes are estimates, as nothing was tuned, and XLA reports no accessed bytes.",
    "h100": "One NVIDIA H100.",
    "v5e-16": "A slice of sixteen TPU v5e chips. No program here is divided: its numbers are those of one chip.",
    "kernel": "What a device runs in one go. Operations that are fused are one kernel.",
    "temporary": "Memory for what is neither argument nor result, such as copies. For a TPU it is not all: most at "
    "once can be more than arguments, results and temporary together.",
    "older source": "The workload's program was changed after the measurement, so that it is to be measured again.",
}


def words(settled: Sequence[Settled]) -> str:
    """The general ones, and the metrics that claims were held to, by the names that stand in their files."""
    asked = [each for one in settled for each in one.claim.expectations]
    asked += [each.expectation for one in settled for run in one.runs for _, found in run.measured for each in found]
    metrics = sorted({each.metric for each in asked if each.metric})
    lines = [*WORDS.items(), *((name, escaped(NUMBERS[name].meaning)) for name in metrics)]
    return "\n".join(f"- **{name}**: {meaning}" for name, meaning in lines)


def of_workloads(results: Iterable[Result]) -> str:
    """A table of what workloads compute, are given, and observe."""
    rows = []
    for name in sorted({result.case.workload for result in results} & set(catalogue.names())):
        workload = catalogue.find(name)
        rows.append((name, "", " ".join((workload.__doc__ or "").strip().partition("\n\n")[0].split())))
        rows += [
            (name, parameter, field.description or "") for parameter, field in workload.Parameters.model_fields.items()
        ]
        rows += [(name, observed, meaning) for observed, meaning in workload.observes.items()]
    return markdown_table(("workload", "name", "meaning"), rows, right=set())

"""Compare what is estimated of programs without running them with what their runs report, on this processor.

`python benchmarks/compiled_against_run.py` writes docs/results/compiled_against_run.md. It needs accelbench[jax,torch].
"""

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accelbench import figures

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])

from targets import here  # noqa: E402 - as the tests do it

PAGE = ROOT / "docs" / "results" / "compiled_against_run.md"
LINES = """# Compiled without running, and run

`python benchmarks/compiled_against_run.py`. What is said of a program for a target comes from compiling it, or, for
eager PyTorch, from dispatching its operations on arrays without numbers. Nothing runs. For one target this can be
checked everywhere: the processor of the machine itself, target `cpu`. Each row here is one program, first compiled and
then run, each in a process of its own, on one processor, in float32. `trains` are steps of training.

- Kernels, aliased bytes, temporary bytes and the size of the program: what XLA says of the program that ran. A run of
  eager PyTorch tells none of them.
- The peak planned has three parts. `call` is that of a call, by the plan. `kept` is what a run keeps beside it: the
  state that every block begins with, unless that is what the only call of a block is given. `process` is what a run of
  the same program holds on next to no numbers: compiled code, threads, what the compiler left. It is measured; the
  other two are not.
- The real peak is that of the process while blocks are timed, by the operating system, less what it held before its
  inputs were drawn. The C library's allocator was told to give back what is freed (`MALLOC_MMAP_THRESHOLD_`): inputs
  are drawn in float64, and would otherwise stay in the peak.
"""

WHY = """## What else was found

- XLA's own peak for processors (`peak_memory_in_bytes`) leaves temporary bytes out. This table showed it: the peak of a
  step of training was told too low by up to a hundredfold, for the target `cpu` alone. Since then all that a call holds
  is taken instead. For an H100, XLA's peak has temporary bytes in it.
- Without `process` small programs cannot be compared: the process of the language model holds more than 200 MB that
  no plan has, probably what compiling it left.
- `inplace-update jax/jit` holds one array more than was counted, and we have not found out why.
- On a GPU, memory that a library works in may be several times what is planned ([what one said](h100/README.md)).
"""


@dataclass(frozen=True)
class Program:
    """Name one variant of a workload; if `trains`, it is a step of training."""

    workload: str
    use: str
    parameters: dict[str, Any]
    small: dict[str, Any]
    """Parameters with which the program holds hardly any numbers."""
    trains: bool = False

    def __str__(self) -> str:
        parameters = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        return f"{self.workload} {self.use} ({parameters}){', trains' if self.trains else ''}"


LM = {"batch": 64, "activations": "recomputed"}
SMALL_LM = {"batch": 1, "width": 16, "vocabulary": 16, "sequence": 8}
MLP = {"inputs": 2048, "hidden": 8192, "outputs": 512, "batch": 2048}
SMALL_MLP = {"inputs": 64, "hidden": 64, "outputs": 64, "batch": 64}
DEEP = {"width": 1024, "batch": 2048}
ONE_ARRAY = {"size": 67_108_864}
FEW = {"size": 1024}
PROGRAMS = (
    Program("transformer-lm", "jax/jit-scanned", LM, {**LM, **SMALL_LM}, trains=True),
    Program("mlp", "jax/jit", MLP, SMALL_MLP, trains=True),
    Program("cifar-cnn", "jax/jit", {"batch": 256}, {"batch": 1}, trains=True),
    Program("elementwise-fusion", "jax/jit", ONE_ARRAY, FEW),
    Program("inplace-update", "jax/jit-donated", ONE_ARRAY, FEW),
    Program("inplace-update", "jax/jit", ONE_ARRAY, FEW),
    Program("layer-norm", "jax/jit", {"rows": 65_536}, {"rows": 16}),
    Program("optimizer-step", "jax/jit-donated", {"tensors": 2, "size": 16_777_216}, {"tensors": 2, "size": 1024}),
    Program("activation-checkpointing", "jax/jit", DEEP, {"width": 64, "batch": 64}, trains=True),
    Program("transformer-lm", "jax/jit", {"batch": 64}, SMALL_LM, trains=True),
    Program("transformer-lm", "pytorch/eager", LM, {**LM, **SMALL_LM}, trains=True),
    Program("mlp", "pytorch/eager", MLP, SMALL_MLP, trains=True),
    Program("layer-norm", "pytorch/eager", {"rows": 65_536}, {"rows": 16}),
)


def main() -> None:
    """Print a row for each program, then write the page."""
    rows: list[tuple[Program, here.Both]] = []
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as directory:
            both = here.planned_and_run(
                Path(directory), program.workload, program.use, program.parameters, program.small
            )
        rows.append((program, both))
        print(row(program, both), flush=True)
        PAGE.write_text("\n".join([LINES, *table(rows), "", *sentences(rows)]))


def table(rows: list[tuple[Program, here.Both]]) -> Iterator[str]:
    """Format the rows as Markdown."""
    facts = ("kernels", "aliased", "temporary", "size")
    heads = ("program", *facts, "call", "kept", "process", "peak planned", "real peak", "more")
    yield f"| {' | '.join(heads)} |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    yield from (row(program, both) for program, both in rows)


def row(program: Program, both: here.Both) -> str:
    """Return a program's row of the table; where estimate and measurement differ, a cell has both: `35, 34`."""
    ran = both.ran.get("executable") or {}
    cells = [
        str(program),
        *(format_pair(both.planned.get(name), ran.get(name), "B" if "Bytes" in name else "") for name in here.FACTS),
        *(format_bytes(size) for size in (both.planned["peakBytes"], both.kept, both.process)),
        figures.quantity(both.planned_peak, "B"),
        figures.quantity(both.peak, "B"),
        f"{round(100 * excess_over_plan(both)):+} %",
    ]
    return f"| {' | '.join(cells)} |"


def format_pair(planned: int | None, ran: int | None, unit: str) -> str:
    """Format one number if both are equal, or both if they differ; empty if the run reports none."""
    if ran is None:
        return ""
    planned_text, ran_text = (
        figures.quantity(number, unit) if unit and number else str(number) for number in (planned, ran)
    )
    return planned_text if planned == ran else f"**{planned_text}, {ran_text}**"


def format_bytes(size: int) -> str:
    """Format bytes."""
    return figures.quantity(size, "B") if size else "0"


def excess_over_plan(both: here.Both) -> float:
    """Return how far a run's peak is above the planned one, as a share of the planned peak."""
    return both.peak / both.planned_peak - 1


def sentences(rows: list[tuple[Program, here.Both]]) -> Iterator[str]:
    """Describe the outcome and the machine."""
    compiled = [both for _, both in rows if both.ran.get("executable")]
    equal = sum(all(both.planned[name] == both.ran["executable"][name] for name in here.FACTS) for both in compiled)
    far_off = [str(program) for program, both in rows if abs(excess_over_plan(both)) > here.PEAK]
    yield f"Kernels, aliased bytes, temporary bytes and size are equal in {equal} of {len(compiled)} programs of JAX."
    yield f"The peak is within {100 * here.PEAK:.0f} % in {len(rows) - len(far_off)} of {len(rows)} programs."
    if far_off:
        yield f"It is further off in {figures.join_names(far_off)}."
    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "torch"))
    yield f"\nMeasured with {packages} and Python {platform.python_version()}, on {platform.machine()}.\n"
    yield WHY


if __name__ == "__main__":
    main()

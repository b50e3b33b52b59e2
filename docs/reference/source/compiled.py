"""Write the page of compile targets."""

from accelbench import targets as compile_targets
from accelbench.api.number import DISPATCHED, Number
from accelbench.api.number_registry import KNOWN_AFTER_COMPILING
from accelbench.api.numbers import MEASURED
from accelbench.report.markdown import markdown_table

TARGETS = """# Targets

The devices that programs can be compiled for without having them. Generated from `accelbench/targets/chips.yaml` and
the code by `python docs/reference/build.py`. [How to ask](../tutorials/targets.md) has an example;
[ADR 43](../adr/0043-compile-for-targets-without-running.md) explains why.

A run names targets: `accelbench run FILE --target h100x8,v5e-16`, or `spec.accelerator.targets` in a manifest. In a
cluster a [profile](profiles.md) can name one. Each target is a case of its own. Nothing runs: a result has no time and
no speedup.
"""
MACHINES = {"cuda": "Linux", "tpu": "Linux on x86-64"}
"""Machines that the packages of a platform's extra are built for."""
DISPATCH_NUMBERS = {
    *("kernels", "kernelsPerCall", "argumentBytes", "outputBytes", "aliasedBytes", "temporaryBytes", "peakBytes"),
    *("flopsPerCall", "fits", "deviceMemoryBytes"),
}
"""Names of the numbers that a program has if it is dispatched and not compiled."""
NOT_FOR_TARGETS = {"accessedBytes"}
"""Names of numbers that this page leaves out, because XLA does not report them for GPUs."""
TARGETS_MEMORY = """`memory` is what a program can have of one chip, in bytes; a data sheet may say more. GPUs are named
by how many there are: `h100x8`. TPU slices are named as Google names them, by chips, but v5p by TensorCores, of which
a chip has two: `v5p-8` is four chips."""
TARGETS_NEED = """The packages of an extra are built for these machines. `cpu` needs nothing but a framework: it
is the processor of the machine that compiles, so its numbers can be compared with a run's
([how well they agree](../results/compiled_against_run.md)). If a package is missing, the command line
names its extra."""
TARGETS_EXACT = """An estimate is marked `≈` in reports, and by name in a result's `compiled[].estimates`. On a GPU,
XLA tunes kernels on the device and may choose others, with other temporary memory. A TPU's compiler makes the program
that would run, so everything is exact there. Counts are of the program text, each instruction once; only
`kernelsPerCall` counts the iterations of a loop, and is missing if a TPU's program does not have their number.
[Numbers](numbers.md) describes each."""
TARGETS_FRAMEWORKS = """- **JAX**: variants that are compiled as a whole, such as `jax/jit`. Operations that are
  dispatched one by one, and parts that are compiled by hand, are refused with the reason. A workload may define how
  its arrays are divided over several devices ([ADR 46](../adr/0046-meshes-have-named-axes.md)). If it does not, each
  device holds all of them, and the report says so.
- **PyTorch**: `pytorch/eager` and what else runs eagerly, for GPUs and `cpu`. Nothing is compiled: operations are
  dispatched on arrays that have shapes but no data
  ([ADR 47](../adr/0047-dispatch-eager-pytorch-for-a-target.md)). Workspaces of libraries such as cuDNN are not
  counted, so the real peak may be several times the reported one
  ([measured on a GPU](../results/h100/README.md#peak-memory-and-whether-it-fits)). torch.compile needs a driver, and is
  refused. PyTorch is not estimated for TPUs. Programs are not divided: each device does everything.
- **NumPy** is compiled for nothing."""


def targets() -> str:
    """Return the page: chips, names of targets, what compiling needs, and which numbers are exact."""
    chips = compile_targets.chips().values()
    rows = [(chip.name, chip.title, _memory(chip), chip.links, chip.source) for chip in chips]
    chip_table = markdown_table(("chip", "what it is", "memory", "links", "source"), rows, right=set())
    all_targets = [compile_targets.find(name) for name in compile_targets.names()]
    names = [(chip.name, ", ".join(target.name for target in all_targets if target.chip is chip)) for chip in chips]
    needs = [
        (
            platform,
            compile_targets.EXTRAS[platform],
            ", ".join(packages),
            MACHINES[platform],
        )
        for platform, packages in compile_targets.NEEDS.items()
    ]
    numbers = [number for number in MEASURED.values() if number.name in KNOWN_AFTER_COMPILING - NOT_FOR_TARGETS]
    exact = [_exactness_row(number) for number in numbers]
    need_table = markdown_table(("for", "extra", "packages", "on"), needs, right=set())
    heads = ("number", "what it is", "JAX, GPU", "JAX, TPU", "PyTorch")
    exact_table = markdown_table(heads, exact, right=set())
    tables = (
        ("Chips", f"{chip_table}\n\n{TARGETS_MEMORY}"),
        ("Names", markdown_table(("chip", "targets"), names, right=set())),
        ("What compiling needs", f"{need_table}\n\n{TARGETS_NEED}"),
        ("Exact, or an estimate", f"{exact_table}\n\n{TARGETS_EXACT}"),
        ("Frameworks", TARGETS_FRAMEWORKS),
    )
    return "\n\n".join([TARGETS.rstrip(), *(f"## {heading}\n\n{text}" for heading, text in tables)]) + "\n"


def _exactness_row(number: Number) -> tuple[str, ...]:
    """Return a number's row: name, meaning, and whether it is exact for JAX on GPUs and TPUs, and for PyTorch."""
    gpu, tpu, pytorch = (
        "estimate" if platform in number.estimated_for else "exact" for platform in ("cuda", "tpu", DISPATCHED)
    )
    if pytorch == "exact" and number.name not in DISPATCH_NUMBERS:
        pytorch = ""  # a program that is dispatched does not have this number
    return (number.name, number.meaning.partition(".")[0], gpu, tpu, pytorch)


def _memory(chip: compile_targets.Chip) -> str:
    """Return the bytes of memory that a program can use on a chip; for the processor, the free memory."""
    return f"{chip.memory_bytes:,}" if chip.memory_bytes else "what is free"

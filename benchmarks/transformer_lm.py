"""Compile a language model's training step for absent accelerators, and report its needs on each.

    python benchmarks/transformer_lm.py [NAME ...]

compiles, one at a time, all or the named ones (`7b-h100x8`, `1m-h100-pytorch`); `here` measures the same file on this
machine's processor, and `page` does neither. Results are kept in docs/results/transformer-lm, from which
docs/results/transformer_lm.md is written. It needs accelbench[jax,torch,targets-gpu,targets-tpu].
"""

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

from accelbench import figures, targets
from accelbench.api.result import Result
from accelbench.report.targets import collectives, compile_time
from accelbench.workloads import _decoder as decoder
from accelbench.workloads.transformer_lm import TransformerLm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from workloads.by_hand import held_by_torch, held_on, operations  # noqa: E402 - the counts that tests hold results to

MANIFEST = ROOT / "examples" / "07-transformer-lm-on-accelerators.yaml"
RESULTS = ROOT / "docs" / "results" / "transformer-lm"
PAGE = ROOT / "docs" / "results" / "transformer_lm.md"
TARGETS = ("h100", "h100x8", "v5e-16", "v5e-256")
SIZES: dict[str, dict[str, int]] = {
    "1m": {"layers": 4, "width": 128, "heads": 4, "vocabulary": 1024, "sequence": 128},
    "134m": {"layers": 12, "width": 768, "heads": 12, "vocabulary": 31_488, "sequence": 1024},
    "7b": {"layers": 32, "width": 4096, "heads": 32, "vocabulary": 32_000, "sequence": 2048},
}
VARIANTS = {"": ("jax/jit-scanned",), "-pytorch": ("pytorch/eager", "pytorch/compile")}
"""Variants by the suffix of a result's name; PyTorch's are dispatched for one GPU, and are not divided (ADR 47)."""
LINES = """# A language model on accelerators that are not there

`python benchmarks/transformer_lm.py`, which runs [example 7](../../examples/07-transformer-lm-on-accelerators.yaml) for
each row: a step of AdamW on a decoder, float32, 64 examples in a batch on all chips together, activations computed
again, the old state given away. `jax/jit-scanned` has its layers in one scan; on several chips they share weights,
moments and batch: `tensor` 4, `fsdp` the rest. Nothing ran; no figure was checked against hardware.

- The peak, and so whether it fits, is an estimate on GPUs. On TPUs it is the compiler's own plan, and that compiler
  refuses what does not fit. `peak` and `temporary` are both XLA's; on a TPU the peak can be the lower of the two, and
  XLA does not say why.
- `pytorch/eager` is not compiled. Its operations are dispatched on arrays without numbers
  ([ADR 47](../adr/0047-dispatch-eager-pytorch-for-a-target.md)), so no figure counts what its allocator and its
  libraries need. Its attention keeps no scores; JAX's makes them in full. PyTorch's programs are not divided, so there
  is one GPU alone.
- `arguments` are weights, both moments and the batch. `by hand` is the same without any compiler
  (`tests/workloads/by_hand.py`); on TPUs in tiles of 8 x 128, which fill up what does not divide. PyTorch's tokens have
  eight bytes.
- Collectives are counted once each, as they stand in the program: a scan's body stands there once. Bytes are what they
  leave on one chip.
- Seconds are the wall's, of a machine with two processors that was busy with other work: they say how long to wait.
"""
OPERATIONS = """
## Operations of a step

The workload's formula counts what the model needs: what is computed again is no work of the model's. So these programs
do a fifth more than the formula says, and not within 5 % of it. `by hand` adds the products that each block does again:
all but its last one (`tests/workloads/by_hand.py`). The programs are within 5 % of that, and a test holds them to it
(`tests/workloads/test_transformer_lm.py`). The rest is arithmetic on single numbers, which neither counts: layer
normalisation, GELU, softmax. Operations are those of all chips together, as the program is written: they are the same
for every target.

Where activations are kept, nothing is computed again. Then the program has 1.3 %, 0.4 % and 0.1 % more than the
formula, at 1 M, 134 M and 6.7 billion weights (the same test).
"""
HERE_OPTIONS = {"accelerator.targets": "", **SIZES["1m"], "batch": 8}
"""Options of the measurement on this processor: no target, and few examples."""
MEASURED = RESULTS / "here" / "1m-cpu.result.json"
HERE = """
## The same file on one processor

`--set accelerator.targets=` leaves out the targets. Then the file is measured where it is run, and on one device each
axis of its mesh has one. With a million weights and eight examples in a batch a processor can do it:

```console
$ accelbench run examples/07-transformer-lm-on-accelerators.yaml {options}
```
"""


@dataclass(frozen=True)
class Row:
    """Describe a row of the page: one size for one target, in the variants of one framework."""

    size: str
    target: str
    side: str = ""

    @property
    def name(self) -> str:
        """Return the result's name."""
        return f"{self.size}-{self.target}{self.side}"

    @property
    def file(self) -> Path:
        """Return the path of its result."""
        return RESULTS / f"{self.name}.result.json"

    @cached_property
    def result(self) -> Result:
        """Read its result."""
        return Result.model_validate_json(self.file.read_text())

    @property
    def parameters(self) -> TransformerLm.Parameters:
        """Return the parameters of its case."""
        return TransformerLm.Parameters(**self.result.case.parameters)

    @property
    def held_by_hand(self) -> int:
        """Return the bytes of a call's arguments on one device, counted by hand."""
        return held_by_torch(self.parameters) if self.side else held_on(self.parameters, targets.find(self.target))


EVERY = tuple(
    Row(size, target, side)
    for size, target, side in product(SIZES, TARGETS, VARIANTS)
    if not side or target == TARGETS[0]
)


def main(selected: Sequence[str]) -> None:
    """Compile the named rows, and write the page."""
    known = ["here", "page", *(row.name for row in EVERY)]
    unknown = set(selected) - set(known)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    for row in EVERY:
        if not selected or row.name in selected:
            compile_one(row)
    if not selected or "here" in selected:
        keep_result([*set_to(HERE_OPTIONS)], MEASURED)
    compiled_rows = [row for row in EVERY if row.file.exists()]
    parts = [
        LINES,
        *table(compiled_rows),
        "",
        *missing(compiled_rows),
        OPERATIONS,
        *arithmetic(compiled_rows),
        *measured(),
    ]
    PAGE.write_text("\n".join(parts) + "\n")


def compile_one(row: Row) -> None:
    """Compile the manifest in another size for one target."""
    uses = VARIANTS[row.side]
    variants = f"[{', '.join(f'{{use: {use}}}' for use in uses)}]"
    options = set_to({**SIZES[row.size], "variants": variants, "baseline": uses[0]})
    keep_result([*options, "--target", row.target], row.file)


def keep_result(options: Sequence[str], file: Path) -> None:
    """Run accelbench in a temporary folder, and keep the result."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["accelbench", "run", str(MANIFEST), *options, "--out", directory], check=True)
        (result_file,) = Path(directory).glob("*.result.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(result_file, file)


def set_to(values: Mapping[str, object]) -> Iterator[str]:
    """Yield the options of `accelbench run` that set these fields and parameters."""
    for name, value in values.items():
        yield from ("--set", f"{name}={value}")


def table(compiled_rows: Sequence[Row]) -> Iterator[str]:
    """Format a row for each size, target and variant."""
    yield from table_heads(
        "weights",
        "target",
        "variant",
        "fits",
        "peak a chip",
        "temporary",
        "arguments",
        "by hand",
        "collectives",
        "compiling",
        "its memory",
    )
    for row in compiled_rows:
        variant, compiled = row.result.variants[0], row.result.compiled[0]
        compiling = (compile_time(variant), format_bytes(variant.numbers.compile_peak_memory_bytes))
        if compiled.dispatched:
            compiling = ("not compiled", "")
        cells = (
            weights(row),
            row.target,
            variant.name,
            "yes" if compiled.fits else "no",
            format_bytes(compiled.peak_bytes),
            format_bytes(variant.numbers.temporary_bytes),
            format_bytes(variant.numbers.argument_bytes),
            format_bytes(row.held_by_hand),
            collectives(variant) or ("none" if compiled.dispatched else ""),
            *compiling,
        )
        yield f"| {' | '.join(cells)} |"


def arithmetic(compiled_rows: Sequence[Row]) -> Iterator[str]:
    """Format the operations of each program next to both counts by hand."""
    yield from table_heads(
        "weights", "variant", "operations", "formula", "more", "by hand, with what is done again", "more"
    )
    for size, side in product(SIZES, VARIANTS):
        rows = [row for row in compiled_rows if (row.size, row.side) == (size, side)]
        counts = {row.result.variants[0].numbers.flops_per_call for row in rows} - {None}
        if not counts:
            continue
        (counted,) = counts  # the same for every target
        row = rows[0]
        formula = TransformerLm().cost(row.parameters, float_bytes=4).flops
        cells = (
            weights(row),
            row.result.variants[0].name,
            figures.quantity(counted, ""),
            figures.quantity(formula, ""),
            excess(counted, formula),
            figures.quantity(operations(row.parameters), ""),
            excess(counted, operations(row.parameters)),
        )
        yield f"| {' | '.join(cells)} |"


def excess(counted: float, other: float) -> str:
    """Format by how many per cent the first number is larger."""
    return f"{100 * (counted / other - 1):.1f} %"


def missing(compiled_rows: Sequence[Row]) -> Iterator[str]:
    """Yield sentences on compilers' refusals, on how well both counts of bytes agree, and on missing rows."""
    largest_difference, refusals = 0.0, dict[str, None]()
    for row in compiled_rows:
        if refused := row.result.compiled[0].refused:
            yield f"The compiler says of {row.size} on {row.target}: {refused}\n"
        for variant in row.result.variants:
            if variant.failure:
                refusals[f"{variant.name} was not compiled: {variant.failure.message.rstrip('.')}.\n"] = None
        if held := row.result.variants[0].numbers.argument_bytes:
            largest_difference = max(largest_difference, abs(math.log(held / row.held_by_hand)))
    yield from refusals
    yield f"Arguments differ from what was counted by hand by {100 * largest_difference:.2f} % at most."
    if absent := [row.name for row in EVERY if not row.file.exists()]:
        yield f"\nNot compiled yet: {figures.join_names(absent)}."


def measured() -> Iterator[str]:
    """Describe the same file's measurement on a processor."""
    options = list(set_to(HERE_OPTIONS))
    yield HERE.format(options=" ".join(options[:2]) + " \\\n    " + " ".join(options[2:]))
    if not MEASURED.exists():
        yield "Not measured yet."
        return
    result = Result.model_validate_json(MEASURED.read_text())
    fingerprint = result.fingerprint
    yield f"In {result.rounds} rounds, on {fingerprint['cpusUsed']} processors ({fingerprint['cpu']}):"
    yield ""
    yield from table_heads("variant", "a step", "peak memory")
    for variant in result.variants:
        cells = (
            variant.name,
            figures.seconds(float(variant.seconds.geometric_mean_seconds)) if variant.seconds else "",
            format_bytes(variant.numbers.peak_memory_bytes),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield " ".join(comparison.sentence for comparison in result.comparisons)
    if disturbed := len(result.noisy):
        yield f"Other programs disturbed {disturbed} of the {result.rounds} rounds."


def table_heads(*names: str) -> Iterator[str]:
    """Yield the first two lines of a table in Markdown."""
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"


def weights(row: Row) -> str:
    """Format the number of weights."""
    return figures.quantity(decoder.count_weights(row.parameters), "")


def format_bytes(size: int | None) -> str:
    """Format bytes; empty if unknown."""
    return "" if size is None else figures.quantity(size, "B")


if __name__ == "__main__":
    main(sys.argv[1:])

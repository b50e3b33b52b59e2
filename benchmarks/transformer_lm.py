"""A language model's step of training, compiled for accelerators that are not there: what it takes of each of them.

    python benchmarks/transformer_lm.py [NAME-TARGET ...]

compiles (all, or `7b-h100x8` and the like), one at a time, keeps the results in docs/results/transformer-lm and writes
docs/results/transformer_lm.md from all that are there. It needs accelbench[jax,targets-gpu,targets-tpu].
"""

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from accelbench import figures, targets
from accelbench.api.result import Result
from accelbench.report.targets import collectives, compiling
from accelbench.workloads import _decoder as decoder
from accelbench.workloads.transformer_lm import TransformerLm
from workloads.by_hand import held_on

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "examples" / "07-transformer-lm-on-accelerators.yaml"
RESULTS = ROOT / "docs" / "results" / "transformer-lm"
PAGE = ROOT / "docs" / "results" / "transformer_lm.md"
TARGETS = ("h100", "h100x8", "v5e-16", "v5e-256")
SIZES: dict[str, dict[str, int]] = {
    "1m": {"layers": 4, "width": 128, "heads": 4, "vocabulary": 1024, "sequence": 128},
    "134m": {"layers": 12, "width": 768, "heads": 12, "vocabulary": 31_488, "sequence": 1024},
    "7b": {"layers": 32, "width": 4096, "heads": 32, "vocabulary": 32_000, "sequence": 2048},
}
LINES = """# A language model on accelerators that are not there

`python benchmarks/transformer_lm.py`, which runs [example 7](../../examples/07-transformer-lm-on-accelerators.yaml) for
each row: a step of AdamW on a decoder, float32, 64 examples in a batch on all chips together, activations computed
again, layers in one scan, the old state given away. Several chips share weights, moments and batch: `tensor` 4, `fsdp`
the rest. Nothing ran; no figure was checked against hardware.

- The peak, and so whether it fits, is an estimate on GPUs. On TPUs it is the compiler's own plan, and that compiler
  refuses what does not fit. `peak` and `temporary` are both XLA's; on a TPU the peak can be the lower of the two, and
  XLA does not say why.
- `arguments` are weights, both moments and the batch. `by hand` is the same without any compiler
  (`tests/workloads/by_hand.py`); on TPUs in tiles of 8 x 128, which fill up what does not divide.
- Collectives are counted once each, as they stand in the program: a scan's body stands there once. Bytes are what they
  leave on one chip.
- Operations of a step by the workload's formula: 51.6 G, 50.3 T and 5.59 P, at 1 M, 134 M and 6.7 billion weights. The
  program as it is written has 1.3 %, 0.4 % and 0.1 % more, with activations kept: computing them again is not counted
  there (`tests/workloads/test_transformer_lm.py`).
- Seconds are the wall's, of a machine with two processors that was busy with other work: they say how long to wait.
"""


def main(asked: Sequence[str]) -> None:
    """Compile what is asked for, and write the page."""
    every = [(size, target) for size, target in product(SIZES, TARGETS)]
    for size, target in every:
        if not asked or f"{size}-{target}" in asked:
            compile_one(size, target)
    there = [
        (size, target, file) for size, target in every if (file := RESULTS / f"{size}-{target}.result.json").exists()
    ]
    PAGE.write_text("\n".join([LINES, *table(there), "", *missing(there)]) + "\n")


def compile_one(size: str, target: str) -> None:
    """As a user would, into a folder of its own; the result is kept."""
    sizes = [option for name, value in SIZES[size].items() for option in ("--set", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as directory:
        command = ["accelbench", "run", str(MANIFEST), *sizes, "--target", target, "--out", directory]
        subprocess.run(command, check=True)
        (found,) = Path(directory).glob("*.result.json")
        RESULTS.mkdir(exist_ok=True)
        shutil.copyfile(found, RESULTS / f"{size}-{target}.result.json")


def table(there: Sequence[tuple[str, str, Path]]) -> Iterator[str]:
    """A row for each size and target."""
    heads = (
        "weights",
        "target",
        "fits",
        "peak a chip",
        "temporary",
        "arguments",
        "by hand",
        "collectives",
        "compiling",
        "its memory",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for _, target, file in there:
        result = Result.model_validate_json(file.read_text())
        parameters = TransformerLm.Parameters(**result.case.parameters)
        variant, compiled = result.variants[0], result.compiled[0]
        by_hand = held_on(parameters, targets.find(target))
        cells = (
            figures.quantity(decoder.numbers(parameters), ""),
            target,
            "yes" if compiled.fits else "no",
            amount(compiled.peak_bytes),
            amount(variant.numbers.temporary_bytes),
            amount(variant.numbers.argument_bytes),
            amount(by_hand),
            collectives(variant),
            compiling(variant),
            amount(variant.numbers.compile_peak_memory_bytes),
        )
        yield f"| {' | '.join(cells)} |"


def missing(there: Sequence[tuple[str, str, Path]]) -> Iterator[str]:
    """What compilers said where they made no program, how well both counts agree, and what has not been compiled."""
    apart = 0.0
    for size, target, file in there:
        result = Result.model_validate_json(file.read_text())
        if refused := result.compiled[0].refused:
            yield f"The compiler says of {size} on {target}: {refused}\n"
        if held := result.variants[0].numbers.argument_bytes:
            by_hand = held_on(TransformerLm.Parameters(**result.case.parameters), targets.find(target))
            apart = max(apart, abs(math.log(held / by_hand)))
    yield f"Arguments differ from what was counted by hand by {apart:.2%} at most."
    absent = [
        f"{size} on {target}"
        for size, target in product(SIZES, TARGETS)
        if not (RESULTS / f"{size}-{target}.result.json").exists()
    ]
    if absent:
        yield f"\nNot compiled yet: {figures.listed(absent)}."


def amount(size: int | None) -> str:
    """In bytes; empty where nobody knows."""
    return "" if size is None else figures.quantity(size, "B")


if __name__ == "__main__":
    main(sys.argv[1:])

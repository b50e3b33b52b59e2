"""Compile every workload for every target, and write which programs compile and why the others do not.

    python benchmarks/portability.py [FILE]

This writes docs/results/portability.md. FILE keeps what was compiled; a second call continues there. It needs
accelbench[jax,torch,targets-gpu,targets-tpu]. Nothing runs on a target: XLA compiles JAX's programs, and PyTorch's
operations are dispatched on arrays without numbers. Workloads have the small sizes of the tests.
"""

import json
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from accelbench import catalogue  # noqa: E402 - the tests' sizes are found by the path above
from accelbench.api.result import Result  # noqa: E402
from benchmarks.real import RecordFile  # noqa: E402
from workloads.small import SMALL  # noqa: E402

PAGE = ROOT / "docs" / "results" / "portability.md"
TARGETS = ("cpu", "h100", "a100", "v5e-4")
USES = ("jax/", "pytorch/eager")
"""Variants whose name begins so are compiled, except for op-by-op, which has no whole program. Of PyTorch, only eager
programs can be dispatched for a target."""
ACCELBENCH = (sys.executable, "-c", "from accelbench.cli.main import main; main()")
INTRODUCTION = """# Every workload on every target

`python benchmarks/portability.py`. Does a program that was written once compile for the CPU, for two GPUs and for four
chips of a TPU? XLA compiles each of JAX's programs for the target, and each eager program of PyTorch is dispatched on
arrays without numbers. Nothing runs, so this shows that a program compiles, not that it is fast or right there.
Workloads have small sizes. {versions}.

"""


def main(kept: RecordFile) -> None:
    """Compile what FILE does not have, and write the page."""
    began = time.monotonic()
    done = {record["workload"] for record in kept.records}
    for name in SMALL:
        if name not in done:
            print(name, file=sys.stderr, flush=True)
            kept.add({"workload": name, "cells": compile_workload(name)})
    PAGE.write_text(write_page(kept.records, time.monotonic() - began))


def compile_workload(name: str) -> list[dict[str, str]]:
    """Compile a workload's variants for all targets; return variant, target and outcome of each.

    The outcome is empty for a program that compiles. Otherwise it is the reason of the failure and its message.
    """
    uses = [use for use in catalogue.find(name).variants() if use.startswith(USES) and not use.endswith("op-by-op")]
    if not uses:
        return []
    settings = [f"{parameter}={json.dumps(value)}" for parameter, value in SMALL[name][0]]
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "out")
        command = [*ACCELBENCH, "run", name, "--target", ",".join(TARGETS), "--out", str(out)]
        command += [word for use in uses for word in ("--variant", use)]
        command += [word for setting in settings for word in ("--set", setting)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        results = [Result.model_validate_json(file.read_text()) for file in sorted(out.glob("*.result.json"))]
    if not results:
        lines = (ended.stderr or ended.stdout).strip().splitlines()
        return [_cell(use, target, f"not started: {lines[-1]}") for use in uses for target in TARGETS]
    return [
        _cell(variant.name, str(result.case.accelerator.target), _outcome(result, variant.name))
        for result in results
        for variant in result.variants
    ]


def _cell(variant: str, target: str, outcome: str) -> dict[str, str]:
    """Return a record of one program on one target."""
    return {"variant": variant, "target": target, "outcome": outcome}


def _outcome(result: Result, name: str) -> str:
    """Return why the variant `name` does not compile; empty if it does."""
    [variant] = [variant for variant in result.variants if variant.name == name]
    if variant.failure is not None:
        return f"{variant.failure.reason}: {variant.failure.message.splitlines()[0]}"
    is_compiled = any(compiled.variant == name for compiled in result.compiled)
    return "" if is_compiled else "no program was reported"


def write_page(records: Sequence[dict[str, Any]], seconds: float) -> str:
    """Return the page: a row for each workload, and below it why programs do not compile."""
    versions = ", ".join(f"{package} {version(package)}" for package in ("jax", "torch", "libtpu"))
    text = INTRODUCTION.format(versions=f"Python {platform.python_version()}, {versions}")
    outcomes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for record in records:
        for cell in record["cells"]:
            outcomes.setdefault((record["workload"], cell["target"]), []).append((cell["variant"], cell["outcome"]))
    compiled = Counter(not outcome for cells in outcomes.values() for _, outcome in cells)
    text += f"{compiled[True]:,} of {compiled.total():,} programs compile.\n\n"
    text += f"| workload | {' | '.join(TARGETS)} |\n|---|{'---|' * len(TARGETS)}\n"
    for record in records:
        cells = [_count(outcomes.get((record["workload"], target), [])) for target in TARGETS]
        text += f"| {record['workload']} | {' | '.join(cells)} |\n"
    text += "\n## What does not compile, and why\n\n"
    text += "".join(_reasons(outcomes)) or "Every program compiles.\n"
    return f"{text}\nThe last call took {seconds:.0f} s.\n"


def _count(cells: Sequence[tuple[str, str]]) -> str:
    """Return how many of the programs compile, such as `5 of 6`."""
    return f"{sum(not outcome for _, outcome in cells)} of {len(cells)}" if cells else "no program"


def _reasons(outcomes: dict[tuple[str, str], list[tuple[str, str]]]) -> Iterator[str]:
    """Yield a line for each reason, with the programs and targets that it is about."""
    places: dict[str, dict[str, list[str]]] = {}
    for (workload, target), cells in outcomes.items():
        for variant, outcome in cells:
            if outcome:
                programs = places.setdefault(outcome, {})
                programs.setdefault(f"{workload} {variant}", []).append(target)
    for outcome, programs in sorted(places.items(), key=lambda item: -len(item[1])):
        names = "; ".join(f"{program} ({', '.join(targets)})" for program, targets in programs.items())
        yield f"- {outcome}: {names}\n"


if __name__ == "__main__":
    main(RecordFile(Path(sys.argv[1]) if len(sys.argv) > 1 else None))

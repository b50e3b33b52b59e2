"""Measure how far correct programs are from float64, which `reference.FACTORS` and `reference.OUTPUT_ULPS` rest on.

    python benchmarks/parity.py > docs/results/parity.md

Every row of the first table is a real launch. `error` is the largest error of any number over the spread that a change
of one ulp causes; `sees` is the smallest detectable error, as a share of the output's size. The second table is of
means of squares, in units in the last place of the mean: the worst error of 20, and how far the mean moves if every
number moves by an ulp, up or down at random.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant, ParameterValue, Precision
from accelbench_runner.judge.parity import MISMATCH, compare, read_outputs
from accelbench_runner.judge.reference import EPSILON, FACTORS, OUTPUT_ULPS, reference_for
from accelbench_runner.protocol import Done, FactsReported, Failed, LaunchRequest, parse_message

Parameters = dict[str, ParameterValue]
SMALL: Parameters = {"size": 64, "length": 100}
CHAIN: Parameters = {"size": 512, "length": 100}
DRAWS = 20
LAUNCHES: list[tuple[str, Parameters, tuple[str, ...], tuple[Precision, ...]]] = [
    ("matmul-chain", SMALL, ("pytorch/eager", "jax/jit"), ("float64", "float32", "bfloat16")),
    ("matmul-chain", CHAIN, ("pytorch/eager", "jax/jit"), ("float32", "bfloat16", "float16")),
    ("matmul-chain", {"size": 512, "length": 1}, ("pytorch/eager", "jax/jit"), ("float32", "bfloat16")),
    ("matmul-chain", {"size": 2048, "length": 1}, ("pytorch/eager", "jax/jit"), ("float32",)),
    ("elementwise-fusion", {}, ("pytorch/eager", "jax/jit"), ("float32", "bfloat16")),
    ("xor", {"epochs": 100}, ("pytorch/no-nn", "jax/jit-step"), ("float32", "bfloat16", "float16")),
    ("xor", {"epochs": 100}, ("jax/scan-epochs",), ("float32", "bfloat16", "float16")),
    ("xor", {"epochs": 10_000}, ("jax/scan-epochs",), ("float64", "float32")),
]


def launch(case: Case, directory: Path) -> int:
    """Run the case's only variant; return the units behind its outputs."""
    reading, writing = os.pipe()
    request = LaunchRequest(
        case=case, variant=case.baseline, round=1, directory=str(directory), descriptor=writing, threads=1
    )
    with subprocess.Popen(
        [sys.executable, "-m", "accelbench_runner.launch"], stdin=subprocess.PIPE, pass_fds=[writing]
    ) as child:
        os.close(writing)
        assert child.stdin is not None
        child.stdin.write(request.to_json().encode())
        child.stdin.close()
        units = 0
        with os.fdopen(reading, "rb") as messages:
            for line in messages:
                match parse_message(line):
                    case FactsReported(values=values):
                        units = values.get("parityUnits", units)
                    case Failed(message=message):
                        raise RuntimeError(message)
                    case Done():
                        break
    return units


def sums() -> None:
    """Print means of ever more squares in float32: the effects of rounding the sum and of moving its terms."""
    import jax
    import torch

    torch.set_num_threads(1)
    compiled = torch.compile(lambda x: (x * x).mean())
    means = {
        "pytorch/eager": lambda x: (torch.from_numpy(x) ** 2).mean(),
        "pytorch/compile": lambda x: compiled(torch.from_numpy(x)),
        "jax/jit": jax.jit(lambda x: (x * x).mean()),
    }
    print("\n# A sum's own roundings, in units in the last place of it\n")
    print(f"| squares | {' | '.join(means)} | allowed | moved by its terms |")
    print("|---|---|---|---|---|---|")
    ulp, rng = EPSILON["float32"], np.random.default_rng(0)
    for exponent in (10, 14, 18, 22, 25):
        errors: dict[str, float] = dict.fromkeys(means, 0.0)
        moves = []
        for _ in range(DRAWS):
            x = rng.standard_normal(2**exponent).astype(np.float32)
            right = np.mean(np.square(x, dtype=np.float64))
            signs = rng.integers(0, 2, x.size) * 2.0 - 1.0
            moves.append(np.mean(np.square(x * (1 + ulp * signs))) / right - 1)
            for name, mean in means.items():
                errors[name] = max(errors[name], abs(float(mean(x)) / right - 1) / ulp)
        cells = " | ".join(f"{error:.1f}" for error in errors.values())
        moved = np.sqrt(np.mean(np.square(moves))) / ulp
        print(f"| {2**exponent:,} | {cells} | {OUTPUT_ULPS['float32']:g} | {moved:.1g} |", flush=True)


def main() -> None:
    """Print the report as Markdown."""
    print("# Errors of correct programs, in spreads\n")
    print("`python benchmarks/parity.py`; see `accelbench_runner.judge.reference`.\n")
    print("| workload | parameters | variant | precision | units | error | allowed | sees |")
    print("|---|---|---|---|---|---|---|---|")
    for workload, parameters, uses, precisions in LAUNCHES:
        for precision in precisions:
            for use in uses:
                case = Case(
                    name="all",
                    origin=CaseOrigin(run="parity", series="parity"),
                    workload=workload,
                    parameters=parameters,
                    variants=(CaseVariant(name=use, use=use),),
                    baseline=use,
                    measurement=CaseMeasurement(precision=precision),
                )
                with tempfile.TemporaryDirectory() as name:
                    directory = Path(name)
                    units = launch(case, directory)
                    right = reference_for(case, units, directory)
                    reading = compare(read_outputs(directory), right, units)
                sees = max(
                    float(np.median(right.tolerance(array)) / np.sqrt(np.mean(np.square(value))))
                    for array, value in right.values.items()
                )
                error = reading.worst_ratio * FACTORS[precision]
                shown = f"{error:.2g}" if reading.worst_ratio < MISMATCH else reading.detail
                print(
                    f"| {workload} | {json.dumps(parameters)[1:-1]} | {use} | {precision} | {units} "
                    f"| {shown} | {FACTORS[precision]:g} | {sees:.1g} |",
                    flush=True,
                )
    sums()


if __name__ == "__main__":
    main()

"""How far correct programs are from the float64 reference, in spreads: what `reference.FACTORS` rests on.

    python benchmarks/parity.py > docs/results/parity.md

Every row is a real launch. `error` is the largest error of any number over the spread that the computation makes of one
ulp; `sees` is the smallest error that would be caught, as a share of the output's own size.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant, ParameterValue, Precision
from accelbench_runner.parity import MISMATCH, compare, read_outputs
from accelbench_runner.protocol import Done, Facts, Failed, LaunchRequest, parse_message
from accelbench_runner.reference import FACTORS, reference

Parameters = dict[str, ParameterValue]
SMALL: Parameters = {"size": 64, "length": 100}
CHAIN: Parameters = {"size": 512, "length": 100}
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
    """Runs the case's only variant; returns the units that its outputs are after."""
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
                    case Facts(values=values):
                        units = values.get("parityUnits", units)
                    case Failed(message=message):
                        raise RuntimeError(message)
                    case Done():
                        break
    return units


def main() -> None:
    """The whole report, as Markdown."""
    print("# Errors of correct programs, in spreads\n")
    print("`python benchmarks/parity.py`; see `accelbench_runner.reference`.\n")
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
                    right = reference(case, units, directory)
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


if __name__ == "__main__":
    main()

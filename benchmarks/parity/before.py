"""Judge outputs by an old rule of parity, that of commit 1e6de44, with one tolerance for most of an array.

    python -m benchmarks.parity.before DIRECTORY

compares this file's tolerances with that commit's, which DIRECTORY contains:
`git archive 1e6de44 accelbench runner | tar -x -C DIRECTORY`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelbench.api.case import Precision
from accelbench.workload import Array, NamedArrays
from accelbench_runner.judge.arithmetic import EPSILON, is_float, round_array
from benchmarks.parity.corpus import PROGRAMS

SPREADS = {"float32": 64.0, "bfloat16": 4.0, "float16": 16.0}
"""Maximum error, as a multiple of the spread of the reference's output; `OUTPUT_ULPS` is added to it."""
OUTPUT_ULPS = {"float32": 16.0, "bfloat16": 1.0, "float16": 1.0}
SMALLEST = {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float16": 2.0**-14}
RUNS = 4
SEED = 1
"""Seed of the inputs on which both are compared."""
COMMITTED = """
import sys
from pathlib import Path
import numpy as np
from accelbench.workload import Arrays
from accelbench_runner.judge.reference import Reference, compute
from benchmarks.parity.corpus import PROGRAMS
for number, program in enumerate(PROGRAMS):
    for precision in program.precisions:
        with np.load(Path(sys.argv[1]) / f"{number}-{precision}.npz") as archive:
            inputs = dict(archive)
        run = lambda arrays, units: {"y": program.reference(*arrays.batches[0].values())}
        reference = Reference(*compute(run, Arrays(state={}, batches=(inputs,)), 1, precision), precision)
        np.savez(Path(sys.argv[1]) / f"{number}-{precision}-right.npz",
            tolerance=reference.tolerance("y"), sees_nothing=reference.sees_nothing())
"""
"""Program that computes the commit's tolerances."""


@dataclass(frozen=True)
class OldReference:
    """Hold the right output, and one tolerance for most of its elements."""

    value: Array
    tolerance: Array
    sees_nothing: bool
    """True if the tolerance is larger than the output, so that no error could be seen; this was a failure."""

    def refuses(self, output: Array) -> bool:
        """Return True if the rule refused the output."""
        if not np.isfinite(output).all() or self.sees_nothing:
            return True
        error = np.abs(output.astype(np.float64) - self.value.astype(np.float64))
        return bool(np.any(error > self.tolerance))


def compute(run: Callable[[NamedArrays], Array], inputs: NamedArrays, precision: Precision) -> OldReference:
    """Return the reference and its tolerance, from runs on inputs that are changed by one ulp.

    `inputs` are rounded to the type of `precision`.
    """
    rng = np.random.default_rng(0)
    step = EPSILON[precision]

    def perturb(array: Array) -> Array:
        """Return an array with each float one ulp larger or smaller, at random."""
        signs = rng.integers(0, 2, size=array.shape) * 2.0 - 1.0
        return array * (1 + step * signs) if is_float(array) else array

    with np.errstate(all="ignore"):
        value = np.asarray(run(inputs))
        outputs = [np.asarray(run({name: perturb(array) for name, array in inputs.items()})) for _ in range(RUNS)]
        changes = np.abs([output.astype(np.float64) - value.astype(np.float64) for output in outputs])
        if not is_float(value):
            return OldReference(value, np.max(changes, axis=0), sees_nothing=False)
        spread = np.sqrt(np.mean(np.square(changes), axis=0))
        typical = np.sqrt(np.mean(np.square(spread)))
    tolerance = SPREADS[precision] * np.maximum(spread, typical)
    tolerance = tolerance + OUTPUT_ULPS[precision] * step * np.abs(value) + SMALLEST[precision]
    sees_nothing = np.median(tolerance) > np.sqrt(np.mean(np.square(value))) > 0
    return OldReference(value, tolerance, bool(sees_nothing))


def main(committed: Path) -> None:
    """Compare the tolerances of this file with those of the commit, for all programs."""
    compared = different = 0
    with tempfile.TemporaryDirectory() as name:
        references: dict[str, OldReference] = {}
        for number, program in enumerate(PROGRAMS):
            for precision in program.precisions:
                inputs = {key: round_array(array, precision) for key, array in program.draw(SEED).items()}
                key = f"{number}-{precision}"
                np.savez(Path(name, f"{key}.npz"), **inputs)
                run = program.reference
                references[key] = compute(lambda arrays, run=run: run(*arrays.values()), inputs, precision)
        subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-c", COMMITTED, name],
            check=True,
            env={**os.environ, "PYTHONPATH": f"{committed}:{committed / 'runner'}:{Path(__file__).parents[2]}"},
        )
        for key, reference in references.items():
            with np.load(Path(name, f"{key}-right.npz")) as committed_reference:
                same = np.allclose(reference.tolerance, committed_reference["tolerance"], rtol=1e-12, atol=0)
                compared += 1
                different += not (same and reference.sees_nothing == bool(committed_reference["sees_nothing"]))
    print(f"{different} of {compared} differ")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

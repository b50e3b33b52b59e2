"""Run the program of a reference in different arithmetic, on the arrays from which variants start.

The policy's type is the floating-point type that the requested precision prescribes for arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from accelbench.api.case import Case, Precision
from accelbench.catalogue.inputs import generate, generate_unseen
from accelbench.catalogue.workload_checks import call_reference
from accelbench.workload import Array, Arrays, NamedArrays, Workload
from accelbench_runner.judge.arithmetic import NARROW, Noisy, as_noisy, is_float, map_arrays, round_arrays
from accelbench_runner.judge.own_program import OwnProgram


class ReferenceProgram(Protocol):
    """Run the reference's program in different arithmetic."""

    def exact(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the outputs after `units` units of work from `arrays`, in float64."""
        ...

    def rounded(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the outputs that the program can compute in the policy's type; leave out the others."""
        ...

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return the outputs that the program can compute with noise in every operation; leave out the others.

        Args:
            arrays: The arrays to start from.
            units: Units of work.
            precision: The precision policy. Noise is measured in units in the last place of its type.
            salt: Selects the noise, as a seed does; 0 for none.
            ulps: Maximum noise of a result, in units in the last place.
        """
        ...


@dataclass(frozen=True)
class NumpyProgram:
    """Run a reference that is written in NumPy."""

    run: Callable[[Arrays, int], NamedArrays]
    """Returns the outputs after a number of units of work from these arrays."""

    def exact(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the outputs after `units` units of work from `arrays`, in float64."""
        return self.run(arrays, units)

    def rounded(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the outputs as computed in the policy's type; leave out those that are computed in float64 anyway."""
        if precision == "float64":
            return {}
        if precision in NARROW or precision == "tf32":
            return self.noisy(arrays, units, precision, salt=0, ulps=0.0)  # rounds each operation, and adds no noise
        outputs = self.run(map_arrays(arrays, _to_single), units)
        return {
            name: value for name, value in outputs.items() if np.asarray(value).dtype not in (np.float64, np.complex128)
        }

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return the outputs that were computed with noise in every operation.

        Leave out floats that are no longer a `Noisy`, because the reference called a function such as `np.asarray`.
        """

        def to_noisy(array: Array) -> Array:
            """Return the array as one whose operations round to `precision` and add noise."""
            return as_noisy(array, precision, salt, ulps)

        outputs = self.run(map_arrays(arrays, to_noisy), units)
        return {
            name: np.asarray(value)
            for name, value in outputs.items()
            if isinstance(value, Noisy) or np.asarray(value).dtype.kind not in "fc"
        }


def _to_single(array: Array) -> Array:
    """Cast floats to float32 and complex numbers to complex64."""
    if array.dtype.kind == "c":
        return array.astype(np.complex64)
    return array.astype(np.float32) if is_float(array) else array


def program_of(case: Case, workload: Workload, parameters: Any) -> ReferenceProgram:
    """Return the program that computes the right outputs: the workload's reference, or else the baseline's program."""
    if workload.has_reference():
        return NumpyProgram(partial(call_reference, workload, parameters))
    return OwnProgram(case, workload, parameters)


def start_arrays(case: Case, workload: Workload, parameters: Any, unseen_seed: int | None) -> Arrays:
    """Return the arrays from which programs start, rounded to the requested precision.

    With `unseen_seed`, these are other inputs of the same kind, drawn with that seed.
    """
    arrays = generate(workload, parameters, case.measurement.seed)
    if unseen_seed is not None:
        arrays = generate_unseen(workload, parameters, arrays, unseen_seed)
    return round_arrays(arrays, case.arithmetic)

"""Run the program of a reference in different arithmetic, on the arrays from which variants start."""

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
        """Return the outputs that were computed in the policy's type; leave out others."""
        ...

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return the outputs that were computed with noise in every operation; leave out others.

        Args:
            arrays: The arrays to start from.
            units: Units of work.
            precision: The policy's type, whose units in the last place are the measure of noise.
            salt: Selects the noise, as a seed does; 0 for none.
            ulps: Maximum noise of a result, in units in the last place.
        """
        ...


@dataclass(frozen=True)
class NumpyProgram:
    """Run a reference that is written in NumPy."""

    run: Callable[[Arrays, int], NamedArrays]

    def exact(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the outputs after `units` units of work from `arrays`, in float64."""
        return self.run(arrays, units)

    def rounded(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the outputs in the policy's type; leave out those that the program computes in float64 anyway."""
        if precision == "float64":
            return {}
        if precision in NARROW or precision == "tf32":
            return self.noisy(arrays, units, precision, salt=0, ulps=0.0)
        outputs = self.run(map_arrays(arrays, _to_single), units)
        return {
            name: value for name, value in outputs.items() if np.asarray(value).dtype not in (np.float64, np.complex128)
        }

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return the outputs that were computed with noise in every operation.

        Leave out floats that are no longer a `Noisy`, because the reference called a function such as `np.asarray`.
        """

        def to_noisy(array: Array) -> Array:
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
    """Return the workload's reference, or the baseline's own program in its place."""
    if workload.has_reference():
        return NumpyProgram(partial(call_reference, workload, parameters))
    return OwnProgram(case, workload, parameters)


def start_arrays(case: Case, workload: Workload, parameters: Any, unseen_seed: int | None) -> Arrays:
    """Return the case's arrays, or those from an unseen seed, rounded to the requested precision."""
    arrays = generate(workload, parameters, case.measurement.seed)
    if unseen_seed is not None:
        arrays = generate_unseen(workload, parameters, arrays, unseen_seed)
    return round_arrays(arrays, case.measurement.precision)

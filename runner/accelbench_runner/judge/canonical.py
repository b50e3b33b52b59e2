"""Bring outputs into their canonical form before they are compared, by the workload's `canonical`.

A workload defines `canonical` if several different outputs are right. It is applied to the outputs of launches and of
every run of the reference, after the run, as ordinary arrays in float64. So it adds no rounding of the type that the
requested precision prescribes, and it gets no noisy arrays and no framework's arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from accelbench.api.case import Case, Precision
from accelbench.catalogue import script
from accelbench.catalogue.workload_checks import ERRORS, InvalidWorkloadError, call_canonical, location
from accelbench.workload import Array, Arrays, NamedArrays, Workload
from accelbench_runner.judge.arithmetic import map_arrays
from accelbench_runner.judge.reference_program import ReferenceProgram, start_arrays
from accelbench_runner.outputs import as_real


class CanonicalError(Exception):
    """Report that `canonical` cannot be applied to some outputs."""


@dataclass(frozen=True)
class CanonicalForm:
    """Apply a workload's `canonical` to outputs.

    Attributes:
        workload: The workload, which defines `canonical`.
        parameters: The case's parameters.
        draw: Returns the arrays that the program started from.
    """

    workload: Workload
    parameters: Any
    draw: Callable[[], Arrays]

    @property
    def function(self) -> str:
        """Return where `canonical` is defined, and its name, as `my_filter.py, line 12: Filter.canonical()`."""
        return location(self.workload.canonical)

    @cached_property
    def _inputs(self) -> Arrays:
        """Return the arrays that the program started from, as views that `canonical` cannot write to."""
        return map_arrays(self.draw(), _read_only)

    def apply(self, outputs: NamedArrays) -> NamedArrays:
        """Return the canonical form of the outputs, in float64; raises CanonicalError if `canonical` fails."""
        copies = {name: _in_float64(np.asarray(array)) for name, array in outputs.items()}
        try:
            with np.errstate(all="ignore"):
                return as_real(call_canonical(self.workload, self.parameters, self._inputs, copies))
        except InvalidWorkloadError as error:
            raise CanonicalError(str(error)) from error
        except ERRORS as error:
            raise CanonicalError(
                f"{self.function} raised {script.format_error(error)}; it was given the outputs {', '.join(outputs)}"
            ) from error


def _read_only(array: Array) -> Array:
    """Return a view of the array that cannot be written to."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _in_float64(array: Array) -> Array:
    """Return a copy in which floats are float64 and complex numbers complex128; other types stay as they are."""
    wide_type = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)
    return np.array(array, dtype=wide_type)


def canonical_form(
    case: Case, workload: Workload, parameters: Any, unseen_seed: int | None = None
) -> CanonicalForm | None:
    """Return the object that brings outputs into their canonical form; None if the workload defines no `canonical`.

    `unseen_seed` is the seed of the inputs from which the outputs were computed; None if these are the case's own.
    """
    if not workload.has_canonical():
        return None
    return CanonicalForm(workload, parameters, partial(start_arrays, case, workload, parameters, unseen_seed))


@dataclass(frozen=True)
class CanonicalProgram:
    """Run a reference's program, and return its outputs in their canonical form."""

    program: ReferenceProgram
    form: CanonicalForm

    def exact(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the outputs after `units` units of work in float64, in canonical form."""
        return self.form.apply(self.program.exact(arrays, units))

    def rounded(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the outputs that the program can compute in the type of `precision`, in canonical form.

        Empty if it can compute none.
        """
        outputs = self.program.rounded(arrays, units, precision)
        return self.form.apply(outputs) if outputs else {}

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return the outputs that the program can compute with noise in every operation, in canonical form.

        Empty if it can compute none.
        """
        outputs = self.program.noisy(arrays, units, precision, salt, ulps)
        return self.form.apply(outputs) if outputs else {}

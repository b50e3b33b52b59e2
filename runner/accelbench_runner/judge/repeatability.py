"""Check that a reference returns the same outputs each time that it gets the same inputs."""

from collections.abc import Callable

import numpy as np

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.workload import NamedArrays
from accelbench_runner.judge.arithmetic import root_mean_square
from accelbench_runner.judge.no_reference import StatefulProgramError
from accelbench_runner.judge.reference_program import ReferenceProgram, program_of, start_arrays
from accelbench_runner.outputs import as_real

MAXIMUM_RERUN_DIFFERENCE = 1e-9
"""Maximum difference of two runs of the reference, relative to the array: sums may run in another order."""
OTHER_SEED = 1
"""Seed of the inputs on which a baseline's own program runs to show whether it depends on earlier calls."""


def require_same(values: NamedArrays, rerun_values: NamedArrays, error: Callable[[str], Exception]) -> None:
    """Raise `error` with the name of an output if two runs from the same inputs differ in it."""
    for name, value in values.items():
        rerun_value = np.asarray(rerun_values[name])
        if rerun_value.shape != value.shape:
            raise error(name)
        difference = np.abs(rerun_value.astype(np.float64) - value.astype(np.float64))
        if np.any(difference > MAXIMUM_RERUN_DIFFERENCE * root_mean_square(value)):
            raise error(name)


def require_stateless(case: Case, used_program: ReferenceProgram, units: int) -> None:
    """Raise StatefulProgramError if the outputs of a baseline's own program depend on earlier calls.

    `used_program` has run before, on other inputs. It is compared on new inputs with a new instance of the program that
    has never run. The new instance comes from another run of the script, so that the two share no variable.
    """
    try:
        workload = catalogue.find_anew(case.workload)
        parameters = catalogue.parse_parameters(workload, case.parameters)
        inputs = start_arrays(case, workload, parameters, OTHER_SEED)
        values = program_of(case, workload, parameters).exact(inputs, units)
    except Exception:  # noqa: BLE001 - a program may accept no other inputs, which depends-on-inputs reports
        return
    with np.errstate(all="ignore"):
        rerun_values = used_program.exact(inputs, units)
    require_same(_as_arrays(values), _as_arrays(rerun_values), StatefulProgramError)


def _as_arrays(outputs: NamedArrays) -> dict[str, np.ndarray]:
    """Return the outputs as arrays of real numbers."""
    return dict(as_real({name: np.asarray(value) for name, value in outputs.items()}))

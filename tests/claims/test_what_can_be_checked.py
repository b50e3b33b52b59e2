"""The outputs of a claim can be checked; otherwise no measurement of it has a verdict."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.catalogue.inputs import generate
from accelbench.local.manifests import read
from accelbench.plan.cases import plan_cases
from accelbench.workload import Arrays, Workload
from accelbench_runner.judge.arithmetic import round_arrays
from accelbench_runner.judge.parity import compare
from accelbench_runner.judge.reference import Reference, compute, leaves_state_unchanged
from accelbench_runner.judge.reference_program import NumpyProgram
from accelbench_runner.launch.stages import MINIMUM_PARITY_UNITS
from tiers import one_of_each

CLAIMS = Path(__file__).parents[2] / "examples" / "claims"
NARROW = {"tf32", "bfloat16", "float16"}
LARGE = {"26-vit-training-step-in-tf32.yaml"}
"""Its reference takes minutes."""
SEVERAL = 8
"""Units, in which the article's own chain overflows."""


def narrow() -> list[ParameterSet]:
    """The manifests in a narrow precision, in which a small step is lost; a push tries one."""
    runs = [read(str(path))[0] for path in sorted(CLAIMS.glob("[0-9]*.yaml")) if path.name not in LARGE]
    precisions = {run.metadata.name: run.spec.measurement.precision for run in runs}
    names = [name for name, precision in precisions.items() if precision in NARROW]
    return one_of_each(names, by=lambda _name: "narrow")


def of_claim(name: str) -> list[Case]:
    [run] = read(str(CLAIMS / f"{name.removeprefix('claim-')}.yaml"))
    return list(plan_cases(run))


@pytest.mark.slow
@pytest.mark.parametrize("name", narrow())
def test_parity_fails_a_step_without_effect_in_every_claim(name: str) -> None:
    """A step without effect would not pass."""
    for case in of_claim(name):
        workload, parameters, arrays = given(case)
        units = max(MINIMUM_PARITY_UNITS, workload.measure(parameters).parity_units)
        precision = case.measurement.precision
        start = round_arrays(arrays, precision)
        program = NumpyProgram(partial(workload.reference, parameters))
        expected = compute(program, start, units, precision)
        assert not leaves_state_unchanged(start.state, expected), case.name
        reference = Reference(expected, precision)
        assert compare(reference.values, reference, units).compared, case.name


@pytest.mark.parametrize(("name", "finite"), [("01-eager-pytorch", True), ("01-eager-pytorch-as-published", False)])
def test_outputs_of_the_articles_own_chain_cannot_be_checked(name: str, finite: bool) -> None:
    """It is therefore shown with row 1 without deciding it."""
    [case] = of_claim(name)
    workload, parameters, arrays = given(case)
    with np.errstate(all="ignore"):
        values = workload.reference(parameters, arrays, SEVERAL)
    assert all(np.isfinite(value).all() for value in values.values()) is finite


def given(case: Case) -> tuple[Workload, Any, Arrays]:
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    return workload, parameters, generate(workload, parameters, case.measurement.seed)

"""Whether what a claim measures can be checked at all: where it cannot, no measurement of it has a verdict."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue.inputs import generate
from accelbench.claims import ledger
from accelbench.cli.manifests import read
from accelbench.plan.cases import plan_cases
from accelbench_runner.judge.reference import Reference, compute, stands_still
from accelbench_runner.launch.stages import LEAST_PARITY_UNITS

CLAIMS = Path(__file__).parents[2] / "examples" / "claims"
LARGE = {"20-compiling-a-vit-large.yaml"}
"""A reference of 300 million weights in float64 takes more memory than a test may."""


def timed() -> list[str]:
    """The manifests that settle a claim by times, on whatever hardware."""
    names = {name for claim in ledger.load(CLAIMS) for name in claim.manifests}
    found = []
    for name in sorted(names - LARGE):
        [run] = read(str(CLAIMS / name))
        workload = catalogue.find(run.spec.workload.name)
        measured = workload.measure(catalogue.parse_parameters(workload, run.spec.workload.parameters))
        if not run.spec.accelerator.targets and measured.protocol != "observe":
            found.append(name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", timed())
def test_parity_can_see_what_a_claim_measures(name: str) -> None:
    """Outputs are finite, and a step that does nothing would not pass."""
    [run] = read(str(CLAIMS / name))
    for case in plan_cases(run):
        workload = catalogue.find(case.workload)
        parameters = catalogue.parse_parameters(workload, case.parameters)
        arrays = generate(workload, parameters, case.measurement.seed)
        units = max(LEAST_PARITY_UNITS, workload.measure(parameters).parity_units)
        precision = case.measurement.precision
        values, spreads = compute(partial(workload.reference, parameters), arrays, units, precision)
        found = Reference(values, spreads, precision)
        assert all(np.isfinite(value).any() for value in values.values()), case.name
        assert not stands_still(arrays.state, found), case.name
        assert not found.sees_nothing(), case.name

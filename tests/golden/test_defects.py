"""Every defect is named by its own check and by no other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from accelbench.validity.certificate import validity_checks
from golden.defects import ARRIVALS, DEFECTS, HONEST, Defect
from golden.experiment import BASELINE, VARIANT, case, measure, outcomes

NEEDS_ROUNDS = {"autocorrelated", "unsteady"}
"""Cannot be told from few launches, and measuring ends with the round in which a variant is spoilt."""


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.check}: {defect.what}")
def test_a_defect_is_named_by_its_own_check_and_by_no_other(defect: Defect, tmp_path: Path) -> None:
    rounds = {"rounds_min": 2, "rounds_max": 2}
    asked = case(platform=defect.platform, environment=defect.environment, **{**rounds, **defect.measurement})
    result = measure(asked, defect.truth, tmp_path, around=defect.around)
    found = outcomes(result)
    assert found[defect.check, VARIANT] == defect.outcome, result.certificate
    untested = {name for (name, _), outcome in found.items() if outcome == "untested"}
    assert untested - NEEDS_ROUNDS <= {defect.check} | defect.hides
    failed = {name for (name, _), outcome in found.items() if outcome == "failed"}
    assert failed == ({defect.check} if defect.outcome == "failed" else set())
    (comparison,) = result.comparisons
    assert comparison.invalid == tuple(failed)
    assert (comparison.verdict is None) == bool(failed)


def test_every_check_has_a_defect_that_it_names() -> None:
    assert {defect.check for defect in DEFECTS} == {check.name for check in validity_checks()}


@pytest.mark.parametrize("protocol", [{}, ARRIVALS], ids=["blocks", "arrivals"])
def test_without_a_defect_every_check_passes(protocol: Mapping[str, Any], tmp_path: Path) -> None:
    asked = case(rounds_min=5, rounds_max=5, **protocol)
    found = outcomes(measure(asked, lambda variant, _: HONEST[variant], tmp_path))
    assert {key for key, outcome in found.items() if outcome != "passed"} == {("autocorrelated", VARIANT)}
    assert {variant for _, variant in found} == {BASELINE, VARIANT}

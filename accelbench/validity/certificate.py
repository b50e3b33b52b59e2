"""Run all validity checks on a case and collect their readings in a certificate."""

import importlib
import pkgutil
from functools import cache

import accelbench.validity
from accelbench.api.result import Certificate, Check
from accelbench.validity.check import ValidityCheck
from accelbench.validity.evidence import Evidence


@cache
def validity_checks() -> tuple[ValidityCheck, ...]:
    """Return the `CHECK` of each module in `accelbench/validity/`, sorted by name."""
    folder = pkgutil.iter_modules(accelbench.validity.__path__, prefix=f"{accelbench.validity.__name__}.")
    modules = [importlib.import_module(module.name) for module in folder]
    return tuple(sorted((module.CHECK for module in modules if hasattr(module, "CHECK")), key=lambda check: check.name))


def certify(evidence: Evidence, *, timed: bool = True) -> Certificate:
    """Run every check on the evidence; merge readings that are the same for all variants.

    Where launches observe, only checks with `observed` run. Where launches were not `timed` (`accelbench check`),
    those with `measured_only` do not run.
    """
    return Certificate(
        checks=tuple(
            reading
            for check in validity_checks()
            if (check.observed if evidence.nothing_timed else timed or not check.measured_only)
            for reading in _merge_equal(tuple(check.checks(evidence)), len(evidence.case.variants))
        )
    )


def _merge_equal(readings: tuple[Check, ...], variants: int) -> tuple[Check, ...]:
    """Merge the readings into one if there is one for each variant and they differ in nothing else."""
    merged = {reading.model_copy(update={"variant": None}) for reading in readings}
    return tuple(merged) if len(merged) == 1 and len(readings) == variants else readings

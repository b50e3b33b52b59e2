"""The certificate of a case: every check of this folder, with its reading and threshold."""

import importlib
import pkgutil
from functools import cache

import accelbench.validity
from accelbench.api.result import Certificate, Check
from accelbench.validity.check import ValidityCheck
from accelbench.validity.evidence import Evidence

UNTIMED = frozenset(
    {
        "denormals",
        "depends-on-inputs",
        "emulated",
        "gradients",
        "non-finite",
        "parity",
        "precision",
        "same-inputs",
        "same-protocol",
        "threads",
        "work-present",
        "work-skipped",
    }
)
"""What can be asked of launches that compute and are not timed."""


@cache
def validity_checks() -> tuple[ValidityCheck, ...]:
    """Every check, by name: the `CHECK` of each module in `accelbench/validity/`."""
    folder = pkgutil.iter_modules(accelbench.validity.__path__, prefix=f"{accelbench.validity.__name__}.")
    modules = [importlib.import_module(found.name) for found in folder]
    return tuple(sorted((module.CHECK for module in modules if hasattr(module, "CHECK")), key=lambda check: check.name))


def certify(evidence: Evidence, *, timed: bool = True) -> Certificate:
    """Every check's readings; one line for all variants where it says the same of each.

    Checks that cannot say anything are left out: those that ask about times or outputs where launches observe, and
    those that ask about times where launches were not `timed`.
    """
    return Certificate(
        checks=tuple(
            reading
            for check in validity_checks()
            if (check.observed if evidence.nothing_timed else timed or check.name in UNTIMED)
            for reading in _alike(tuple(check.checks(evidence)), len(evidence.case.variants))
        )
    )


def _alike(readings: tuple[Check, ...], variants: int) -> tuple[Check, ...]:
    """One reading in place of `variants` readings that differ in nothing but the variant."""
    merged = {reading.model_copy(update={"variant": None}) for reading in readings}
    return tuple(merged) if len(merged) == 1 and len(readings) == variants else readings

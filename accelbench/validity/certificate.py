"""Run all validity checks on a case and collect their outcomes in a certificate.

A `ValidityCheck` is the test, and a `Check` is one outcome of a test.
"""

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
    infos = pkgutil.iter_modules(accelbench.validity.__path__, prefix=f"{accelbench.validity.__name__}.")
    modules = [importlib.import_module(info.name) for info in infos]
    checks = [module.CHECK for module in modules if hasattr(module, "CHECK")]
    return tuple(sorted(checks, key=lambda check: check.name))


def certify(evidence: Evidence, *, timed: bool = True) -> Certificate:
    """Run the checks that apply to the launches. `timed` is False for the command `check`, which times nothing."""
    outcomes: list[Check] = []
    for check in validity_checks():
        if _applies(check, evidence, timed=timed):
            outcomes += _merge_equal(tuple(check.outcomes(evidence)), variant_count=len(evidence.case.variants))
    return Certificate(checks=tuple(outcomes))


def _applies(check: ValidityCheck, evidence: Evidence, *, timed: bool) -> bool:
    """Return True if the check applies to this evidence.

    To launches that only observe, only the checks with `observed` apply. To other launches all checks apply, but those
    with `arrivals_only` need requests that arrive, and those with `measured_only` need `timed` launches.
    """
    if evidence.only_observed:
        return check.observed
    if check.arrivals_only and evidence.case.measurement.arrivals is None:
        return False
    return timed or not check.measured_only


def _merge_equal(outcomes: tuple[Check, ...], *, variant_count: int) -> tuple[Check, ...]:
    """Return a single outcome, without a variant, if all variants have the same; else return all outcomes unchanged."""
    distinct_outcomes = {outcome.model_copy(update={"variant": None}) for outcome in outcomes}
    if len(distinct_outcomes) == 1 and len(outcomes) == variant_count:
        return tuple(distinct_outcomes)
    return outcomes

"""A variant in an environment of its own computes with the packages of that environment, or has no verdict."""

from typing import Any

import pytest

from accelbench.api.case import Case
from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import Check
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from judge.launches import VARIANT, a_case, a_launch

SITE = "/cache/before/lib/python3.11/site-packages"
OWN = CaseEnvironment(
    name="before",
    interpreter="/cache/before/bin/python",
    directories=(SITE,),
    packages={"jax": "0.9.2", "numpy": "2.4.6", "torch": "2.14.1"},
)
INSIDE = {
    "jax": {"version": "0.9.2", "file": f"{SITE}/jax/__init__.py"},
    "numpy": {"version": "2.4.6", "file": f"{SITE}/numpy/__init__.py"},
}


def case_with_environment() -> Case:
    plain = a_case()
    variants = [
        variant.model_copy(update={"environment": "before"} if variant.name == VARIANT else {})
        for variant in plain.variants
    ]
    return plain.model_copy(update={"environments": (OWN,), "variants": tuple(variants)})


def checks(*imported: Any, case: Case | None = None) -> list[Check]:
    launches = tuple(
        a_launch(number=number, facts={"imported": facts}) for number, facts in enumerate(imported, start=1)
    )
    certificate = certify(Evidence(case=case or case_with_environment(), launches=launches))
    return [check for check in certificate.checks if check.name == "environment"]


def test_packages_of_the_environment_in_the_versions_of_its_lock_pass() -> None:
    (check,) = checks(INSIDE)
    assert (check.outcome, check.variant) == ("passed", VARIANT)
    assert "jax 0.9.2" in check.reading


@pytest.mark.parametrize(
    ("module", "imported", "named"),
    [
        ("jax", {"version": "0.10.2", "file": "/default/site-packages/jax/__init__.py"}, "/default/site-packages/jax"),
        ("jax", {"version": "0.9.2", "file": "/default/site-packages/jax/__init__.py"}, "/default/site-packages/jax"),
        ("jax", {"version": "0.9.2", "file": f"{SITE}-other/jax/__init__.py"}, f"{SITE}-other"),
        ("jax", {"version": "0.9.1", "file": f"{SITE}/jax/__init__.py"}, "0.9.1"),
        ("flax", {"version": "0.12.6", "file": "/default/site-packages/flax/__init__.py"}, "flax"),
    ],
    ids=["another release", "the same release from elsewhere", "a similar path", "another version", "a library"],
)
def test_a_package_from_outside_the_environment_fails(module: str, imported: dict[str, str], named: str) -> None:
    (check,) = checks(INSIDE | {module: imported})
    assert check.outcome == "failed"
    assert named in check.reading
    assert "before" in check.reading


def test_one_launch_that_imported_another_package_is_enough() -> None:
    leaked = INSIDE | {"numpy": {"version": "2.4.6", "file": "/default/site-packages/numpy/__init__.py"}}
    (check,) = checks(INSIDE, leaked, INSIDE)
    assert check.outcome == "failed"
    assert check.reading.startswith("round 2")


def test_another_build_is_not_another_version() -> None:
    (check,) = checks(INSIDE | {"torch": {"version": "2.14.1+cu130", "file": f"{SITE}/torch/__init__.py"}})
    assert check.outcome == "passed"


@pytest.mark.parametrize("imported", [None, "nonsense"])
def test_a_launch_that_does_not_report_its_imports_fails(imported: Any) -> None:
    (check,) = checks(imported)
    assert check.outcome == "failed"


def test_variants_in_accelbenchs_own_environment_are_not_compared_with_a_lock() -> None:
    elsewhere = {"jax": {"version": "0.10.2", "file": "/anywhere/jax/__init__.py"}}
    assert checks(elsewhere, case=a_case()) == []

"""`accelbench run` accepts a script file and environments for variants, which a cluster refuses."""

import json

import pytest

from accelbench.api.rules import ENVIRONMENTS_ON_LAPTOPS, LAPTOP_ONLY
from api.manifests import changed
from api.refusals import from_us
from api.requests import Runs

LAPTOP = changed({"spec.workload": {"script": {"file": "my_filter.py"}}})


def test_a_script_next_to_the_manifest_is_accepted_on_a_laptop() -> None:
    assert from_us(json.dumps(LAPTOP)) == set()


def test_a_script_cannot_come_from_both_a_file_and_a_config_map() -> None:
    both = {"file": "my_filter.py", "configMapKeyRef": {"name": "mine", "key": "my_filter.py"}}
    refusal = "spec.workload.script: Invalid value: give exactly one of file, configMapKeyRef"
    assert from_us(json.dumps(changed({"spec.workload": {"script": both}}))) == {refusal}


def test_a_cluster_refuses_a_file_and_explains_how_to_create_a_config_map(runs: Runs) -> None:
    assert runs.refusals_to_create(LAPTOP) == {f"spec.workload.script.file: Forbidden: {LAPTOP_ONLY.message}"}


BEFORE = {"name": "before", "requirements": ["jax==0.9.2"], "python": "3.11"}
INTERPRETER = {"name": "own", "python": "/opt/own/bin/python"}
VARIANTS = [{"use": "jax/jit"}, {"use": "jax/jit", "name": "before", "environment": "before"}]


def test_environments_are_accepted_on_a_laptop() -> None:
    manifest = changed({"spec.environments": [BEFORE, INTERPRETER], "spec.variants": VARIANTS})
    assert from_us(json.dumps(manifest)) == set()


@pytest.mark.parametrize(
    ("environments", "refusal"),
    [
        (
            [],
            'spec.variants: Invalid value: no environment is called "before"; correct it here or in spec.environments',
        ),
        (
            [BEFORE, INTERPRETER, BEFORE],
            'spec.environments: Invalid value: two environments are called "before"; give one of them another name',
        ),
        (
            [{"name": "before", "python": "3.12"}],
            (
                "spec.environments[0]: Invalid value: give requirements to install, or in python the absolute path of "
                "an interpreter"
            ),
        ),
        (
            [BEFORE | {"python": "3.10"}],
            (
                'spec.environments[0].python: Invalid value: "3.10": accelbench measures in Python 3.11 to 3.13: write '
                "one of these, such as 3.12, or the absolute path of an interpreter"
            ),
        ),
    ],
)
def test_environments_that_cannot_be_created_are_refused(environments: list[dict[str, str]], refusal: str) -> None:
    assert from_us(json.dumps(changed({"spec.environments": environments, "spec.variants": VARIANTS}))) == {refusal}


def test_a_cluster_refuses_environments_because_variants_run_in_the_image(runs: Runs) -> None:
    manifest = changed({"spec.environments": [BEFORE], "spec.variants": VARIANTS})
    assert runs.refusals_to_create(manifest) == {f"spec.environments: Forbidden: {ENVIRONMENTS_ON_LAPTOPS.message}"}

"""What `accelbench run` takes and no cluster does: a file beside the manifest."""

import json

import pytest

from accelbench.api.rules import LAPTOP_ONLY
from api.manifests import changed
from api.refusals import from_us
from api.requests import Runs

LAPTOP = changed({"spec.workload": {"script": {"file": "my_filter.py"}}})


def test_a_file_beside_the_manifest_is_fine_on_a_laptop() -> None:
    assert from_us(json.dumps(LAPTOP)) == set()


def test_a_file_and_a_config_map_are_one_too_many() -> None:
    both = {"file": "my_filter.py", "configMapKeyRef": {"name": "mine", "key": "my_filter.py"}}
    said = "spec.workload.script: Invalid value: give exactly one of file, configMapKeyRef"
    assert from_us(json.dumps(changed({"spec.workload": {"script": both}}))) == {said}


@pytest.mark.cluster
def test_a_cluster_says_how_to_put_it_into_a_config_map(runs: Runs) -> None:
    assert runs.refusals_to_create(LAPTOP) == {f"spec.workload.script.file: Forbidden: {LAPTOP_ONLY.message}"}

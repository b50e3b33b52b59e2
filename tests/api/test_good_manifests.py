import json
from typing import Any

import pytest

from accelbench.api.manifest import load_manifests
from accelbench.api.run import BenchmarkRun
from api.good import GOOD_CHANGES
from api.manifests import GOOD, changed
from api.requests import Runs
from cluster.cluster import Cluster

DEFAULTS = {
    "measurement": {
        "precision": "float32",
        "rounds": {"min": 5, "max": 20},
        "targetRelativeError": "1%",
        "confidence": "95%",
        "equivalenceMargin": "2%",
        "timeLimitSeconds": 600,
        "seed": 0,
        "acceptNoise": False,
    },
    "accelerator": {"profile": "cpu", "devicesPerNode": 1, "nodes": 1},
    "runPolicy": {"suspend": False, "cancel": False, "parallelism": 1, "infrastructureRetries": 1}
    | {"disruptionRetries": 10, "failedJobsHistoryLimit": 3, "failedJobsHistorySeconds": 3600}
    | {"resultRetentionPolicy": "Retain"},
    "className": "accelbench",
}


def loaded(changes: dict[str, Any]) -> BenchmarkRun:
    (run,) = load_manifests(json.dumps(changed(changes)), "good.yaml")
    return run


@pytest.mark.parametrize("changes", GOOD_CHANGES.values(), ids=GOOD_CHANGES)
def test_validate_accepts(changes: dict[str, Any]) -> None:
    assert loaded(changes).kind == "BenchmarkRun"


@pytest.mark.parametrize("changes", GOOD_CHANGES.values(), ids=GOOD_CHANGES)
def test_the_server_stores_the_run_that_validate_reads(runs: Runs, changes: dict[str, Any]) -> None:
    assert BenchmarkRun.model_validate(runs.create(changed(changes))).spec == loaded(changes).spec


def test_an_applied_run_comes_back_with_its_defaults(server: Cluster) -> None:
    server.apply(GOOD)
    assert server.get("bmr", "matmul-chain")["spec"] == GOOD["spec"] | DEFAULTS


def test_a_field_that_is_given_keeps_its_siblings_defaults(server: Cluster) -> None:
    server.apply(changed({"spec.measurement.rounds": {"max": 9}}))
    assert server.get("bmr", "matmul-chain")["spec"]["measurement"]["rounds"] == {"min": 5, "max": 9}


def test_a_run_without_a_series_belongs_to_the_one_of_its_name() -> None:
    assert loaded({}).series == "matmul-chain"
    assert loaded({"spec.series": "nightly"}).series == "nightly"


def test_the_first_variant_is_the_baseline_unless_one_is_named() -> None:
    assert loaded({}).baseline == "pytorch/eager"
    assert loaded({"spec.variants[0].name": "eager"}).baseline == "eager"
    assert loaded({"spec.baseline": "jax/jit"}).baseline == "jax/jit"

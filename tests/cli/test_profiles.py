"""Test `accelbench profiles` with a real API server and nodes without a kubelet."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelbench.api import labels
from accelbench.terminal.profiles import ClusterContents, match_profiles
from cluster.cluster import Cluster
from operator_world.pools import POOLS, PoolNodes

CLASS = "of-this-test"
PROFILES = """
h100: {preset: gke-nvidia-h100, namespaces: [ml], pricePerHour: 11.06 USD}
v5e: {preset: gke-v5e-2x4}
"""
THERE = {name: POOLS[name] for name in ("plain", "gke-h100", "v5e-2x4", "v5e-2x4-two-hosts", "amd")}


def profiles(*arguments: str, kubeconfig: Path | None = None, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command without the packages named in `without`."""
    program = f"import sys; sys.modules.update({{name: None for name in {without.split()!r}}})\n"
    program += "from accelbench.cli.main import main; main()"
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig or "/nowhere"), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", program, "profiles", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_the_kubernetes_client_the_error_names_the_extra_to_install() -> None:
    done = profiles(without="kubernetes")
    assert done.returncode == 2
    assert "accelbench[kubectl]" in done.stderr


def test_a_missing_kubeconfig_is_named() -> None:
    done = profiles()
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, users: [{name: x, user: {}}],"
        " clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: x, context: {cluster: x, user: x}}]}"
    )
    done = profiles(kubeconfig=config)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_config_map_of_another_namespace_replaces_no_profile_and_is_named() -> None:
    def config_map(namespace: str, text: str) -> dict[str, object]:
        return {"metadata": {"namespace": namespace, "name": "profiles"}, "data": {"profiles.yaml": text}}

    own, planted = (
        config_map("ops", "cpu: {preset: cpu, pricePerHour: 2 USD}"),
        config_map("team-a", "cpu: {preset: cpu, pricePerHour: 1 USD}"),
    )
    [cpu] = match_profiles(ClusterContents([own], [], (), ())).of_profile("cpu").rows
    assert (cpu.source, cpu.profile.price_per_hour) == ("ops/profiles", "2 USD")

    matches = match_profiles(ClusterContents([own, planted], [], (), ()))
    prices = {row.source: row.profile.price_per_hour for row in matches.of_profile("cpu").rows}
    assert prices == {"ops/profiles": "2 USD", "team-a/profiles": "1 USD"}
    [note] = [note for note in matches.notes if "team-a/profiles" in note]
    assert "--operator-namespace" in note


def test_a_profile_whose_nodes_have_several_architectures_is_named() -> None:
    amounts = {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "64Gi", "pods": "110"}
    nodes = [
        {
            "metadata": {"name": arch, "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": arch}},
            "status": {"allocatable": amounts},
        }
        for arch in ("amd64", "arm64")
    ]

    def notes(text: str) -> list[str]:
        config_map = {"metadata": {"namespace": "ops", "name": "mine"}, "data": {"profiles.yaml": text}}
        found = match_profiles(ClusterContents([config_map], nodes, (), ()))
        return [note for note in found.notes if "arch" in note]

    assert notes("") == ["profile cpu fits nodes of amd64 and arm64: set its arch to that of its image"]
    assert notes("cpu: {platform: cpu, arch: amd64}") == []


@pytest.fixture
def offering(cluster: Cluster) -> Iterator[Cluster]:
    marks = {labels.PROFILES: "true", labels.CLASS: CLASS}
    body = {"metadata": {"name": "mine", "labels": marks}, "data": {"profiles.yaml": PROFILES}}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap"} | body)
    with PoolNodes(cluster, THERE, tainted=False):
        yield cluster


def of(offering: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command for the operator of this test: others may have published profiles in other namespaces."""
    place = ("--class", CLASS, "--operator-namespace", offering.namespace)
    return profiles(*arguments, *place, kubeconfig=offering.kubeconfig)


def test_profiles_and_nodes_are_matched_with_reasons_and_devices_without_a_profile(offering: Cluster) -> None:
    done = of(offering, "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    by_name = {each["name"]: each for each in found["profiles"]}
    fitting = {
        name: [node["name"] for node in each["nodes"] if node["fits"] and node["name"] in THERE]
        for name, each in by_name.items()
    }
    assert fitting == {"cpu": ["plain"], "nvidia": ["gke-h100"], "h100": ["gke-h100"], "v5e": ["v5e-2x4"]}
    assert (by_name["h100"]["pricePerHour"], by_name["h100"]["namespaces"]) == ("11.06 USD", ["ml"])
    assert by_name["v5e"]["asksFor"]["google.com/tpu"] == "8"
    (multi_host,) = (node for node in by_name["v5e"]["nodes"] if node["name"] == "v5e-2x4-two-hosts")
    assert multi_host["why"] == [{"cause": "resource", "message": "offers 4 google.com/tpu, short of 8 google.com/tpu"}]
    assert {each["resource"]: (each["nodes"], each["ready"]) for each in found["uncovered"]} == {
        "amd.com/gpu": (["amd"], ["amd", "amd-mi300x"]),
        "google.com/tpu": (["v5e-2x4-two-hosts"], []),
    }


def test_the_overview_fits_a_terminal_and_one_profile_shows_every_node(offering: Cluster) -> None:
    overview = of(offering)
    assert overview.returncode == 0, overview.stderr
    (h100,) = (line for line in overview.stdout.splitlines() if line.strip().startswith("h100"))
    assert "1 nvidia.com/gpu," in h100
    assert "11.06 USD" in h100
    assert "amd.com/gpu" in overview.stdout
    assert "no nvidia.com/gpu" in h100

    one = of(offering, "h100")
    (line,) = (line for line in one.stdout.splitlines() if line.strip().startswith("plain"))
    assert "does not fit" in line
    assert "cloud.google.com/gke-accelerator" in line

    unknown = of(offering, "h10")
    assert unknown.returncode == 2
    assert "h100?" in unknown.stderr


def test_a_missing_operator_is_reported(cluster: Cluster) -> None:
    done = profiles("--class", "nobodys", kubeconfig=cluster.kubeconfig)
    assert done.returncode == 0
    assert done.stderr.startswith("note: ")

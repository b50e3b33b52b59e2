"""One version, made by one command, of which the workflows call no other."""

from __future__ import annotations

import platform
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import accelbench
import release.build
from chart.helm import helm
from cluster.errors import BuildError, ToolMissingError
from image.build import MACHINES, NATIVE
from pages.machine import wheel
from release.build import check_tag, package_chart, release_image, release_plugin, write_sums
from release.publish import is_plain, publish_chart
from release.registry import running_registry

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
VERSION = accelbench.__version__


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("charts/accelbench/Chart.yaml", r"^version: (.+)$"),
        ("charts/accelbench/Chart.yaml", r"^appVersion: (.+)$"),
        ("deploy/operator.yaml", r"image: accelbench-operator:(.+)$"),
        ("deploy/operator.yaml", r"value: accelbench-runner:(.+)$"),
        ("examples/kustomize/kustomization.yaml", r"newTag: (.+)$"),
        ("examples/kustomize/kustomization.yaml", r"accelbench-runner:(.+)$"),
        ("docs/operations/install.md", r"accelbench-operator-(\d+\.\d+\.\d+)-"),
        ("docs/operations/install.md", r"accelbench-\$target:(\S+)"),
        ("docs/operations/pools.md", r"accelbench-runner-tpu:([^}\s]+)"),
        ("docs/kubectl.md", r"kubectl-accelbench-v(\d+\.\d+\.\d+)-"),
    ],
)
def test_every_place_that_names_the_version_names_the_packages(file: str, pattern: str) -> None:
    assert set(re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)) == {VERSION}


def test_a_tag_of_another_version_is_refused() -> None:
    check_tag("")
    check_tag(f"v{VERSION}")
    with pytest.raises(BuildError, match=r"the tag v9\.9\.9 is not v.*__version__"):
        check_tag("v9.9.9")


def test_checksums_are_those_that_sha256sum_finds(tmp_path: Path) -> None:
    package_chart(tmp_path)
    sums = write_sums(tmp_path)
    check = ["sha256sum", "--check", "--strict", sums.name]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    with (tmp_path / f"accelbench-{VERSION}.tgz").open("ab") as chart:
        chart.write(b"spoiled")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode != 0


@pytest.mark.slow
def test_a_release_has_the_plugin_that_krew_installs_under_its_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = wheel(tmp_path / "dist")
    monkeypatch.setattr(release.build, "DIST", dist)
    here = f"{platform.system().lower()}-{NATIVE}"
    uri = "https://downloads.example.com/accelbench"
    assert release.build.main(["--images", "", "--platforms", here, "--plugin-uri", uri]) == 0
    archive = f"kubectl-accelbench-v{VERSION}-{here}.tar.gz"
    [offered] = yaml.safe_load((dist / "accelbench.yaml").read_text())["spec"]["platforms"]
    sums = dict(reversed(line.split()) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert (offered["uri"], offered["sha256"]) == (f"{uri}/{archive}", sums[archive])
    with tarfile.open(dist / archive) as packed:
        pythons = {name.split("/")[1] for name in packed.getnames() if name.startswith("lib/cp")}
    assert {"cp311", "cp312", "cp313", "cp314"} <= pythons
    assert {"accelbench.yaml", f"accelbench-{VERSION}.tgz"} <= sums.keys()


def test_the_plugin_is_built_from_the_released_wheel(tmp_path: Path) -> None:
    (tmp_path / "accelbench-0.0.0-py3-none-any.whl").touch()
    with pytest.raises(BuildError, match=f"has no wheel of {re.escape(VERSION)}: make wheel"):
        release_plugin(tmp_path, "")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_of_make_only(workflow: Path) -> None:
    offered = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        called = re.fullmatch(r"(?:sudo --preserve-env=[A-Z_,]+ )?make ([a-z0-9-]+)", command)
        assert called, command
        assert called[1] in offered


def test_only_a_registry_on_this_machine_is_used_without_tls() -> None:
    assert is_plain("127.0.0.1:5000/ml")
    assert is_plain("localhost:5000")
    assert not is_plain("registry.example.com/ml")


@pytest.mark.slow
def test_the_chart_is_pulled_from_a_registry_as_it_was_pushed(tmp_path: Path) -> None:
    pushed = package_chart(tmp_path)
    with running_registry(tmp_path) as address:
        publish_chart(tmp_path, f"{address}/ml")
        pulled = tmp_path / "pulled"
        pulled.mkdir()
        place = (f"oci://{address}/ml/charts/accelbench", f"--version={VERSION}", "--plain-http")
        done = helm("pull", *place, "--destination", pulled)
    assert done.returncode == 0, done.stderr
    assert (pulled / pushed.name).read_bytes() == pushed.read_bytes()


def test_a_release_names_an_architecture_that_this_machine_cannot_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr("release.build.say", messages.append)
    foreign = next(name for name in MACHINES if name != NATIVE)
    monkeypatch.setattr("image.build.EMULATORS", tmp_path / "none")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(ToolMissingError, match=f"nothing here runs programs of {foreign}"):
        release_image("operator", tmp_path, [foreign])
    monkeypatch.delenv("CI")
    with pytest.raises(BuildError, match="no image of the operator was built"):
        release_image("operator", tmp_path, [foreign])
    assert messages == [
        f"no operator for {foreign}: nothing here runs programs of {foreign} (Debian: qemu-user-static)"
    ]

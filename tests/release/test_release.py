"""One version, made by one command, of which the workflows call no other."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import subprocess
import tarfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import accelbench
import release.build
from chart.helm import helm
from cluster.errors import BuildError, ToolMissingError
from cluster.ports import free_port
from cluster.wait import wait_until
from image.build import MACHINES, NATIVE
from pages.machine import wheel
from release.build import check_tag, package_chart, release_image, release_plugin, write_sums
from release.publish import is_plain, publish_chart, publish_image
from release.tools import REGISTRY, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_a_plugin_is_made_of_the_wheel_that_is_released(tmp_path: Path) -> None:
    (tmp_path / "accelbench-0.0.0-py3-none-any.whl").touch()
    with pytest.raises(BuildError, match=f"has no wheel of {re.escape(VERSION)}: make wheel"):
        release_plugin(tmp_path, "")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_make_offers_and_nothing_else(workflow: Path) -> None:
    offered = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        called = re.fullmatch(r"(?:sudo --preserve-env=[A-Z_,]+ )?make ([a-z0-9-]+)", command)
        assert called, command
        assert called[1] in offered


def test_only_a_registry_on_this_machine_is_spoken_to_without_tls() -> None:
    assert is_plain("127.0.0.1:5000/ml")
    assert is_plain("localhost:5000")
    assert not is_plain("registry.example.com/ml")


@contextlib.contextmanager
def running_registry(directory: Path) -> Iterator[str]:
    """The distribution registry, on this machine."""
    address = f"127.0.0.1:{free_port()}"
    configuration = directory / "registry.yaml"
    storage = {"filesystem": {"rootdirectory": str(directory / "storage")}}
    configuration.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": address}}))
    quiet = subprocess.DEVNULL
    with subprocess.Popen([tool(REGISTRY), "serve", configuration], stdout=quiet, stderr=quiet) as process:
        try:
            wait_until(lambda: _answers(address), what="the registry to answer")
            yield address
        finally:
            process.terminate()


def get(address: str, accept: str = "*/*") -> Any:
    """What a registry on this machine says."""
    opener = urllib.request.build_opener()
    opener.addheaders = [("Accept", accept)]
    with opener.open(f"http://{address}", timeout=30) as answer:
        return json.load(answer)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/", timeout=5):
            return True
    except OSError:
        return False


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


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release has of the operator's image: the smaller one, and made in the same way."""
    directory = tmp_path_factory.mktemp("dist")
    release_image("operator", directory, [NATIVE])
    return directory


@pytest.mark.node
@pytest.mark.timeout(1800)
def test_an_image_comes_with_the_packages_that_it_holds_and_their_versions(released: Path) -> None:
    bill = json.loads((released / f"accelbench-operator-{VERSION}-{NATIVE}.cdx.json").read_text())
    described = bill["metadata"]["component"]
    assert (bill["bomFormat"], described["version"]) == ("CycloneDX", VERSION)
    held = {(part["name"].lower(), part.get("version")) for part in bill["components"]}
    pins = re.findall(r"^(kopf|kubernetes|pydantic)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {("accelbench", VERSION), *pins} <= held
    assert "torch" not in {name for name, _ in held}


@pytest.mark.node
@pytest.mark.timeout(1800)
def test_a_registry_gives_the_image_that_was_built_for_its_architecture(released: Path, tmp_path: Path) -> None:
    with running_registry(tmp_path) as address:
        publish_image("operator", released, f"{address}/ml")
        image = f"{address}/v2/ml/accelbench-operator"
        index = get(f"{image}/manifests/{VERSION}", "application/vnd.oci.image.index.v1+json")
        (of_ours,) = index["manifests"]
        manifest = get(f"{image}/manifests/{of_ours['digest']}", of_ours["mediaType"])
        configuration = get(f"{image}/blobs/{manifest['config']['digest']}")
    assert of_ours["platform"] == {"architecture": NATIVE, "os": "linux"}
    assert configuration["architecture"] == NATIVE
    assert configuration["config"]["Labels"]["org.opencontainers.image.version"] == VERSION
    with tarfile.open(released / f"accelbench-operator-{VERSION}-{NATIVE}.tar") as archive:
        assert f"blobs/{manifest['config']['digest'].replace(':', '/')}" in archive.getnames()


def test_a_release_says_which_architecture_this_machine_cannot_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("release.build.say", said.append)
    foreign = next(name for name in MACHINES if name != NATIVE)
    monkeypatch.setattr("image.build.EMULATORS", tmp_path / "none")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(ToolMissingError, match=f"nothing here runs programs of {foreign}"):
        release_image("operator", tmp_path, [foreign])
    monkeypatch.delenv("CI")
    with pytest.raises(BuildError, match="no image of the operator was built"):
        release_image("operator", tmp_path, [foreign])
    assert said == [f"no operator for {foreign}: nothing here runs programs of {foreign} (Debian: qemu-user-static)"]

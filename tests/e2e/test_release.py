"""A release's image, its bill of materials, and what a registry gives of them."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

import accelbench
from image.build import NATIVE
from pages.page import REGISTRY, Page
from release.build import release_image
from release.publish import publish_image
from release.registry import get, running_registry
from release.tools import COSIGN, tool

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
VERSION = accelbench.__version__


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release has of the operator's image: the smaller one, and made in the same way."""
    directory = tmp_path_factory.mktemp("dist")
    release_image("operator", directory, [NATIVE])
    return directory


def test_an_image_comes_with_the_packages_that_it_holds_and_their_versions(released: Path) -> None:
    bill = json.loads((released / f"accelbench-operator-{VERSION}-{NATIVE}.cdx.json").read_text())
    described = bill["metadata"]["component"]
    assert (bill["bomFormat"], described["version"]) == ("CycloneDX", VERSION)
    held = {(part["name"].lower(), part.get("version")) for part in bill["components"]}
    pins = re.findall(r"^(kopf|kubernetes|pydantic)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {("accelbench", VERSION), *pins} <= held
    assert "torch" not in {name for name, _ in held}


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


def cosign(command: str, directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a command of cosign in a directory with a key, whose password is empty."""
    program, *arguments = command.split()
    assert program == "cosign"
    environment = os.environ | {"COSIGN_PASSWORD": ""}
    options = (*arguments, *options)
    return subprocess.run(
        [tool(COSIGN), *options], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def test_a_published_image_is_verified_by_the_commands_of_the_page_and_with_no_other_key(
    released: Path, tmp_path: Path
) -> None:
    page = Page.read("docs/operations/security.md")
    make_key, publish, *verify = (command.text for command in page.commands if command.heading == "Signatures")
    assert publish.startswith(f"make publish REGISTRY={REGISTRY} ")
    own, other = tmp_path / "own", tmp_path / "other"
    for directory in (own, other):
        directory.mkdir()
        assert cosign(make_key, directory).returncode == 0
    with running_registry(tmp_path) as address:
        # As `make publish` does for each image; the runner's takes minutes to build.
        digest = publish_image("operator", released, f"{address}/ml", str(own / publish.rpartition("SIGNING_KEY=")[2]))
        for command in verify:
            of_ours = command.replace(REGISTRY, f"{address}/ml").replace("$DIGEST", digest)
            verified = cosign(of_ours, own, "--allow-http-registry")
            assert verified.returncode == 0, verified.stderr
            assert cosign(of_ours, other, "--allow-http-registry").returncode != 0
    [statement] = map(json.loads, verified.stdout.splitlines())
    bill = json.loads(base64.b64decode(statement["payload"]))["predicate"]
    assert bill == json.loads((released / f"accelbench-operator-{VERSION}-{NATIVE}.cdx.json").read_text())

"""The contents of the Dockerfile's images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import accelbench
from image.archive import Image, read_archive
from image.build import NATIVE, Target, base_layers, build_image

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = "opt/accelbench/requirements.txt"
MEBIBYTE = 2**20
BUILD_TOOLS = {"gcc", "g++", "cc", "c++", "make", "uv", "cmake", "ninja"}


def built(target: Target) -> Image:
    return read_archive(build_image(target), base_layers(), texts={"etc/passwd", REQUIREMENTS})


@pytest.fixture(scope="module")
def operator() -> Image:
    return built("operator")


@pytest.fixture(scope="module")
def runner() -> Image:
    return built("runner")


@pytest.fixture(params=["operator", "runner"])
def image(request: pytest.FixtureRequest) -> Image:
    found: Image = request.getfixturevalue(request.param)
    return found


def packages(image: Image) -> set[str]:
    found = (re.search(r"/site-packages/([^/]+)", path) for path in image.files)
    return {match[1].partition("-")[0].lower() for match in found if match}


def programs(image: Image) -> set[str]:
    return {path.rpartition("/")[2] for path in image.files if re.search(r"(^|/)s?bin/[^/]+$", path)}


def pins(text: str) -> set[str]:
    return set(re.findall(r"^(\S+==\S+)", text, re.MULTILINE))


def test_the_image_of_the_operator_is_small(operator: Image) -> None:
    assert operator.size_bytes < 250 * MEBIBYTE


def test_the_image_of_the_operator_holds_no_framework_and_no_build_tools(operator: Image) -> None:
    assert {"kopf", "kubernetes", "accelbench", "accelbench_operator"} <= packages(operator)
    assert not packages(operator) & {"torch", "jax", "jaxlib", "numpy", "scipy", "triton", "nvidia", "pip", "uv"}
    assert not programs(operator) & BUILD_TOOLS


def test_the_image_of_the_runner_holds_both_frameworks_and_a_compiler_but_not_the_operators_libraries(
    runner: Image,
) -> None:
    assert {"torch", "jax", "jaxlib", "scipy", "accelbench", "accelbench_runner"} <= packages(runner)
    assert not packages(runner) & {"kopf", "kubernetes", "pip", "uv"}
    assert "g++" in programs(runner)


@pytest.mark.skipif(NATIVE != "amd64", reason="there is no libtpu for other machines")
def test_the_runner_holds_the_compilers_for_gpus_and_tpus(runner: Image) -> None:
    assert {"libtpu", "jax_cuda13_plugin", "jax_cuda13_pjrt"} <= packages(runner)


def test_the_user_is_not_root_and_has_a_name(image: Image) -> None:
    user, group = image.configuration["User"].split(":")
    (entry,) = (line.split(":") for line in image.texts["etc/passwd"].splitlines() if line.startswith("accelbench:"))
    assert entry[2:4] == [user, group]
    assert int(user) > 0


def test_labels_of_an_image_name_its_content_and_version(image: Image) -> None:
    labels = {name.rpartition(".")[2]: value for name, value in image.configuration["Labels"].items()}
    assert labels["version"] == accelbench.__version__
    assert labels["licenses"] == "Apache-2.0"
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", labels["revision"])
    assert labels["title"]
    assert labels["description"]
    assert "source" in labels


def test_the_entrypoint_is_a_module_that_the_image_has(image: Image) -> None:
    python, option, module = image.configuration["Entrypoint"]
    assert (python, option) == ("python", "-m")
    assert any(path.endswith(f"site-packages/{module}/__main__.py") for path in image.files)
    assert "opt/accelbench/bin/python" in image.files
    (path,) = (variable for variable in image.configuration["Env"] if variable.startswith("PATH="))
    assert path.startswith("PATH=/opt/accelbench/bin:")


def test_installed_packages_have_the_versions_of_the_constraints(image: Image) -> None:
    installed = pins(image.texts[REQUIREMENTS])
    assert installed
    assert installed <= pins((ROOT / "constraints.txt").read_text())


def test_modules_are_compiled_as_the_root_cannot_be_written_to(image: Image) -> None:
    ours = {path for path in image.files if re.search(r"site-packages/accelbench(_\w+)?/[^/]+\.py$", path)}
    compiled = {path for path in image.files if path.endswith(".pyc")}
    assert ours
    for path in ours:
        folder, _, name = path.rpartition("/")
        assert any(other.startswith(f"{folder}/__pycache__/{name.removesuffix('.py')}.") for other in compiled), path


def test_nobody_but_root_can_change_what_is_installed(image: Image) -> None:
    assert not {path for path in image.loose if path.startswith("opt/")}

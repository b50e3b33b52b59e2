from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from accelbench import frameworks
from accelbench.api.run import BenchmarkRun
from accelbench.local import device
from accelbench.local.errors import InvalidSpecError
from cli.command import MANIFEST


def run_on(profile: str) -> BenchmarkRun:
    manifest = yaml.safe_load(MANIFEST)
    manifest["spec"]["accelerator"] = {"profile": profile}
    return BenchmarkRun.model_validate(manifest)


def test_the_cpu_profile_is_accepted_on_every_machine(tmp_path: Path) -> None:
    assert device.platform_of(run_on("cpu"), root=tmp_path) == "cpu"


def test_a_gpu_profile_without_a_gpu_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        device.platform_of(run_on("nvidia"), root=tmp_path)
    [refusal] = refused.value.problems
    assert refusal.path == "spec.accelerator.profile"
    assert "/dev/nvidiactl" in refusal.message
    assert "--set accelerator.profile=cpu" in refusal.message
    assert "kubectl apply" in refusal.message


@pytest.mark.parametrize("file", ["dev/nvidiactl", "proc/driver/nvidia/version"])
def test_a_gpu_profile_is_accepted_where_the_driver_shows_a_device(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    assert device.platform_of(run_on("nvidia"), root=tmp_path) == "cuda"


def test_an_unknown_profile_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        device.platform_of(run_on("nvida"), root=tmp_path)
    assert "nvidia?" in refused.value.explanation()


def test_a_run_without_any_installed_framework_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(frameworks.find("jax"), package="a_module_that_is_not_there")
    monkeypatch.setattr(frameworks, "find", lambda _: missing)
    with pytest.raises(InvalidSpecError) as refused:
        device.require_a_framework(run_on("cpu"))
    [problem] = refused.value.problems
    assert problem.path == "spec.variants"
    assert "accelbench[jax]" in problem.message


def test_a_framework_that_is_not_installed_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = replace(frameworks.find("jax"), package="a_module_that_is_not_there")
    found = {"jax": missing, "pytorch": frameworks.find("pytorch")}
    monkeypatch.setattr(frameworks, "find", found.get)
    [(variant, hint)] = device.missing_frameworks(run_on("cpu")).items()
    assert variant == "jax/jit"
    assert "accelbench[jax]" in hint

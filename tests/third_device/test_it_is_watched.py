"""A device that no file of accelbench knows is asked for, watched and judged like ours."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accelbench import platforms
from accelbench.api.result import Result
from accelbench.platforms import UnknownPlatformError
from cli.command import ROOT, accelbench

MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: chain}
spec:
  workload: {name: matmul-chain, parameters: {size: 64, length: 10}}
  variants: [{use: numpy/eager}, {name: again, use: numpy/eager}]
  accelerator: {profile: chip}
  measurement: {rounds: {min: 3, max: 3}, timeLimitSeconds: 900}
"""
ENTRY_POINTS = """\
[accelbench.platforms]
example.com/chip = third_device.descriptor:PLATFORM
example.com/broken = third_device.nowhere:PLATFORM
"""


class Chip:
    """A machine that has one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        about = directory / "site" / "third_device-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: third-device\nVersion: 1\n")
        (about / "entry_points.txt").write_text(ENTRY_POINTS)
        self.set_profile("example.com/chip")
        self.tell()

    def set_profile(self, platform: str) -> None:
        (self._directory / "profiles.yaml").write_text(f"chip: {{platform: {platform}}}\n")

    def tell(self, *, hot_once: bool = False, **readings: Any) -> None:
        hot = self._directory / "hot"
        if hot_once:
            hot.touch()
        usual = {"serial": "A1", "watts": 200.0, "users": 0, "peakBytes": 4711, "hot": str(hot)}
        (self._directory / "chip.json").write_text(json.dumps(usual | readings))

    def accelbench(self, *arguments: str, manifest: str = MANIFEST) -> subprocess.CompletedProcess[str]:
        (self._directory / "chain.yaml").write_text(manifest)
        return accelbench(
            *arguments,
            cwd=self._directory,
            PYTHONPATH=os.pathsep.join([str(self._directory / "site"), str(ROOT / "tests")]),
            ACCELBENCH_PROFILES=str(self._directory / "profiles.yaml"),
            CHIP_READINGS=str(self._directory / "chip.json"),
        )

    def result(self) -> Result:
        return Result.model_validate_json((self._directory / "out" / "all.result.json").read_text())


@pytest.fixture
def chip(tmp_path: Path) -> Chip:
    return Chip(tmp_path)


@pytest.mark.slow
def test_the_result_holds_the_facts_of_the_device(chip: Chip) -> None:
    done = chip.accelbench("run", "chain.yaml", "--accept-noise", "--out", "out")
    result = chip.result()
    assert result.complete, done.stderr
    read = {name: result.fingerprint[f"device.{name}"] for name in ("platform", "name", "serial")}
    assert read == {"platform": "example.com/chip", "name": "Chip 1000", "serial": "A1"}
    for variant in result.variants:
        assert variant.seconds
        seconds = float(variant.seconds.geometric_mean_seconds)
        assert float(variant.numbers.device_joules_per_unit or 0) == pytest.approx(200.0 * seconds, rel=1e-3)
        assert variant.numbers.peak_memory_bytes == 4711
        checks = {check.name: check for check in result.certificate.checks if check.variant in {None, variant.name}}
        assert checks["wrong-device"].outcome == "passed"
        assert "0 other processes on the chip" in checks["shared-device"].reading


@pytest.mark.slow
@pytest.mark.nightly  # tests/runner/test_quarantine.py has what becomes of a round in which a device was throttled
def test_a_round_with_a_hot_device_is_discarded_and_noted(chip: Chip) -> None:
    chip.tell(hot_once=True)
    # Without --accept-noise, a busy machine repeats rounds until the time limit.
    chip.accelbench("run", "chain.yaml", "--set", "measurement.timeLimitSeconds=60", "--out", "out")
    assert any(
        "too hot for 50% of the phase" in reason for each in chip.result().quarantined for reason in each.reasons
    )


@pytest.mark.slow
@pytest.mark.nightly  # tests/validity has what becomes of a device that others use
def test_there_is_no_verdict_if_another_process_uses_the_device(chip: Chip) -> None:
    chip.tell(users=2)
    done = chip.accelbench("run", "chain.yaml", "--accept-noise", "--out", "out")
    assert done.returncode != 0
    assert "2 other processes on the chip" in done.stdout + done.stderr


def test_options_that_the_device_lacks_are_refused_before_anything_is_measured(chip: Chip) -> None:
    narrow = MANIFEST.replace("{rounds:", "{precision: float16, rounds:")
    done = chip.accelbench("run", "chain.yaml", "--out", "out", manifest=narrow)
    assert done.returncode == 3
    assert "spec.measurement.precision: float16 is none of the chip's formats" in done.stderr


@pytest.mark.parametrize(
    ("platform", "why"), [("example.com/broken", "nowhere"), ("example.com/chop", "did you mean example.com/chip?")]
)
def test_a_profile_of_a_broken_platform_is_refused_with_the_problem(chip: Chip, platform: str, why: str) -> None:
    chip.set_profile(platform)
    done = chip.accelbench("run", "chain.yaml", "--out", "out")
    assert done.returncode == 3
    assert why in done.stderr


def test_built_in_platforms_are_found_by_name() -> None:
    assert set(platforms.names()) >= {"cpu", "cuda", "tpu"}
    assert not platforms.find("cpu").own_users
    with pytest.raises(UnknownPlatformError, match="did you mean cuda"):
        platforms.find("cuba")

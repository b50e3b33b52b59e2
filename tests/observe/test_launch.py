"""An observing launch, for real: it times nothing, and says what it saw and what it saw it on."""

from pathlib import Path

from launch.launching import case, launch


def test_a_launch_observes_and_times_nothing(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("data-dependent-branch", "jax/jit"))
    assert launched.failure is None, launched.failure
    assert launched.status == 0
    assert launched.blocks == []
    assert list(launched.phases) == ["import", "device-init", "setup", "steady"]
    assert launched.facts["protocol"] == "observe"
    assert launched.facts["observations"]["raised"] == "TracerBoolConversionError"
    assert launched.facts["device"]["platform"] == "cpu"
    assert {"precision", "threads", "inputsDigest", "versions"} <= launched.facts.keys()
    assert not {"flopsPerUnit", "recompilations", "clock", "parityUnits"} & launched.facts.keys()

"""An observing launch, for real: it times nothing, and says what it saw and what it saw it on."""

from pathlib import Path

from launch.launching import case, launch


def test_a_launch_observes_and_times_nothing(tmp_path: Path) -> None:
    told = launch(tmp_path, case("data-dependent-branch", "jax/jit"))
    assert told.failure is None, told.failure
    assert told.status == 0
    assert told.blocks == []
    assert list(told.phases) == ["import", "device-init", "setup", "steady"]
    assert told.facts["protocol"] == "observe"
    assert told.facts["observations"]["raised"] == "TracerBoolConversionError"
    assert told.facts["device"]["platform"] == "cpu"
    assert {"precision", "threads", "inputsDigest", "versions"} <= told.facts.keys()
    assert not {"flopsPerUnit", "recompilations", "clock", "parityUnits"} & told.facts.keys()

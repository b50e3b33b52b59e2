"""Test after how many units a first call has paid for itself."""

from accelbench.launch.record import LaunchRecord, PhaseRecord
from accelbench_runner.judge.payback import payback
from judge.launches import BASELINE, VARIANT, a_launch


def launches(variant: str, first_call: float, seconds: float, unit: str) -> dict[int, LaunchRecord]:
    phases = (PhaseRecord(phase="compile", seconds=first_call), PhaseRecord(phase="first-step", seconds=0.0))
    launch = a_launch(variant, seconds=seconds, facts={"unit": unit, "unitsPerCall": 10})
    return {number: launch.model_copy(update={"round": number, "phases": phases}) for number in range(1, 6)}


def test_the_pay_back_of_a_first_call_is_in_the_workloads_unit() -> None:
    found = payback(launches(BASELINE, 0.2, 0.02, "epoch"), launches(VARIANT, 1.1, 0.01, "epoch"), 0.05)
    assert found is not None
    # Each first call makes ten epochs of its own: 1.1 - 0.1 against 0.2 - 0.2 seconds.
    assert found.sentence == f"The first call of {VARIANT} takes 1 s longer and pays back after 100 epochs."
    assert found.document.steps == 100

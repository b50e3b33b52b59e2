"""Eager PyTorch for devices that are not there, held against runs on this processor and counts by hand."""

from pathlib import Path
from typing import Any

import pytest

from accelbench.api.case import CaseAccelerator
from launch.launching import LATER, LaunchOutput, case, launch

pytestmark = pytest.mark.slow
PEAK = 0.2
"""A run's peak may be as far from what was planned."""
MLP = {"inputs": 256, "hidden": 512, "outputs": 64, "batch": 256}
PARAMETERS = 256 * 512 + 512 + 512 * 64 + 64


def dispatched(directory: Path, target: str, workload: str, use: str, **choices: Any) -> LaunchOutput:
    """Of a launch for a target, of which nothing is there."""
    directory.mkdir(exist_ok=True)
    asked = case(workload, use, choices.pop("parameters", {}), **choices)
    asked = asked.model_copy(update={"accelerator": CaseAccelerator(target=target)})
    return launch(directory, asked, number=LATER, purpose="compile")


def numbers(launched: LaunchOutput) -> dict[str, Any]:
    assert launched.failure is None, launched.failure
    found: dict[str, Any] = launched.facts["executable"]
    return found


def refusal(launched: LaunchOutput) -> str:
    assert launched.failure is not None
    assert launched.failure.reason == "Unsupported"
    return launched.failure.message


@pytest.mark.parametrize(
    ("workload", "use", "parameters"),
    [
        ("mlp", "pytorch/eager", MLP),
        ("elementwise-fusion", "pytorch/eager", {"size": 65_536}),
        ("matmul-chain", "pytorch/eager", {"size": 64, "length": 3}),
        ("activation-checkpointing", "pytorch/checkpoint", {}),
    ],
)
def test_arguments_and_operations_are_those_of_a_run_on_this_processor(
    tmp_path: Path, workload: str, use: str, parameters: dict[str, Any]
) -> None:
    planned = numbers(dispatched(tmp_path / "planned", "cpu", workload, use, parameters=parameters))
    (tmp_path / "run").mkdir()
    ran = launch(tmp_path / "run", case(workload, use, parameters), number=1).facts
    assert planned["argumentBytes"] == ran["workingSet"]["bytes"]
    assert planned["flopsPerCall"] == ran["arithmetic"]["written"]


@pytest.mark.parametrize(
    ("workload", "use", "parameters"),
    [
        ("elementwise-fusion", "pytorch/eager", {"size": 16_777_216}),
        ("layer-norm", "pytorch/eager", {"rows": 16_384}),
    ],
)
def test_the_peak_is_that_of_a_run_on_this_processor(
    tmp_path: Path, workload: str, use: str, parameters: dict[str, Any]
) -> None:
    planned = numbers(dispatched(tmp_path / "planned", "cpu", workload, use, parameters=parameters))
    (tmp_path / "run").mkdir()
    ran = launch(tmp_path / "run", case(workload, use, parameters)).facts
    # Beside what a call holds, a run keeps the state that every block begins with.
    assert ran["peakMemoryBytes"] == pytest.approx(planned["peakBytes"] + planned["argumentBytes"], rel=PEAK)


def test_a_training_step_holds_parameters_batch_gradients_and_activations(tmp_path: Path) -> None:
    launched = dispatched(tmp_path, "h100", "mlp", "pytorch/eager", parameters=MLP)
    found = numbers(launched)
    batch = 256 * (256 + 64)
    assert found["argumentBytes"] == 4 * (PARAMETERS + batch)
    assert found["aliasedBytes"] == 4 * PARAMETERS, "SGD changes them in place"
    assert found["outputBytes"] == 4 * (PARAMETERS + 1), "and the loss"
    gradients, hidden = 4 * PARAMETERS, 4 * 256 * 512
    assert found["peakBytes"] >= found["argumentBytes"] + gradients + hidden
    assert launched.facts["compiled"]["dispatched"]
    assert launched.facts["compiled"]["fits"] == 1


def test_an_optimizer_is_dispatched_as_pytorch_does_on_its_device(tmp_path: Path) -> None:
    gpu = numbers(dispatched(tmp_path / "gpu", "h100", "optimizer-step", "pytorch/eager"))
    at_once = numbers(dispatched(tmp_path / "at-once", "h100", "optimizer-step", "pytorch/foreach"))
    cpu = numbers(dispatched(tmp_path / "cpu", "cpu", "optimizer-step", "pytorch/eager"))
    assert gpu["kernels"] == at_once["kernels"] < cpu["kernels"]
    assert gpu["temporaryBytes"] > cpu["temporaryBytes"], "a square root of every moment at once"


def test_arrays_changed_in_place_take_no_additional_memory(tmp_path: Path) -> None:
    size = 4 * 65_536
    fresh, in_place = (
        numbers(dispatched(tmp_path / use, "h100", "inplace-update", f"pytorch/{use}", parameters={"size": 65_536}))
        for use in ("eager", "in-place")
    )
    assert (fresh["aliasedBytes"], fresh["peakBytes"]) == (0, 2 * size)
    assert (in_place["aliasedBytes"], in_place["peakBytes"]) == (size, size)


@pytest.mark.parametrize(
    ("target", "workload", "use", "expected_text"),
    [
        ("v5e-16", "mlp", "pytorch/eager", "PyTorch computes on cpu and cuda, and not on tpu"),
        ("h100", "mlp", "pytorch/compile", "torch.compile generates kernels only if the device's driver is installed"),
        ("h100", "data-dependent-branch", "pytorch/eager", "the step reads a number"),
        ("h100", "checkpoint", "pytorch/save", "the step fails on arrays without numbers"),
        ("h100", "rng", "pytorch/threads", "the step fails on arrays without numbers"),
    ],
)
def test_programs_without_figures_are_refused_with_the_reason(
    tmp_path: Path, target: str, workload: str, use: str, expected_text: str
) -> None:
    assert expected_text in refusal(dispatched(tmp_path, target, workload, use))


def test_a_type_that_pytorch_would_silently_leave_out_is_refused(tmp_path: Path) -> None:
    launched = dispatched(tmp_path, "h100", "mixed-precision", "pytorch/eager", precision="bfloat16")
    assert "torch.autocast" in refusal(launched)

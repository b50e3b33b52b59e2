"""Reports of a launch under the framework's real profiler."""

from pathlib import Path
from typing import Any

import pytest

from accelbench_runner.frameworks.trace import read_events
from accelbench_runner.protocol import TRACE_FILE, Done
from launch.launching import LaunchOutput, case, launch

pytestmark = pytest.mark.slow

CHAIN = {"size": 32, "length": 10}


def profiled(directory: Path, workload: str, use: str, parameters: dict[str, Any]) -> LaunchOutput:
    """Launch a variant to explain it."""
    return launch(directory, case(workload, use, parameters), purpose="explain")


def operations(output: LaunchOutput) -> dict[str, dict[str, Any]]:
    """The operations that take most, by name."""
    found = output.facts["profiledCalls"]
    assert "operations" in found, found
    return {operation["name"]: operation for operation in found["operations"]}


@pytest.mark.parametrize(
    ("use", "product"), [("jax/scan", "dot_general"), ("jax/op-by-op", "matmul"), ("pytorch/eager", "aten::mm")]
)
def test_every_product_of_a_chain_is_listed_with_its_line(use: str, product: str, tmp_path: Path) -> None:
    output = profiled(tmp_path, "matmul-chain", use, CHAIN)
    found = operations(output)[product]
    assert found["runs"] == CHAIN["length"]
    assert 0 < found["seconds"] <= output.facts["profiledCalls"]["secondsPerCall"]
    if use != "jax/op-by-op":  # of a program that JAX compiles for one operation, no line is known
        assert found["source"].startswith("matmul_chain.py:")
    assert ("busyShare" in output.facts["profiledCalls"]) == (use == "jax/op-by-op")


def test_a_fusion_has_the_lines_of_all_its_operations(tmp_path: Path) -> None:
    output = profiled(tmp_path, "layer-norm", "jax/jit", {"rows": 64, "features": 64})
    fusions = [found for found in operations(output).values() if found.get("merged")]
    assert all(fusion["name"].startswith("fusion of ") for fusion in fusions)
    lines = [fusion["source"].removeprefix("layer_norm.py:") for fusion in fusions]
    assert any("-" in each or "," in each for each in lines)


def test_a_profiled_launch_times_no_blocks_and_leaves_its_trace_for_perfetto(tmp_path: Path) -> None:
    output = profiled(tmp_path, "matmul-chain", "pytorch/eager", CHAIN)
    assert not output.blocks
    assert isinstance(output.messages[-1], Done)
    assert read_events(tmp_path / TRACE_FILE)


def test_a_framework_without_a_profiler_gives_the_reason(tmp_path: Path) -> None:
    output = profiled(tmp_path, "matmul-chain", "numpy/eager", CHAIN)
    assert "no profiler" in output.facts["profiledCalls"]["why"]
    assert isinstance(output.messages[-1], Done)

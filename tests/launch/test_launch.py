"""The messages of a launch, in real processes with the real frameworks."""

import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.api.result import Phase
from accelbench.catalogue import inputs
from accelbench_runner.clock import MonotonicClock
from accelbench_runner.devices import cpu
from accelbench_runner.devices.processor import ProcessorMonitor
from accelbench_runner.launch import blocks
from accelbench_runner.protocol import Done, PhaseStarted
from cluster.wait import HANG_SECONDS
from launch import odd_workloads
from launch.launching import LaunchOutput, case, launch, launch_anew, started

pytestmark = pytest.mark.slow

SMALL = {"size": 32, "length": 10}
FACTS = {
    "versions",
    "device",
    "threads",
    "precision",
    "inputsDigest",
    "parityUnits",
    "outputTypes",
    "outputShapes",
    "recompilations",
    "recompilationCauses",
    "clock",
    "unitsPerCall",
    "unitsPerStep",
    "peakMemoryBytes",
    "flopsPerUnit",
    "bytesPerUnit",
    "unit",
    "throttling",
    "neighbours",
    "emulated",
    "synchronisation",
    "workingSet",
    "compilePeakMemoryBytes",
}


@pytest.fixture(scope="module")
def in_jax(tmp_path_factory: pytest.TempPathFactory) -> tuple[LaunchOutput, Path]:
    directory = tmp_path_factory.mktemp("jax")
    return launch_anew(directory, case("matmul-chain", "jax/jit", SMALL), number=1), directory


@pytest.fixture(scope="module")
def in_pytorch(tmp_path_factory: pytest.TempPathFactory) -> tuple[LaunchOutput, Path]:
    directory = tmp_path_factory.mktemp("pytorch")
    return launch_anew(directory, case("matmul-chain", "pytorch/eager", SMALL), number=1), directory


@pytest.fixture(params=["in_jax", "in_pytorch"])
def launched(request: pytest.FixtureRequest) -> tuple[LaunchOutput, Path]:
    found: tuple[LaunchOutput, Path] = request.getfixturevalue(request.param)
    return found


def test_a_launch_that_measured_ends_with_done(launched: tuple[LaunchOutput, Path]) -> None:
    assert isinstance(launched[0].messages[-1], Done)
    assert launched[0].status == 0


def test_a_launch_imports_exactly_one_framework(
    in_jax: tuple[LaunchOutput, Path], in_pytorch: tuple[LaunchOutput, Path]
) -> None:
    assert in_jax[0].output.splitlines()[-1] == "imported: jax"
    assert in_pytorch[0].output.splitlines()[-1] == "imported: torch"


def test_every_phase_is_reached_and_ended_once_and_in_order(launched: tuple[LaunchOutput, Path]) -> None:
    expected = list(get_args(Phase))
    assert [message.phase for message in launched[0].messages if isinstance(message, PhaseStarted)] == expected
    assert list(launched[0].phases) == expected


def test_blocks_are_whole_calls(launched: tuple[LaunchOutput, Path]) -> None:
    assert len(launched[0].blocks) >= blocks.MINIMUM_LONG_BLOCKS
    assert all(block.units % SMALL["length"] == 0 for block in launched[0].blocks)


def test_every_fact_is_reported(launched: tuple[LaunchOutput, Path]) -> None:
    assert launched[0].facts.keys() >= FACTS


def test_work_of_a_launch_outside_its_phases_is_named(launched: tuple[LaunchOutput, Path]) -> None:
    assert set(launched[0].asides) == {
        "watch",
        "parity",
        "operations",
        "synchronisation",
        "dependence",
        "limits",
        "formula",
    }
    assert all(seconds >= 0 for seconds in launched[0].asides.values())


def test_work_is_done_when_the_clock_stops(launched: tuple[LaunchOutput, Path]) -> None:
    found = launched[0].facts["synchronisation"]
    assert found.get("ready") in {True, None}
    assert 1 <= len(found["runs"]) <= 2
    assert all(run["seconds"] > 0 for run in found["runs"])


def test_the_working_set_is_state_and_batches_in_the_policys_type(launched: tuple[LaunchOutput, Path]) -> None:
    assert launched[0].facts["workingSet"]["bytes"] == 2 * 32 * 32 * 4


def test_outputs_are_reported_with_the_types_that_the_program_returned(launched: tuple[LaunchOutput, Path]) -> None:
    assert launched[0].facts["outputTypes"] == {"x": "float32"}
    assert launched[0].facts["outputShapes"] == {"x": [32, 32]}


def test_facts_repeat_what_was_requested(launched: tuple[LaunchOutput, Path]) -> None:
    facts = launched[0].facts
    assert facts["device"]["platform"] == "cpu"
    assert facts["device"]["count"] == 1
    assert facts["threads"]["requested"] == 1
    assert facts["threads"].get("framework") in {1, None}
    assert facts["precision"]["policy"] == "float32"
    assert facts["precision"]["dtype"] == "float32"
    assert facts["precision"]["flushDenormal"] is True
    assert facts["recompilations"] == 0
    assert facts["unitsPerCall"] == facts["parityUnits"] == SMALL["length"]
    assert facts["unit"] == "product"
    assert facts["flopsPerUnit"] == 2 * 32**3


def test_both_frameworks_name_the_same_device(
    in_jax: tuple[LaunchOutput, Path], in_pytorch: tuple[LaunchOutput, Path]
) -> None:
    assert in_jax[0].facts["device"] == in_pytorch[0].facts["device"]


def test_every_launch_starts_from_the_same_bits(
    in_jax: tuple[LaunchOutput, Path], in_pytorch: tuple[LaunchOutput, Path]
) -> None:
    workload = catalogue.find("matmul-chain")
    arrays = inputs.generate(workload, catalogue.parse_parameters(workload, SMALL), seed=0)
    assert in_jax[0].facts["inputsDigest"] == in_pytorch[0].facts["inputsDigest"] == inputs.digest(arrays)


def test_outputs_are_written_in_float64(launched: tuple[LaunchOutput, Path]) -> None:
    with np.load(launched[1] / "outputs.npz") as outputs:
        assert set(outputs) == {"x"}
        assert outputs["x"].shape == (32, 32)
        assert outputs["x"].dtype == np.float64


def test_an_unknown_option_is_reported_before_anything_is_imported(tmp_path: Path) -> None:
    launched = launch_anew(tmp_path, case("matmul-chain", "jax/jit", options={"nonsense": 1}))
    assert launched.failure is not None
    assert launched.output == "imported:\n"
    assert "nonsense" in launched.failure.message


@pytest.mark.parametrize("use", ["jax/jit", "pytorch/eager"])
def test_a_launch_without_its_device_fails_with_the_reason(use: str, tmp_path: Path) -> None:
    launched = launch(tmp_path, case("matmul-chain", use, SMALL, platform="cuda"))
    assert launched.failure is not None
    assert launched.failure.reason == "Unsupported"
    assert "no CUDA device is visible" in launched.failure.message
    assert launched.status == 1


@pytest.mark.parametrize(
    ("use", "platform", "expected_text"),
    [
        ("numpy/eager", "cuda", "NumPy computes on cpu, and not on cuda"),
        ("pytorch/eager", "tpu", "PyTorch computes on cpu, cuda, and not on tpu"),
    ],
)
def test_a_framework_without_the_requested_platform_names_those_that_it_has(
    use: str, platform: str, expected_text: str, tmp_path: Path
) -> None:
    launched = launch(tmp_path, case("matmul-chain", use, SMALL, platform=platform))
    assert launched.failure is not None
    assert (launched.failure.reason, launched.failure.message) == ("Unsupported", expected_text)


@pytest.mark.parametrize("use", ["jax/jit", "pytorch/eager"])
def test_tf32_is_refused_on_a_cpu(use: str, tmp_path: Path) -> None:
    launched = launch(tmp_path, case("matmul-chain", use, SMALL, precision="tf32"))
    assert launched.failure is not None
    assert (launched.failure.reason, "tf32" in launched.failure.message) == ("Unsupported", True)


def test_an_exception_of_a_variant_is_reported_with_its_own_line(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("raising", "jax/raising"))
    assert launched.failure is not None
    assert launched.failure.reason == "Raised"
    assert launched.failure.message == "RuntimeError: the user's own mistake"
    assert 'raise RuntimeError("the user\'s own mistake")' in launched.failure.trace
    assert "accelbench_runner" not in launched.failure.trace


@pytest.mark.parametrize("use", ["pytorch/greedy", "jax/greedy", "jax/greedy-numpy"])
def test_running_out_of_memory_is_recognised(use: str, tmp_path: Path) -> None:
    launched = launch(tmp_path, case("greedy", use))
    assert launched.failure is not None
    assert launched.failure.reason == "OutOfMemory", launched.failure.message


def test_output_of_a_variant_is_not_taken_for_a_message(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("loud", "jax/loud"))
    assert sum(isinstance(message, Done) for message in launched.messages) == 1
    assert launched.output.count('{"type":"done"}') == 1000


@pytest.mark.parametrize("use", ["jax/now-and-then", "pytorch/compile"])
def test_compiling_during_timing_is_reported_with_its_cause(use: str, tmp_path: Path) -> None:
    launched = launch(tmp_path, case("recompiling", use))
    assert launched.failure is None
    assert launched.facts["recompilations"] >= 1
    assert all(launched.facts["recompilationCauses"])
    assert launched.blocks


def test_a_function_beyond_its_recompile_limit_is_reported(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("past-limit", "pytorch/compile"))
    assert launched.facts["recompilations"] == 1
    assert "recompile limit" in launched.facts["recompilationCauses"][0]


def test_a_donated_state_is_fresh_in_every_block(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("donating", "jax/jit"))
    assert launched.failure is None
    assert launched.facts["recompilations"] == 0
    with np.load(tmp_path / "outputs.npz") as outputs:
        assert outputs["x"].tolist() == [3.0] * 8
        assert outputs["sum"] == 16.0


def test_a_launch_ends_at_once_on_a_signal(tmp_path: Path) -> None:
    with started(tmp_path, case("matmul-chain", "jax/jit", {"size": 1024})) as (process, messages):
        assert any(isinstance(message, PhaseStarted) and message.phase == "warm-up" for message in messages)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=HANG_SECONDS) == -signal.SIGTERM


def test_processor_time_of_another_process_counts_as_others() -> None:
    before = cpu.usage()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert cpu.usage().others_seconds_since(before) > 0.4  # the kernel counts in ticks of 10 ms


@pytest.mark.parametrize(
    ("before", "after", "busy_share"),
    [
        (cpu.Usage(10.0, 1.0, 0.5), cpu.Usage(20.0, 1.4, 2.1), 1.0),
        (cpu.Usage(10.0, 1.0, 0.5), cpu.Usage(20.0, 1.4, 7.0), 1.0),
        (cpu.Usage(10.0, 1.0, 0.5), cpu.Usage(20.0, 1.0, 0.5), 0.0),
        (cpu.Usage(10.0, 1.0, 0.5), cpu.Usage(20.0, 1.1, 2.0), 0.2),
        (cpu.Usage(10.0, 1.0, 0.5), cpu.Usage(20.0, 1.4, 0.2), 0.2),
        (cpu.Usage(10.0, 1.0, None), cpu.Usage(20.0, 1.4, None), None),
    ],
    ids=[
        "waits for a CPU",
        "several threads wait",
        "sleeps",
        "waits for a CPU after each sleep",
        "a thread has ended",
        "the kernel does not report it",
    ],
)
def test_time_for_which_a_process_waits_for_a_cpu_is_neither_busy_nor_idle(
    before: cpu.Usage, after: cpu.Usage, busy_share: float | None
) -> None:
    readings = iter([before, after])

    class Processors:
        def usage(self) -> cpu.Usage:
            return next(readings)

    processors: Any = Processors()
    monitor = ProcessorMonitor(MonotonicClock(), processors)
    monitor.begin()
    idle = monitor.end(2.0).idle
    share = idle and idle.busy_seconds / idle.seconds
    assert share == (busy_share if busy_share is None else pytest.approx(busy_share))


def test_processor_time_of_the_launch_itself_does_not_count_as_other_load() -> None:
    before, after = cpu.Usage(all_seconds=10.0, process_seconds=1.0), cpu.Usage(all_seconds=14.0, process_seconds=4.5)
    assert after.others_seconds_since(before) == 0.5


@pytest.mark.parametrize(
    ("use", "parameters", "given"),
    [
        ("jax/jit", {}, "an array of shape (2, 4)"),
        ("jax/op-by-op", {"returns": "three"}, "a tuple of 3"),
        ("pytorch/eager", {}, "an array of shape (2, 4)"),
        ("pytorch/placed", {"returns": "list"}, "a list"),
        ("pytorch/compile", {}, "an array of shape (2, 4)"),
        ("pytorch/compile", {"returns": "none"}, "None"),
    ],
)
def test_a_step_that_returns_no_pair_is_reported_with_its_line(
    tmp_path: Path, use: str, parameters: dict[str, Any], given: str
) -> None:
    failure = launch(tmp_path, case("unpaired", use, parameters)).failure
    line = 1 + Path(odd_workloads.__file__).read_text().splitlines().index(
        "        def step(state: Any, _batch: Any) -> Any:",
        inspect.getsourcelines(odd_workloads.Unpaired)[1],
    )
    assert failure is not None
    assert failure.message == (
        f"odd_workloads.py, line {line}: Unpaired.jax.<locals>.step() returned {given}; "
        "a step has to return a tuple of two, (state, out)"
    )


def test_a_program_that_ends_the_process_has_failed(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("exiting", "jax/exiting"))
    assert launched.failure is not None
    assert (launched.failure.reason, launched.status) == ("Raised", 1)
    assert launched.failure.message.startswith("SystemExit: 0: it ends the process")

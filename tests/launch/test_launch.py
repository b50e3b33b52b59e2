"""What a launch says of itself, in real processes with the real frameworks."""

import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.api.result import Phase
from accelbench.catalogue import inputs
from accelbench.launch.facts import Idle
from accelbench_runner.clock import MonotonicClock
from accelbench_runner.devices import cpu
from accelbench_runner.devices.monitor import Watch
from accelbench_runner.devices.processor import ProcessorMonitor
from accelbench_runner.launch import blocks
from accelbench_runner.protocol import Done, PhaseStarted
from cluster.wait import HANG_SECONDS
from launch import odd_workloads
from launch.launching import Told, case, launch, launch_anew, started

SMALL = {"size": 32, "length": 10}
FACTS = {
    "versions",
    "device",
    "threads",
    "precision",
    "inputsDigest",
    "parityUnits",
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
def in_jax(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, Path]:
    directory = tmp_path_factory.mktemp("jax")
    return launch_anew(directory, case("matmul-chain", "jax/jit", SMALL), number=1), directory


@pytest.fixture(scope="module")
def in_pytorch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, Path]:
    directory = tmp_path_factory.mktemp("pytorch")
    return launch_anew(directory, case("matmul-chain", "pytorch/eager", SMALL), number=1), directory


@pytest.fixture(params=["in_jax", "in_pytorch"])
def told(request: pytest.FixtureRequest) -> tuple[Told, Path]:
    found: tuple[Told, Path] = request.getfixturevalue(request.param)
    return found


def test_a_launch_that_measured_ends_with_done(told: tuple[Told, Path]) -> None:
    assert isinstance(told[0].messages[-1], Done)
    assert told[0].status == 0


def test_a_launch_imports_exactly_one_framework(in_jax: tuple[Told, Path], in_pytorch: tuple[Told, Path]) -> None:
    assert in_jax[0].output.splitlines()[-1] == "imported: jax"
    assert in_pytorch[0].output.splitlines()[-1] == "imported: torch"


def test_every_phase_is_reached_and_ended_once_and_in_order(told: tuple[Told, Path]) -> None:
    expected = list(get_args(Phase))
    assert [message.phase for message in told[0].messages if isinstance(message, PhaseStarted)] == expected
    assert list(told[0].phases) == expected


def test_blocks_are_long_and_many_enough(told: tuple[Told, Path]) -> None:
    lengths = [block.seconds for block in told[0].blocks]
    assert len(lengths) >= blocks.MINIMUM_BLOCKS
    assert np.median(lengths) >= blocks.BLOCK_SECONDS / 2
    assert all(block.units % SMALL["length"] == 0 for block in told[0].blocks)


def test_every_fact_is_reported(told: tuple[Told, Path]) -> None:
    assert told[0].facts.keys() >= FACTS


def test_what_a_launch_does_beside_its_phases_is_named(told: tuple[Told, Path]) -> None:
    assert set(told[0].asides) == {"watch", "parity", "operations", "synchronisation", "dependence", "limits"}
    assert all(seconds >= 0 for seconds in told[0].asides.values())


def test_work_is_done_when_the_clock_stops(told: tuple[Told, Path]) -> None:
    found = told[0].facts["synchronisation"]
    assert found.get("ready") in {True, None}
    assert 1 <= len(found["runs"]) <= 2
    assert all(run["seconds"] > 0 for run in found["runs"])


def test_the_working_set_is_state_and_batches_in_the_policys_type(told: tuple[Told, Path]) -> None:
    assert told[0].facts["workingSet"]["bytes"] == 2 * 32 * 32 * 4


def test_facts_say_what_was_asked_for(told: tuple[Told, Path]) -> None:
    facts = told[0].facts
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


def test_both_frameworks_name_the_same_device(in_jax: tuple[Told, Path], in_pytorch: tuple[Told, Path]) -> None:
    assert in_jax[0].facts["device"] == in_pytorch[0].facts["device"]


def test_every_launch_starts_from_the_same_bits(in_jax: tuple[Told, Path], in_pytorch: tuple[Told, Path]) -> None:
    workload = catalogue.find("matmul-chain")
    arrays = inputs.generate(workload, catalogue.parse_parameters(workload, SMALL), seed=0)
    assert in_jax[0].facts["inputsDigest"] == in_pytorch[0].facts["inputsDigest"] == inputs.digest(arrays)


def test_outputs_are_written_in_float64(told: tuple[Told, Path]) -> None:
    with np.load(told[1] / "outputs.npz") as outputs:
        assert set(outputs) == {"x"}
        assert outputs["x"].shape == (32, 32)
        assert outputs["x"].dtype == np.float64


def test_an_option_that_is_none_is_told_before_anything_is_imported(tmp_path: Path) -> None:
    told = launch_anew(tmp_path, case("matmul-chain", "jax/jit", options={"nonsense": 1}))
    assert told.failure is not None
    assert told.output == "imported:\n"
    assert "nonsense" in told.failure.message


@pytest.mark.parametrize("use", ["jax/jit", "pytorch/eager"])
def test_a_launch_that_cannot_have_its_device_says_so(use: str, tmp_path: Path) -> None:
    told = launch(tmp_path, case("matmul-chain", use, SMALL, platform="cuda"))
    assert told.failure is not None
    assert told.failure.reason == "Unsupported"
    assert "no CUDA device is visible" in told.failure.message
    assert told.status == 1


@pytest.mark.parametrize(
    ("use", "platform", "said"),
    [
        ("numpy/eager", "cuda", "NumPy computes on cpu, and not on cuda"),
        ("pytorch/eager", "tpu", "PyTorch computes on cpu, cuda, and not on tpu"),
    ],
)
def test_a_framework_that_knows_no_such_platform_says_where_it_computes(
    use: str, platform: str, said: str, tmp_path: Path
) -> None:
    told = launch(tmp_path, case("matmul-chain", use, SMALL, platform=platform))
    assert told.failure is not None
    assert (told.failure.reason, told.failure.message) == ("Unsupported", said)


@pytest.mark.parametrize("use", ["jax/jit", "pytorch/eager"])
def test_tf32_is_refused_on_a_cpu(use: str, tmp_path: Path) -> None:
    told = launch(tmp_path, case("matmul-chain", use, SMALL, precision="tf32"))
    assert told.failure is not None
    assert (told.failure.reason, "tf32" in told.failure.message) == ("Unsupported", True)


def test_what_a_variant_raises_is_told_with_its_own_line(tmp_path: Path) -> None:
    told = launch(tmp_path, case("raising", "jax/raising"))
    assert told.failure is not None
    assert told.failure.reason == "Raised"
    assert told.failure.message == "RuntimeError: the user's own mistake"
    assert 'raise RuntimeError("the user\'s own mistake")' in told.failure.trace
    assert "accelbench_runner" not in told.failure.trace


@pytest.mark.parametrize("use", ["pytorch/greedy", "jax/greedy", "jax/greedy-numpy"])
def test_running_out_of_memory_is_recognised(use: str, tmp_path: Path) -> None:
    told = launch(tmp_path, case("greedy", use))
    assert told.failure is not None
    assert told.failure.reason == "OutOfMemory", told.failure.message


def test_what_a_variant_prints_is_no_message(tmp_path: Path) -> None:
    told = launch(tmp_path, case("loud", "jax/loud"))
    assert sum(isinstance(message, Done) for message in told.messages) == 1
    assert told.output.count('{"type":"done"}') == 1000


@pytest.mark.parametrize("use", ["jax/now-and-then", "pytorch/compile"])
def test_compiling_in_the_middle_is_told_with_its_cause(use: str, tmp_path: Path) -> None:
    told = launch(tmp_path, case("recompiling", use))
    assert told.failure is None
    assert told.facts["recompilations"] >= 1
    assert all(told.facts["recompilationCauses"])
    assert told.blocks


def test_a_function_past_its_recompile_limit_is_told(tmp_path: Path) -> None:
    told = launch(tmp_path, case("past-limit", "pytorch/compile"))
    assert told.facts["recompilations"] == 1
    assert "recompile limit" in told.facts["recompilationCauses"][0]


def test_a_donated_state_is_fresh_in_every_block(tmp_path: Path) -> None:
    told = launch(tmp_path, case("donating", "jax/jit"))
    assert told.failure is None
    assert told.facts["recompilations"] == 0
    with np.load(tmp_path / "outputs.npz") as outputs:
        assert outputs["x"].tolist() == [3.0] * 8
        assert outputs["sum"] == 16.0


def test_a_launch_ends_at_once_when_it_is_told_to(tmp_path: Path) -> None:
    with started(tmp_path, case("matmul-chain", "jax/jit", {"size": 1024})) as (process, messages):
        assert any(isinstance(message, PhaseStarted) and message.phase == "warm-up" for message in messages)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=HANG_SECONDS) == -signal.SIGTERM


def test_a_competing_process_is_noticed() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as competitor:
            before, began = cpu.usage(), time.monotonic()
            while (seconds := time.monotonic() - began) < 1.0:
                pass
            others = cpu.usage().by_others_since(before)
            competitor.kill()
    finally:
        os.sched_setaffinity(0, allowed)
    assert others / seconds > 0.2


def spin(seconds: float) -> None:
    """Wants a processor for so long."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass


@pytest.mark.parametrize(("does", "idle"), [(spin, False), (time.sleep, True)])
def test_whoever_waits_for_a_turn_is_not_idle_and_a_sleeper_is(does: Callable[[float], None], *, idle: bool) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    clock = MonotonicClock()
    watch = Watch(ProcessorMonitor(clock, cpu), clock)
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as competitor:
            try:
                watch.begin()
                does(0.5)
                found = watch.end().idle
            finally:
                competitor.kill()
    finally:
        os.sched_setaffinity(0, allowed)
    assert isinstance(found, Idle)
    assert (found.busy_seconds < 0.5 * found.seconds) is idle


def test_what_the_launch_itself_does_is_no_neighbour() -> None:
    before, after = cpu.Usage(all_seconds=10.0, own_seconds=1.0), cpu.Usage(all_seconds=14.0, own_seconds=4.5)
    assert after.by_others_since(before) == 0.5


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
def test_a_step_that_returns_no_pair_is_said_with_its_line(
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
    told = launch(tmp_path, case("exiting", "jax/exiting"))
    assert told.failure is not None
    assert (told.failure.reason, told.failure.message, told.status) == ("Raised", "SystemExit: 0", 1)

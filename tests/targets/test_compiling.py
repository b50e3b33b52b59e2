"""The real thing: programs compiled for GPUs and TPUs on a machine that has none, and for the processor it has."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from accelbench import targets
from accelbench.api.result import Result
from accelbench.local.exits import Exit
from accelbench.workloads.transformer_lm import TransformerLm
from cli.command import ROOT, accelbench
from targets import compilers, here
from workloads.by_hand import held_on

pytestmark = pytest.mark.slow
ROW = ROOT / "examples" / "claims" / "08-fusion-of-sine-and-cosine.yaml"
ONE_ARRAY, FEW = {"size": 67_108_864}, {"size": 1024}
LM_64 = {"batch": 64, "activations": "recomputed"}
PEAKS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("elementwise-fusion", "jax/jit", ONE_ARRAY, FEW),
    ("inplace-update", "jax/jit-donated", ONE_ARRAY, FEW),
    (
        *("mlp", "jax/jit"),
        {"inputs": 2048, "hidden": 8192, "outputs": 512, "batch": 2048},
        {"inputs": 64, "hidden": 64, "outputs": 64, "batch": 64},
    ),
    (
        *("transformer-lm", "jax/jit-scanned"),
        LM_64,
        {**LM_64, "batch": 1, "width": 16, "vocabulary": 16, "sequence": 8},
    ),
]
"""Programs, by sizes that fill memory and sizes that do not. The last two train; all but the first give state away."""
TOO_LARGE = '''
"""An outer product: n numbers are given, and n x n have to be there."""

from accelbench.workload import Arrays, Program, Workload, WorkloadParameters


class TooLarge(Workload):
    """x x', which is returned."""

    name = "too-large"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """How many numbers."""

        size: int = 163840

    def arrays(self, parameters, rng):
        """One vector."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)})

    def jax(self, parameters, arrays, tools):
        """All of them returned."""
        return self._program(arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """The same."""
        return self._program(arrays, tools)

    def _program(self, arrays, tools):
        def step(x, batch):
            return x, x[:, None] * x[None, :]

        export = lambda x, _: {"x": x}
        return Program(state=tools.put(arrays.state["x"]), step=step, export=export)
'''


def found(directory: Path, target: str) -> Result:
    (file,) = (directory / "out").glob(f"target-{target}-*.result.json")
    return Result.model_validate_json(file.read_text())


def compile_for(directory: Path, file: str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    return accelbench("run", file, *options, "--out", "out", cwd=directory, **more)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A claim of the ledger, for an H100 and for sixteen TPUs, as a user asks for it."""
    directory = tmp_path_factory.mktemp("targets")
    options = ("--target", "h100,v5e-16", "--set", "size=65536")
    return directory, compile_for(directory, str(ROW), *options, PYTHONPATH=compilers.path(), COLUMNS="140")


def test_a_claim_is_compiled_for_a_gpu_and_for_tpus_that_are_not_there(
    compiled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, done = compiled
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "jax/jit fits h100 (" in done.stdout
    assert "jax/jit fits v5e-16 (" in done.stdout
    assert "kernelsPerCall of jax/jit at least 1 and at most 1: met, 1." in done.stdout
    assert "speedup" not in done.stdout, "what only a measurement can meet is left out"
    for target, platform in (("h100", "cuda"), ("v5e-16", "tpu")):
        result = found(directory, target)
        jitted = next(each for each in result.variants if each.name == "jax/jit")
        assert (result.protocol, result.valid, platform) == ("compile", True, platform)
        assert jitted.numbers.kernels == 1, "sin, cos and the sum are one kernel"
        assert jitted.numbers.argument_bytes
        assert jitted.numbers.compile_peak_memory_bytes
        assert [phase.phase for phase in jitted.phases][-1] == "compile"


def test_estimated_figures_of_a_gpu_are_marked_as_such(
    compiled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, _ = compiled
    gpu = next(each for each in found(directory, "h100").compiled if each.variant == "jax/jit")
    (tpu,) = found(directory, "v5e-16").compiled
    assert {"kernels", "peakBytes", "temporaryBytes"} <= set(gpu.estimates)
    assert not {"argumentBytes", "aliasedBytes", "collectives"} & set(gpu.estimates)
    assert not tpu.estimates


def test_an_eager_variant_has_a_reason_why_it_is_not_compiled(
    compiled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, _ = compiled
    eager = next(each for each in found(directory, "v5e-16").variants if each.name == "pytorch/eager")
    assert eager.failure is not None
    assert (eager.failure.reason, eager.failure.message) == (
        "Unsupported",
        "PyTorch computes on cpu and cuda, and not on tpu",
    )


def test_eager_pytorch_has_three_kernels_for_one_of_a_compiled_program(
    compiled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, done = compiled
    result = found(directory, "h100")
    of = {each.name: each for each in result.variants}
    eager, jitted = of["pytorch/eager"], of["jax/jit"]
    assert (eager.numbers.kernels, jitted.numbers.kernels) == (3, 1), "sin, cos and their sum"
    assert eager.numbers.argument_bytes == jitted.numbers.argument_bytes
    assert eager.numbers.flops_per_call == jitted.numbers.flops_per_call
    assert next(each for each in result.compiled if each.variant == "pytorch/eager").dispatched
    assert "pytorch/eager fits h100 (" in done.stdout


def test_a_program_that_is_too_large_for_a_tpu_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "too_large.py").write_text(TOO_LARGE)
    options = ("--variant", "jax/jit", "--variant", "pytorch/eager", "--target", "v5e-1,h100")
    done = compile_for(tmp_path, "too_large.py", *options, PYTHONPATH=compilers.path())
    assert done.returncode == Exit.SUCCESS, done.stderr
    for target in ("v5e-1", "h100"):
        result = found(tmp_path, target)
        assert result.valid
        assert not any(each.fits for each in result.compiled)
        assert result.variants[0].numbers.fits == 0
        assert f"jax/jit does not fit {target}" in done.stdout
    assert found(tmp_path, "v5e-1").compiled[0].refused.startswith("RESOURCE_EXHAUSTED")
    assert found(tmp_path, "h100").variants[0].numbers.peak_bytes
    assert found(tmp_path, "h100").variants[1].numbers.peak_bytes == 4 * (163_840 + 163_840**2)


def test_arrays_are_divided_and_the_gradients_are_summed_over_all_devices(tmp_path: Path) -> None:
    sizes = ("inputs=256", "hidden=512", "outputs=64", "batch=256")
    chosen = [option for size in sizes for option in ("--set", size)]
    done = compile_for(
        tmp_path, "mlp", "--variant", "jax/jit", *chosen, "--target", "h100x8", PYTHONPATH=compilers.path()
    )
    assert done.returncode == Exit.SUCCESS, done.stderr
    numbers = found(tmp_path, "h100x8").variants[0].numbers
    parameters = 256 * 512 + 512 + 512 * 64 + 64
    assert numbers.all_reduces
    assert numbers.all_reduce_bytes is not None
    # Each gradient, and the loss.
    assert numbers.all_reduce_bytes == 4 * (parameters + 1)


LM = ROOT / "examples" / "07-transformer-lm-on-accelerators.yaml"
SEVEN_BILLION = ("layers=32", "width=4096", "heads=32", "vocabulary=32000", "sequence=2048")


@pytest.mark.nightly
def test_seven_billion_weights_are_divided_over_eight_gpus_without_being_drawn(tmp_path: Path) -> None:
    chosen = [option for size in SEVEN_BILLION for option in ("--set", size)]
    done = compile_for(tmp_path, str(LM), *chosen, "--target", "h100x8", PYTHONPATH=compilers.path())
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "jax/jit-scanned fits h100x8 (" in done.stdout
    result = found(tmp_path, "h100x8")
    numbers, parameters = result.variants[0].numbers, TransformerLm.Parameters(**result.case.parameters)
    assert numbers.argument_bytes == pytest.approx(held_on(parameters, targets.find("h100x8")), rel=0.01)
    assert numbers.aliased_bytes == pytest.approx(numbers.argument_bytes, rel=0.01), "the old state is given away"
    assert numbers.compile_peak_memory_bytes is not None
    assert numbers.compile_peak_memory_bytes < 2**31
    assert numbers.all_gathers, "each layer's weights are gathered where they are used"
    assert numbers.reduce_scatters, "their gradients are summed, and lie apart again"
    assert not numbers.all_to_alls, "nothing that lies apart one way has to lie apart another way"


@pytest.mark.parametrize(
    ("choice", "expected_text"),
    [
        ("tensor=3", "h100x8: data 1 x tensor 3 do not divide 8 devices, so fsdp cannot be 0"),
        pytest.param(
            *("batch=3", "a dimension of 3 of targets cannot be divided evenly over 2 devices (data x fsdp)"),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_division_that_devices_do_not_allow_is_refused_with_the_remedy(
    tmp_path: Path, choice: str, expected_text: str
) -> None:
    compile_for(tmp_path, str(LM), "--set", choice, "--target", "h100x8", PYTHONPATH=compilers.path())
    failure = found(tmp_path, "h100x8").variants[0].failure
    assert failure is not None
    assert failure.reason == "Unsupported"
    assert expected_text in failure.message


def test_a_missing_compiler_for_a_target_is_named(tmp_path: Path) -> None:
    done = compile_for(tmp_path, "mlp", "--target", "v5e-16")
    if "needs libtpu" not in done.stderr and done.returncode == Exit.SUCCESS:
        pytest.skip("this environment has libtpu")
    assert done.returncode == Exit.INVALID_SPEC
    assert "compiling for v5e-16 needs libtpu: pip install 'accelbench[targets-tpu]'" in done.stderr


@pytest.mark.parametrize(
    ("workload", "use", "parameters"),
    [
        ("mlp", "jax/jit", {}),
        pytest.param("inplace-update", "jax/jit-donated", {"size": 65_536}, marks=pytest.mark.nightly),
        pytest.param("matmul-chain", "jax/jit", {"size": 64, "length": 3}, marks=pytest.mark.nightly),
        pytest.param("loop-unrolling", "jax/jit-scan", {}, marks=pytest.mark.nightly),
        pytest.param("transformer-lm", "jax/jit", {}, marks=pytest.mark.nightly),
    ],
)
def test_compiled_figures_of_the_processor_are_those_that_a_run_on_it_reports(
    tmp_path: Path, workload: str, use: str, parameters: dict[str, Any]
) -> None:
    both = here.planned_and_run(tmp_path, workload, use, parameters)
    assert {name: both.planned[name] for name in here.FACTS} == {
        name: both.ran["executable"][name] for name in here.FACTS
    }


@pytest.mark.parametrize(
    ("workload", "use", "parameters", "small"),
    [pytest.param(*row, marks=[] if row[0] == "elementwise-fusion" else [pytest.mark.nightly]) for row in PEAKS],
)
def test_the_planned_peak_on_the_processor_is_that_of_a_run_on_it(
    tmp_path: Path, workload: str, use: str, parameters: dict[str, Any], small: dict[str, Any]
) -> None:
    """More programs, and those that are further off: docs/results/compiled_against_run.md."""
    both = here.planned_and_run(tmp_path, workload, use, parameters, small)
    assert both.planned["kernelsPerCall"] == both.ran["executable"]["kernelsPerCall"]
    assert both.planned["aliasedBytes"] == both.ran["executable"]["aliasedBytes"]
    assert both.peak == pytest.approx(both.planned_peak, rel=here.PEAK)


def test_a_compiler_that_wants_more_memory_than_it_may_have_fails_alone(tmp_path: Path) -> None:
    launched = here.compiled(tmp_path / "small", "matmul-chain", "jax/jit", {}, memory_bytes=64 * 1024**2)
    assert launched.status != 0
    assert not launched.facts.get("compiled")

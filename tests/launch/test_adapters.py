"""The adapters' programs, inspected inside a process of the framework."""

from pathlib import Path
from typing import Any

import pytest

from accelbench_runner.frameworks.adapter import Span, seconds_by_part
from launch.inside import inside


@pytest.fixture(scope="module")
def chain_in_jax() -> dict[str, Any]:
    """matmul-chain of 100 products in the three modes: optimised program, compilations ahead, at and after the call."""
    found: dict[str, Any] = inside(
        "jax",
        """
found = {}
for mode in ("jit", "scan", "op-by-op"):
    adapter, program, work = prepare("matmul-chain", f"jax/{mode}", {"size": 32, "length": 100})
    start = len(adapter.accounting.compilations().causes)
    adapter.compile_ahead(work)
    ahead = adapter.accounting.compilations().causes[start:]
    work.synchronise(work.call(work.fresh(), work.batches))
    first = adapter.accounting.compilations().causes[start + len(ahead):]
    work.synchronise(work.call(work.fresh(), work.batches))
    again = adapter.accounting.compilations().causes[start + len(ahead) + len(first):]
    text = adapter.compiled.executable.as_text() if ahead else ""
    counts = {"dots": text.count(" dot("), "loops": text.count(" while(")}
    found[mode] = {"ahead": ahead, "first": first, "again": again, **counts}
print(json.dumps(found))
""",
    )
    return found


def test_jit_unrolls_every_product_into_one_program(chain_in_jax: dict[str, Any]) -> None:
    assert chain_in_jax["jit"]["dots"] == 100
    assert chain_in_jax["jit"]["loops"] == 0


def test_scan_keeps_one_product_in_a_loop(chain_in_jax: dict[str, Any]) -> None:
    assert chain_in_jax["scan"]["dots"] == 1
    assert chain_in_jax["scan"]["loops"] == 1


@pytest.mark.parametrize("mode", ["jit", "scan"])
def test_a_program_compiled_ahead_is_not_compiled_again_by_the_call(chain_in_jax: dict[str, Any], mode: str) -> None:
    assert len(chain_in_jax[mode]["ahead"]) == 1
    assert chain_in_jax[mode]["first"] == chain_in_jax[mode]["again"] == []


def test_op_by_op_compiles_single_operations_and_no_whole_program(chain_in_jax: dict[str, Any]) -> None:
    assert chain_in_jax["op-by-op"]["ahead"] == []
    assert chain_in_jax["op-by-op"]["first"] == ["jit(matmul) was compiled"]
    assert chain_in_jax["op-by-op"]["again"] == []


@pytest.mark.parametrize(
    ("framework", "module", "settings"),
    [
        (
            "pytorch",
            "torch",
            "[backend.fp32_precision for backend in accelbench_runner.frameworks.pytorch.FP32_BACKENDS.values()]",
        ),
        ("jax", "jax", "[jax.config.jax_default_matmul_precision]"),
    ],
)
def test_default_precision_leaves_a_frameworks_settings_as_they_are(framework: str, module: str, settings: str) -> None:
    code = """
import numpy, FRAMEWORK, accelbench_runner
from accelbench.frameworks import Options
before = SETTINGS
adapter = Adapter(AdapterSettings("eager", Options(), "cpu", "default", 1, False))
adapter.initialise()
print(json.dumps([before, SETTINGS, adapter.precision().matmul, str(adapter.put({"x": numpy.ones(2)})["x"].dtype)]))
"""
    before, after, read_back, dtype = inside(framework, code.replace("SETTINGS", settings).replace("FRAMEWORK", module))
    assert before == after
    assert list(read_back.values()) == after
    assert dtype.endswith("float32")


@pytest.mark.parametrize("use", ["jax/jit", "pytorch/eager", "numpy/eager"])
@pytest.mark.parametrize(("precision", "expected"), [("float32", "complex64"), ("float64", "complex128")])
def test_complex_numbers_have_parts_of_the_precision(use: str, precision: str, expected: str) -> None:
    code = f"""
import numpy
adapter, _, _ = prepare("matmul-chain", {use!r}, {{"size": 8, "length": 1}}, precision={precision!r})
print(json.dumps(str(adapter.put({{"z": numpy.ones(3, complex)}})["z"].dtype)))
"""
    assert inside(use.partition("/")[0], code).removeprefix("torch.") == expected


def test_integers_that_jax_would_narrow_are_refused_where_they_do_not_fit() -> None:
    code = """
from accelbench_runner.frameworks.adapter import UnsupportedError
import numpy
adapter, _, _ = prepare("matmul-chain", "jax/jit", {"size": 8, "length": 1})
kept = str(adapter.put({"n": numpy.array([7])})["n"].dtype)
try:
    adapter.put({"n": numpy.array([2**40])})
except UnsupportedError as error:
    print(json.dumps([kept, str(error)]))
"""
    assert inside("jax", code) == [
        "int32",
        "JAX has no int64 outside of float64, and the numbers do not fit int32",
    ]


def test_a_fused_sum_is_one_pass_over_memory() -> None:
    fusions = inside(
        "jax",
        """
adapter, program, work = prepare("elementwise-fusion", "jax/jit", {"size": 4096})
adapter.compile_ahead(work)
entry = adapter.compiled.executable.as_text().split("ENTRY")[1]
print(json.dumps(entry.count(" fusion(") + entry.count(" call(")))
""",
    )
    assert fusions == 1


def test_pytorch_applies_and_reports_the_requested_precision_and_threads() -> None:
    read = inside(
        "pytorch",
        """
adapter, program, work = prepare("matmul-chain", "pytorch/eager", {"size": 8, "length": 2}, "bfloat16", 2)
print(json.dumps([adapter.precision().model_dump(), adapter.accounting.threads(), str(program.state.dtype)]))
""",
    )
    precision, threads, dtype = read
    assert precision["dtype"] == "bfloat16"
    assert dtype == "torch.bfloat16"
    assert set(precision["matmul"].values()) == {"ieee"}
    assert precision["flush_denormal"] is True
    assert threads == 2


def test_a_state_that_is_changed_in_place_is_fresh_in_every_block() -> None:
    first, second, after = inside(
        "pytorch",
        """
adapter, program, work = prepare("xor", "pytorch/nn", {"epochs": 5})
def weights(state): return state[0][0].weight.flatten().tolist()
one = work.fresh(); before = weights(one)
work.call(one, work.batches)
print(json.dumps([before, weights(work.fresh()), weights(one)]))
""",
    )
    assert first == second
    assert first != after


def test_a_launch_on_a_cpu_leaves_cuda_alone() -> None:
    assert not inside(
        "pytorch",
        """
import torch
adapter, program, work = prepare("matmul-chain", "pytorch/eager", {"size": 8, "length": 2})
work.synchronise(work.call(work.fresh(), work.batches))
print(json.dumps(torch.cuda.is_initialized()))
""",
    )


def test_several_host_devices_of_xla_are_emulated() -> None:
    emulation = inside(
        "jax",
        """
import os
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
adapter, _, _ = prepare("matmul-chain", "jax/jit", {"size": 8, "length": 2})
print(json.dumps(adapter.accounting.describe_emulation()))
""",
    )
    assert emulation == "XLA makes 4 devices of one host's processor"


def test_several_processes_of_one_host_on_gloo_are_emulated(tmp_path: Path) -> None:
    alone, together = inside(
        "pytorch",
        f"""
import os
from torch import distributed
adapter, _, _ = prepare("matmul-chain", "pytorch/eager", {{"size": 8, "length": 2}})
alone = adapter.accounting.describe_emulation()
child = os.fork()
distributed.init_process_group(
    "gloo", init_method="file://{tmp_path}/group", rank=1 if child else 0, world_size=2
)
together = adapter.accounting.describe_emulation()
distributed.barrier()
if not child:
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([alone, together]))
""",
    )
    assert (alone, together) == ("", "2 processes of one host communicate through gloo")


def test_batches_of_different_shapes_cannot_be_scanned() -> None:
    message = inside(
        "jax",
        """
from dataclasses import replace
import jax.numpy as jnp
adapter, program, work = prepare("matmul-chain", "jax/scan", {"size": 8, "length": 2})
try:
    adapter.prepare(replace(program, batches=({"w": jnp.ones((8, 8))}, {"w": jnp.ones((8, 4))})))
except UnsupportedError as error:
    print(json.dumps(str(error)))
""",
    )
    assert "one shape" in message


def test_steps_of_a_call_take_the_batches_in_turn() -> None:
    outs = inside(
        "jax",
        """
from accelbench.workload import Program
import jax.numpy as jnp
found = []
for mode in ("jit", "scan", "op-by-op"):
    adapter, _, _ = prepare("matmul-chain", f"jax/{mode}", {"size": 8, "length": 2})
    program = Program(
        state=jnp.zeros(()), step=lambda s, b: (10 * s + b["digit"], s), inner=5,
        batches=({"digit": jnp.float32(1)}, {"digit": jnp.float32(2)}, {"digit": jnp.float32(3)}),
    )
    work = adapter.prepare(program)
    state, out = work.call(work.fresh(), work.batches)
    found.append([float(state), float(work.last_out(out)), work.units])
print(json.dumps(found))
""",
    )
    assert outs == [[12312.0, 1231.0, 5]] * 3


def test_nested_spans_count_each_moment_once_for_the_innermost() -> None:
    spans = [
        Span(0.0, 10.0, "trace"),
        Span(2.0, 5.0, "trace"),
        Span(3.0, 4.0, "backend"),
        Span(10.0, 12.0, "lower"),
        Span(20.0, 21.0, "backend"),
    ]
    assert seconds_by_part(reversed(spans)) == pytest.approx({"trace": 9.0, "backend": 2.0, "lower": 2.0})


@pytest.mark.parametrize(("use", "backend"), [("jax/jit", "jax"), ("pytorch/eager", "torch")])
def test_keras_uses_the_framework_of_the_launch_regardless_of_the_users_settings(use: str, backend: str) -> None:
    code = f"""
import os
prepare("dispatch-overhead", "{use}", {{}})
print(json.dumps(os.environ["KERAS_BACKEND"]))
"""
    assert inside(use.partition("/")[0], code, {"KERAS_BACKEND": "tensorflow"}) == backend


def test_a_program_may_call_torch_export_without_changing_the_precision() -> None:
    """It reads an older flag of TF32, and fails if that contradicts the new settings."""
    code = """
import torch
adapter, _, _ = prepare("dispatch-overhead", "pytorch/eager", {})
before = adapter.precision().matmul
torch.export.export(torch.nn.Tanh(), (torch.ones(2),))
print(json.dumps([before, adapter.precision().matmul]))
"""
    before, after = inside("pytorch", code)
    assert before == after
    assert set(before.values()) == {"ieee"}


def test_a_custom_function_of_autograd_that_runs_without_it_has_recorded_nothing() -> None:
    code = """
import dataclasses, torch

class Round(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return torch.round(x)

adapter, program, _ = prepare("dispatch-overhead", "pytorch/eager", {"size": 3})

def recorded(step):
    work = adapter.prepare(dataclasses.replace(program, step=step))
    return adapter.accounting.arithmetic(work).operations_recorded

def with_autograd(x, _):
    with torch.enable_grad():
        return Round.apply(x.clone().requires_grad_() * 2).detach(), None

print(json.dumps([recorded(lambda x, _: (Round.apply(x * 2), None)), recorded(with_autograd)]))
"""
    without, with_autograd = inside("pytorch", code)
    assert without == 0
    assert with_autograd > 0

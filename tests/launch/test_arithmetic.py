"""Floating-point operations, as a program was written and as a compiler left it."""

from typing import Any

import pytest

from accelbench_runner.frameworks.xla_arithmetic import count_hlo
from launch.inside import inside

COUNT = """
from dataclasses import replace
from accelbench_runner.frameworks.adapter import AdapterSettings
from accelbench.workload import Program
import numpy as np

def repeated(x, w):
    for _ in range(10):
        y = tanh(x @ w)
    return y

def dropped(x, w):
    for _ in range(10):
        tanh(x @ w)
    return x + 1

def chosen(x, w):
    return either(x[0, 0] > 0, lambda: tanh(x @ w), lambda: x)

def narrow(x, w):
    return (x.astype("bfloat16") @ w.astype("bfloat16")).astype("float32")

def looped(x, w):
    return scan(x, w)

found = {}
for use, function in %s:
    adapter, program, _ = prepare("matmul-chain", use, {"size": 8, "length": 1})
    step = lambda x, batch, function=function: (function(x, batch["w"]), None)
    work = adapter.prepare(replace(program, step=step))
    adapter.compile_ahead(work)
    work.synchronise(work.call(work.fresh(), work.batches))
    counted = adapter.accounting.arithmetic(work)
    assert set(counted.types) == ({"bfloat16", "float32"} if function is narrow else {"float32"}), counted
    found[f"{use} {function.__name__}"] = [counted.written, counted.run]
print(json.dumps(found))
"""
PRODUCT, TANH = 2 * 8**3, 8**2
IN_JAX = """import jax
from jax.numpy import tanh
either = jax.lax.cond
def scan(x, w):
    return jax.lax.fori_loop(0, 10, lambda _, x: tanh(x @ w), x)
"""
IN_PYTORCH = "from torch import tanh"


def counted(framework: str, head: str, asked: str) -> dict[str, Any]:
    found: dict[str, Any] = inside(framework, head + COUNT % asked)
    return found


def test_operations_that_xla_hoists_or_drops_count_as_written_and_not_as_run() -> None:
    asked = '[("jax/jit", repeated), ("jax/jit", dropped), ("jax/jit", looped), ("jax/op-by-op", repeated)]'
    assert counted("jax", IN_JAX, asked) == {
        "jax/jit repeated": [10 * (PRODUCT + TANH), PRODUCT + TANH],
        "jax/jit dropped": [10 * (PRODUCT + TANH) + 8**2, 8**2],
        "jax/jit looped": [10 * (PRODUCT + TANH), 10 * (PRODUCT + TANH)],
        "jax/op-by-op repeated": [10 * (PRODUCT + TANH), 10 * (PRODUCT + TANH)],
    }


def test_the_branch_taken_is_known_only_at_run_time() -> None:
    asked = '[("jax/jit", chosen), ("jax/op-by-op", chosen), ("jax/jit", narrow)]'
    assert counted("jax", IN_JAX, asked) == {
        "jax/jit chosen": [None, None],
        "jax/op-by-op chosen": [None, None],
        "jax/jit narrow": [PRODUCT, PRODUCT],
    }


@pytest.mark.slow
def test_operations_that_inductor_drops_count_as_written_and_not_as_run() -> None:
    asked = '[("pytorch/eager", repeated), ("pytorch/compile", repeated), ("pytorch/compile", dropped)]'
    assert counted("pytorch", IN_PYTORCH, asked) == {
        "pytorch/eager repeated": [10 * (PRODUCT + TANH), 10 * (PRODUCT + TANH)],
        "pytorch/compile repeated": [10 * (PRODUCT + TANH), PRODUCT + TANH],
        "pytorch/compile dropped": [10 * (PRODUCT + TANH) + 8**2, 8**2],
    }


ON_A_GPU = """HloModule jit_f

%fused (p0: f32[64,32], p1: f32[32,16]) -> f32[64,16] {
  %p0 = f32[64,32]{1,0} parameter(0)
  %p1 = f32[32,16]{1,0} parameter(1)
  %dot.1 = f32[64,16]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %exp = f32[64,16]{1,0} exponential(%dot.1)
}

ENTRY %main (x: f32[64,32], w: f32[32,16], image: f32[1,8,8,3], kernel: f32[3,3,3,4]) -> f32[64,16] {
  %x = f32[64,32]{1,0} parameter(0)
  %w = f32[32,16]{1,0} parameter(1)
  %image = f32[1,8,8,3]{3,2,1,0} parameter(2)
  %kernel = f32[3,3,3,4]{3,2,1,0} parameter(3)
  %called = f32[64,16]{1,0} custom-call(%x, %w), custom_call_target="__cublas$gemm", backend_config={}
  %convolved = f32[1,8,8,4]{3,2,1,0} convolution(%image, %kernel), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  %copied = f32[64,16]{1,0} copy(%called)
  ROOT %f = f32[64,16]{1,0} fusion(%x, %w), kind=kCustom, calls=%fused
}
"""  # noqa: E501 - as XLA writes it


def test_products_and_convolutions_of_libraries_count_by_their_shapes() -> None:
    product, convolution = 2 * 64 * 32 * 16, 2 * 8 * 8 * 4 * 3 * 3 * 3
    assert count_hlo(ON_A_GPU) == pytest.approx(2 * product + 64 * 16 + convolution)


CONVOLUTIONS_OF_CUDNN = """HloModule jit_step

ENTRY %main (image: f32[2,8,6,3], kernel: f32[4,3,3,3], at: f32[2,8,6,4]) -> f32[4,3,3,3] {
  %image = f32[2,8,6,3]{3,2,1,0} parameter(0)
  %kernel = f32[4,3,3,3]{3,2,1,0} parameter(1)
  %at = f32[2,8,6,4]{3,2,1,0} parameter(2)
  %forward = (f32[2,8,6,4]{3,2,1,0}, u8[0]{0}) custom-call(%image, %kernel), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
  %at_image = (f32[2,8,6,3]{3,2,1,0}, u8[0]{0}) custom-call(%at, %kernel), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardInput"
  %at_kernel = (f32[4,3,3,3]{3,2,1,0}, u8[0]{0}) custom-call(%image, %at), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardFilter"
  %product = (f32[5,7]{1,0}, s8[64]{0}) custom-call(%left, %right), custom_call_target="__cublas$lt$matmul"
  %left = f32[5,11]{1,0} parameter(3)
  %right = f32[11,7]{1,0} parameter(4)
  ROOT %f = f32[4,3,3,3]{3,2,1,0} get-tuple-element(%at_kernel), index=0
}
"""  # noqa: E501 - as XLA writes it


def test_workspaces_of_library_calls_do_not_count_as_results() -> None:
    forward = 2 * (2 * 8 * 6 * 4) * (3 * 3 * 3)
    assert count_hlo(CONVOLUTIONS_OF_CUDNN) == pytest.approx(3 * forward + 2 * 5 * 11 * 7)


IN_LIBRARIES = """HloModule jit_f

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%larger (c: f32[], d: f32[]) -> f32[] {
  %c = f32[] parameter(0)
  %d = f32[] parameter(1)
  ROOT %max = f32[] maximum(%c, %d)
}

ENTRY %main (x: f32[6,6], y: f32[6,2], ids: s32[5], z: c64[4,8]) -> f32[6,2] {
  %x = f32[6,6]{1,0} parameter(0)
  %y = f32[6,2]{1,0} parameter(1)
  %ids = s32[5]{0} parameter(2)
  %z = c64[4,8]{1,0} parameter(3)
  %lu = (f32[6,6]{0,1}, s32[6]{0}, s32[]) custom-call(%x), custom_call_target="lapack_sgetrf_ffi"
  %factors = f32[6,6]{0,1} get-tuple-element(%lu), index=0
  %solved = f32[6,2]{0,1} custom-call(%factors, %y), custom_call_target="lapack_strsm_ffi"
  %spectrum = c64[4,8]{1,0} fft(%z), fft_type=FFT, fft_length={8}
  %squared = c64[4,8]{1,0} multiply(%spectrum, %spectrum)
  %product = c64[8,8]{1,0} dot(%z, %z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  %zero = f32[] constant(0)
  %summed = f32[6,2]{1,0} scatter(%y, %ids, %rows), to_apply=%add
  %rows = f32[5,2]{1,0} parameter(4)
  %largest = f32[6,2]{1,0} scatter(%y, %ids, %rows), to_apply=%larger
  %total = f32[6]{0} reduce(%x, %zero), dimensions={1}, to_apply=%add
  %greatest = f32[6]{0} reduce(%x, %zero), dimensions={1}, to_apply=%larger
  ROOT %sorted = f32[6,2]{1,0} sort(%solved), dimensions={0}, to_apply=%larger
}
"""


def test_libraries_transforms_and_what_combines_numbers_count_by_their_shapes() -> None:
    factorised, solved = 2 * 6**3 / 3, 6 * 6 * 2
    transformed, squared, product = 5 * 4 * 8 * 3, 6 * 4 * 8, 4 * 2 * 8 * 4 * 8
    summed = 5 * 2 + 6 * 6  # by a scatter and a reduction; choosing the largest counts nothing
    assert count_hlo(IN_LIBRARIES) == pytest.approx(factorised + solved + transformed + squared + product + summed)


def test_a_loop_of_unknown_length_cannot_be_counted() -> None:
    endless = ON_A_GPU.replace('custom-call(%x, %w), custom_call_target="__cublas$gemm"', "while(%x), body=%fused")
    assert count_hlo(endless) is None
    assert count_hlo("no module") is None

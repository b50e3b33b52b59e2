"""Kernels and collectives of an optimised program, read from HLO of GPUs' and TPUs' compilers."""

import pytest

from accelbench_runner.frameworks.xla_programs import inspect_program

LOOP = """
HloModule jit_f

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %tanh = f32[8]{0} tanh(%p)
  ROOT %add = f32[8]{0} add(%tanh, %p)
}

%body (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]{0}) parameter(0)
  %x = f32[8]{0} get-tuple-element(%s), index=1
  %wrapped = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused
  %n = s32[] get-tuple-element(%s), index=0
  ROOT %t = (s32[], f32[8]{0}) tuple(%n, %wrapped)
}

%condition (s.1: (s32[], f32[8])) -> pred[] {
  %s.1 = (s32[], f32[8]{0}) parameter(0)
  ROOT %less = pred[] compare(%s.1, %s.1), direction=LT
}

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[8]{0}, /*index=2*/f32[8]{0}) tuple(%zero, %a, %a)
  %loop = (s32[], f32[8]{0}) while(%start), condition=%condition, body=%body
  %space = f32[8]{0} custom-call(), custom_call_target="AllocateBuffer"
  ROOT %out = f32[8]{0} sort(%a), dimensions={0}
}
"""


def test_a_kernel_counts_once_however_often_a_loop_runs_it() -> None:
    made = inspect_program(LOOP)
    assert made is not None
    assert (made.kernels, made.fusions) == (2, 1)
    assert made.fused == ("add, tanh",)
    assert not made.collectives


def entry(*lines: str) -> str:
    return "HloModule m\n\nENTRY %main (a: f32[8]) -> f32[8] {\n  " + "\n  ".join(lines) + "\n}\n"


@pytest.mark.parametrize(
    ("line", "kind", "size"),
    [
        ("%r = f32[512,512]{1,0} all-reduce(%a), channel_id=1", "all-reduce", 2**20),
        ("%r = (f32[64]{0}, bf16[2,32]{1,0:T(8,128)(2,1)}) all-reduce(%a, %b)", "all-reduce", 256 + 128),
        ("%r = f32[64]{0} all-reduce-start(%a), channel_id=2", "all-reduce", 256),
        ("%r = (f32[8]{0}, f32[64]{0}) all-gather-start(%a), channel_id=3", "all-gather", 256),
        ("%r = ((f32[8], f32[4]), (f32[64], f32[32])) all-gather-start(%a, %b)", "all-gather", 256 + 128),
        ("%r = ((f32[64]{0}), f32[8]{0}) reduce-scatter-start(%a)", "reduce-scatter", 32),
        ("%r = (s8[8], s8[8], u32[], /*index=3*/u32[]) collective-permute-start(%a)", "collective-permute", 8),
        ("%r = pred[16]{0} all-to-all(%a)", "all-to-all", 16),
    ],
)
def test_a_collective_leaves_its_result_on_a_device_and_nothing_else(line: str, kind: str, size: int) -> None:
    made = inspect_program(entry("%a = f32[8]{0} parameter(0)", line, "%d = f32[64]{0} all-reduce-done(%r)"))
    assert made is not None
    assert made.collectives == {kind: (1, size)}
    name = kind.replace("-", "_")
    assert (made.size_fields()[f"{name}s"], made.size_fields()[f"{name}_bytes"]) == (1, size)


THRICE = """
HloModule tpu

%begin (p: bf16[8]) -> bf16[64] {
  %p = bf16[8]{0} parameter(0)
  ROOT %g.1 = bf16[64]{0} all-gather(%p), channel_id=4
}

%go_on (q: bf16[8]) -> bf16[64] {
  %q = bf16[8]{0} parameter(0)
  ROOT %g.2 = bf16[64]{0} all-gather(%q), channel_id=4
}

ENTRY %main (a: bf16[8]) -> bf16[64] {
  %a = bf16[8]{0} parameter(0)
  %start = bf16[64]{0} fusion(%a), kind=kCustom, calls=%begin
  %done = bf16[64]{0} fusion(%a), kind=kCustom, calls=%go_on
  ROOT %other = bf16[64]{0} all-gather(%a), channel_id=5
}
"""


def test_a_collective_that_a_tpus_program_names_where_it_begins_and_ends_counts_once() -> None:
    made = inspect_program(THRICE)
    assert made is not None
    assert made.collectives == {"all-gather": (2, 256)}


def test_a_text_that_is_no_module_has_no_figures() -> None:
    assert inspect_program("no module") is None

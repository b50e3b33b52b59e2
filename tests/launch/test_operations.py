"""Work that compilers did away with, in real launches: what is left is counted, and the check says so."""

from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding
from accelbench.validity.evidence import Evidence
from accelbench.validity.work_present import CHECK
from accelbench_runner.frameworks.xla_operations import count_hlo, count_kernels
from launch.inside import inside
from launch.launching import case, install_odd_workloads, launch

pytestmark = pytest.mark.slow

FOUND = "{found} of 4 products in {source}"
HLO, DISPATCHED = "the optimised HLO", "the operations dispatched"


COUNT = """
from dataclasses import asdict
found = {}
for use in %r:
    adapter, program, work = prepare("declaring", use, {})
    adapter.compile_ahead(work)
    work.synchronise(work.call(work.fresh(), work.batches))
    counted = adapter.accounting.operations(work)
    found[use] = {
        "declared": {"products": 4, "convolutions": 0},
        "found": asdict(counted.operations) if counted else None,
        "source": counted.source if counted else None,
    }
print(json.dumps(found))
"""
DECLARING = {
    "jax/jit": ("passed", FOUND.format(found="4 products", source=HLO)),
    "jax/scan": ("passed", FOUND.format(found="4 products", source=HLO)),
    "jax/op-by-op": ("passed", FOUND.format(found="4 products", source=DISPATCHED)),
    "jax/hoisted": ("failed", FOUND.format(found="1 products", source=HLO)),
    "jax/folded": ("failed", FOUND.format(found="none", source=HLO)),
    "jax/dropped": ("failed", FOUND.format(found="none", source=HLO)),
    "jax/endless": ("untested", "4 products are declared, and how many run cannot be counted"),
    "pytorch/eager": ("passed", FOUND.format(found="4 products", source=DISPATCHED)),
    "pytorch/compile": ("passed", FOUND.format(found="4 products", source=DISPATCHED)),
    "pytorch/dropped": ("failed", FOUND.format(found="none", source=DISPATCHED)),
}


def found_by(use: str, operations: Any) -> tuple[str, str]:
    finding = look(case("declaring", use), {"operations": operations})
    return finding.outcome, finding.reading


def look(asked: Case, facts: dict[str, Any]) -> Finding:
    record = LaunchRecord(variant=asked.baseline, round=1, position=0, wall_seconds=1, facts=facts)
    ((_, finding),) = CHECK.evaluate(Evidence(case=asked, launches=(record,)))
    return finding


@pytest.mark.parametrize("framework", ["jax", "pytorch"])
def test_hoisted_folded_or_dropped_work_is_reported_as_missing(framework: str, tmp_path: Path) -> None:
    expected = {use: finding for use, finding in DECLARING.items() if use.startswith(framework)}
    counted = inside(framework, COUNT % list(expected), install_odd_workloads(tmp_path))
    assert {use: found_by(use, operations) for use, operations in counted.items()} == expected


def test_a_launch_reports_declared_work_and_the_work_of_one_call(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("declaring", "jax/dropped"))
    assert found_by("jax/dropped", launched.facts["operations"]) == DECLARING["jax/dropped"]


def test_the_products_of_a_training_step_are_counted_and_its_libraries_named(tmp_path: Path) -> None:
    asked = case("mlp", "jax/jit", {"outputs": 8})
    launched = launch(tmp_path, asked)
    assert launched.failure is None, launched.failure
    finding = look(asked, launched.facts)
    assert (finding.outcome, finding.reading) == ("passed", "5 products of 5 products in the optimised HLO")
    assert {"jax", "flax", "optax"} <= launched.facts["versions"].keys()


def test_without_a_declaration_floating_point_operations_are_counted(tmp_path: Path) -> None:
    asked = case("elementwise-fusion", "pytorch/eager", {"size": 64})
    launched = launch(tmp_path, asked, number=1)
    assert "operations" not in launched.facts
    finding = look(asked, launched.facts)
    assert finding.outcome == "passed", finding
    assert finding.reading == "192 floating-point operations in a call, in the operations dispatched"


ON_A_GPU = """HloModule jit_f

%gemm_fusion_dot (p0: f32[64,64], p1: f32[64,64]) -> f32[64,64] {
  %p0 = f32[64,64]{1,0} parameter(0)
  %p1 = f32[64,64]{1,0} parameter(1)
  ROOT %dot.1 = f32[64,64]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (t: (s32[], f32[64,64], /*index=2*/f32[64,64])) -> (s32[], f32[64,64], /*index=2*/f32[64,64]) {
  %t = (s32[], f32[64,64]{1,0}, /*index=2*/f32[64,64]{1,0}) parameter(0)
  %x = f32[64,64]{1,0} get-tuple-element(%t), index=1
  %g = f32[64,64]{1,0} fusion(%x, %x), kind=kCustom, calls=%gemm_fusion_dot
  %c = (f32[64,64]{1,0}, s8[0]{0}) custom-call(%g, %x), custom_call_target="__cublas$gemm", backend_config={}
  %d = (f32[1,64]{1,0}, u8[0]{0}) custom-call(%x), custom_call_target="__cudnn$convForward", window={size=3x3}
  ROOT %r = (s32[], f32[64,64]{1,0}, /*index=2*/f32[64,64]{1,0}) tuple(%x, %g, %g)
}

%shorter (t: (s32[], f32[64,64])) -> pred[] {
  %t.1 = (s32[], f32[64,64]{1,0}) parameter(0)
  %seven = s32[] constant(7)
  %i = s32[] get-tuple-element(%t.1), index=0
  ROOT %less = pred[] compare(%i, %seven), direction=LT
}

%called (p.1: f32[64,64]) -> f32[64,64] {
  %p.1 = f32[64,64]{1,0} parameter(0)
  %first = f32[64,64]{1,0} fusion(%p.1), kind=kLoop, calls=%other
  %second = f32[64,64]{1,0} fusion(%first), kind=kLoop, calls=%other
  ROOT %same = f32[64,64]{1,0} bitcast(%second)
}

%other (p: f32[64,64]) -> f32[64,64] {
  ROOT %p = f32[64,64]{1,0} parameter(0)
}

ENTRY %main (a: f32[64,64]) -> f32[64,64] {
  %a = f32[64,64]{1,0} parameter(0)
  %w = (s32[], f32[64,64]{1,0}) while(%a), condition=%shorter, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  %k = f32[64,64]{1,0} conditional(%a), branch_computations={%other, %gemm_fusion_dot}
  %called.1 = f32[64,64]{1,0} call(%a), to_apply=%called, frontend_attributes={xla_cpu_small_call="false"}
  %begun = f32[64,64]{1,0} all-reduce-start(%a), to_apply=%other
  %ended = f32[64,64]{1,0} all-reduce-done(%begun)
  ROOT %s = f32[64,64]{1,0} copy(%k)
}
"""


def test_libraries_fusions_loops_and_branches_are_counted() -> None:
    alike = ON_A_GPU.replace("{%other, %gemm_fusion_dot}", "{%gemm_fusion_dot, %gemm_fusion_dot}")
    counted = count_hlo(alike)
    assert counted is not None
    assert (counted.products, counted.convolutions) == (7 * 2 + 1, 7)
    assert count_hlo(alike.replace("known_trip_count", "forgotten")) is None
    assert count_hlo(ON_A_GPU) is None, "only the run tells which branch is taken"
    assert count_hlo("not HLO at all") is None


def test_every_operation_that_runs_by_itself_is_a_kernel_and_a_fusion_is_one() -> None:
    """Seven times a fusion and two library calls, without the condition; the longer branch; a copy; two fusions of
    a call, which a CPU makes one function of where it is small; a sum that is begun and ended. Tuples, constants and
    the like run nothing.
    """
    assert count_kernels(ON_A_GPU) == 7 * 3 + 1 + 1 + 2 + 1
    assert count_kernels(ON_A_GPU.replace('"false"', '"true"')) == 7 * 3 + 1 + 1 + 1 + 1
    assert count_kernels(ON_A_GPU.replace("copy(", "bitcast(")) == 7 * 3 + 1 + 2 + 1
    assert count_kernels(ON_A_GPU.replace("known_trip_count", "forgotten")) is None
    assert count_kernels("not HLO at all") is None


COMPILED = """
found = {}
for name, use, parameters in %r:
    adapter, program, work = prepare(name, use, parameters)
    adapter.compile_ahead(work)
    work.synchronise(work.call(work.fresh(), work.batches))
    size = adapter.accounting.executable_size()
    found[use] = size and size.model_dump()
print(json.dumps(found))
"""
SMALL, LARGE = {"size": 1024}, {"size": 2**22}
FACTS = ("kernels", "kernels_per_call", "program_size", "aliased_bytes", "temporary_bytes", "accessed_bytes")


def test_fusion_makes_one_kernel_of_three_operations() -> None:
    found = inside("jax", COMPILED % [("elementwise-fusion", use, LARGE) for use in ("jax/jit", "jax/op-by-op")])
    assert found["jax/jit"]["kernels_per_call"] == 1
    assert found["jax/jit"]["accessed_bytes"] == 2 * 4 * LARGE["size"]  # x is read once and written once
    assert found["jax/op-by-op"] is None
    none = inside("pytorch", COMPILED % [("elementwise-fusion", "pytorch/eager", SMALL)])
    assert none == {"pytorch/eager": None}


BYTES = """
import jax
import jax.numpy as jnp
from accelbench_runner.frameworks.jax_accounting import accessed_bytes
x = jnp.ones((64, 64))
programs = {
    "a library's operation": lambda x: jax.lax.top_k(x, 3),
    "after another": lambda x: jax.lax.top_k(x @ x, 3),
    "in a loop": lambda x: jax.lax.scan(lambda total, row: (total + row, jax.lax.top_k(total, 3)), x[0], x),
    "several": lambda x: jnp.linalg.solve(x, x),
    "a callback": lambda x: jax.pure_callback(lambda array: array, x, x) + 1,
    "a product": lambda x: x @ x,
}
costs = {name: jax.jit(program).lower(x).compile().cost_analysis() for name, program in programs.items()}
print(json.dumps({name: accessed_bytes(cost) for name, cost in costs.items()}))
"""


def test_the_bytes_of_a_call_are_unknown_if_those_of_one_operation_are() -> None:
    found = inside("jax", BYTES)
    assert found.pop("a product") == 2 * 4 * 64 * 64  # x is read once
    assert len(found) == 5
    assert set(found.values()) == {None}


def test_the_memory_of_a_donated_array_is_reused() -> None:
    asked = [("inplace-update", use, {**SMALL, "updates": 3}) for use in ("jax/jit", "jax/jit-donated")]
    found = inside("jax", COMPILED % asked)
    assert {use: facts["aliased_bytes"] for use, facts in found.items()} == {"jax/jit": 0, "jax/jit-donated": 4096}
    assert {facts["temporary_bytes"] for facts in found.values()} == {0}


def test_the_size_of_an_unrolled_loop_grows_with_its_length() -> None:
    found = [
        inside("jax", COMPILED % [("loop-unrolling", use, {"length": length}) for use in ("jax/jit", "jax/jit-scan")])
        for length in (20, 40)
    ]
    short, long = ({use: facts["program_size"] for use, facts in each.items()} for each in found)
    assert long["jax/jit-scan"] == short["jax/jit-scan"]
    assert long["jax/jit-scan"] < 100
    assert long["jax/jit"] > short["jax/jit"] + 3 * 20


def test_a_step_that_reads_values_is_measured_without_figures_of_a_program(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("looking", "jax/op-by-op"))
    assert launched.failure is None, launched.failure
    assert "executable" not in launched.facts
    assert "steady" in launched.phases


def test_a_launch_reports_the_compiled_program(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("elementwise-fusion", "jax/jit", {"size": 64}))
    assert launched.facts["executable"].keys() == {*map(to_camel, FACTS)}
    assert launched.facts["executable"]["kernelsPerCall"] == 1

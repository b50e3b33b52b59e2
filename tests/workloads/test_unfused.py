"""Without XLA's fusion pass, a kernel on a CPU computes one operation."""

import pytest

from launch.inside import inside

COMPILED = """
from accelbench_runner.frameworks import xla_programs
found = []
for use in ("jax/jit", "jax/jit-unfused"):
    adapter, program, work = prepare("activation-checkpointing", use, {"layers": 3, "width": 16, "batch": 64})
    adapter.compile_ahead(work)
    found.append(xla_programs.inspect_program(adapter.compiled.executable.as_text()).fused)
print(json.dumps(found))
"""
WITH_A_SUM = {"reduce", "reduce-window"}
"""These name what they add up by: `add, reduce` is one sum."""


def operations(kernel: str) -> set[str]:
    return {operation.partition(" ")[0] for operation in kernel.split(", ")}


@pytest.mark.slow
def test_a_kernel_computes_one_thing() -> None:
    fused, unfused = ([operations(kernel) for kernel in kernels] for kernels in inside("jax", COMPILED))
    assert {"add", "tanh"} in fused
    assert unfused
    assert [kernel for kernel in unfused if len(kernel - WITH_A_SUM) > 1] == []

"""The operations in a framework's trace are found, and what only dispatches them is left out."""

from typing import Any

import pytest

from accelbench_runner.frameworks import torch_trace, xla_trace
from accelbench_runner.frameworks.profiler import RecordedOperations
from accelbench_runner.frameworks.trace import Event, Operation
from accelbench_runner.frameworks.xla_sources import ProgramDescription

HOST, DEVICE = 1, 2
PROGRAM = ProgramDescription(
    module="jit_f",
    operations={"sort.0": Operation("sort", "rows.py:12"), "dot.1": Operation("dot_general")},
    looped=frozenset({"dot.1"}),
)


def event(name: str, began: float, ended: float, *, process: int = HOST, thread: int = 1, **fields: Any) -> Event:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": began, "dur": ended - began, **fields}


def instruction(name: str, began: float, ended: float, module: str = "jit_f", run: str = "7", **where: int) -> Event:
    return event(name, began, ended, args={"hlo_op": name, "hlo_module": module, "run_id": run}, **where)


def named(kind: str, name: str, **where: int) -> Event:
    return {"ph": "M", "name": kind, "args": {"name": name}, **where}


def runs(recorded: RecordedOperations) -> list[tuple[str, bool]]:
    return [(each.operation.name, each.counts) for each in recorded.intervals]


def test_an_instruction_in_several_parts_runs_once_in_each_call() -> None:
    parts = [
        instruction("sort.0", 0, 1),
        instruction("sort.0", 1, 90, thread=2),
        instruction("sort.0", 95, 99, run="8"),
    ]
    recorded = xla_trace.find_operations([*parts, event("PjitFunction(f)", 0, 99)], PROGRAM, op_by_op=False)
    assert runs(recorded) == [("sort", True), ("sort", False), ("sort", True)]
    assert recorded.intervals[0].operation.source == "rows.py:12"
    assert not recorded.shows_gaps


def test_an_instruction_in_a_loop_runs_each_time() -> None:
    recorded = xla_trace.find_operations(
        [instruction("dot.1", 0, 1), instruction("dot.1", 2, 3)], PROGRAM, op_by_op=False
    )
    assert runs(recorded) == [("dot_general", True), ("dot_general", True)]


@pytest.mark.parametrize("op_by_op", [True, False])
def test_other_programs_are_counted_as_a_whole(op_by_op: bool) -> None:
    events = [
        instruction("fusion", 0, 1, "jit_norm"),
        instruction("copy", 1, 2, "jit_norm"),
        instruction("fusion", 5, 6, "jit_norm(1234)", run="9"),
    ]
    recorded = xla_trace.find_operations(events, ProgramDescription(), op_by_op=op_by_op)
    assert runs(recorded) == [("norm", True), ("norm", False), ("norm", True)]
    assert recorded.intervals[0].operation.merged is not op_by_op
    assert recorded.shows_gaps is op_by_op


def test_on_a_device_only_its_streams_run_kernels() -> None:
    names = [
        named("process_name", "/host:CPU", pid=HOST),
        named("process_name", "/device:GPU:0", pid=DEVICE),
        named("thread_name", "Stream #13(Compute)", pid=DEVICE, tid=1),
        named("thread_name", "XLA Ops", pid=DEVICE, tid=2),
    ]
    kernel = instruction("dot.1", 0, 9, process=DEVICE, thread=1)
    again = instruction("dot.1", 0, 9, process=DEVICE, thread=2)
    dispatch = instruction("dot.1", 0, 1)
    recorded = xla_trace.find_operations([*names, kernel, again, dispatch], PROGRAM, op_by_op=False)
    assert [each.track for each in recorded.intervals] == [(DEVICE, 1)]
    assert recorded.shows_gaps


def test_pytorchs_kernels_on_a_gpu_take_the_place_of_what_dispatches_them() -> None:
    dispatch, kernel = event("aten::mm", 0, 2, cat="cpu_op"), event("sgemm", 1, 9, cat="kernel", process=DEVICE)
    launch = event("cudaLaunchKernel", 0, 1, cat="cuda_runtime")
    on_gpu = torch_trace.find_operations([dispatch, launch, kernel], {"aten::mm": "step.py:3"})
    assert runs(on_gpu) == [("sgemm", True)]
    assert on_gpu.shows_gaps
    on_cpu = torch_trace.find_operations([dispatch], {"aten::mm": "step.py:3"})
    assert on_cpu.intervals[0].operation == Operation("aten::mm", "step.py:3")
    assert not on_cpu.shows_gaps


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("aten::mm", False),
        ("aten::_fused_adamw_", False),
        ("graph_0_cpp_fused_add_mul_0", True),
        ("triton_poi_fused_add_0", True),
        ("Torch-Compiled Region: 0/0", True),
        ("## Call CompiledFxGraph fcy4 ##", True),
    ],
)
def test_what_inductor_made_of_several_operations_is_no_operation(name: str, merged: bool) -> None:
    (found,) = torch_trace.find_operations([event(name, 0, 1, cat="cpu_op")], {}).intervals
    assert found.operation.merged is merged

"""Steps whose compiled parts are replayed as CUDA graphs, as far as that can be seen without a GPU."""

from typing import Any

import pytest

from launch.inside import inside
from workloads.small import SMALL

pytestmark = pytest.mark.slow

SAME_MEMORY = """
import torch
from accelbench_runner.frameworks.torch_cuda_graphs import SameAddresses, with_marked_iterations

model = torch.nn.Linear(3, 3)
start = model.weight.detach().clone()
given = (model, torch.optim.AdamW(model.parameters()))

def train(state, batch):
    model, optimizer = state
    optimizer.zero_grad()
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    return state, loss.detach()

states, step, found = SameAddresses(), with_marked_iterations(train), []
for _ in range(2):
    state = states.copy(given)
    model, optimizer = state
    found.append({
        "address": model.weight.data_ptr(),
        "as at first": torch.equal(model.weight, start) and model.weight.grad is None and not optimizer.state,
        "updated": optimizer.param_groups[0]["params"][0] is model.weight,
    })
    for _ in range(2):
        state, loss = step(state, torch.ones(2, 3))
    found[-1]["trained"] = not torch.equal(state[0].weight, start)
print(json.dumps([found, torch.equal(given[0].weight, start)]))
"""
OUTPUTS = """
import torch
from accelbench_runner.frameworks.torch_cuda_graphs import with_marked_iterations

replayed = {"x": torch.zeros(3), "out": torch.zeros(1)}  # as a graph has the same memory for its outputs in each replay

def step(state, batch):
    replayed["x"].copy_(state["x"] + batch)
    state["count"].add_(1)
    return {"x": replayed["x"], "count": state["count"]}, [replayed["out"].copy_(replayed["x"].sum())]

call = with_marked_iterations(step)
state = given = {"x": torch.ones(3), "count": torch.zeros(1)}
first, out = call(given, torch.ones(1))
second, _ = call(first, torch.ones(1))
print(json.dumps([
    [first["x"].tolist(), second["x"].tolist(), out[0].tolist()],
    second["count"] is given["count"],
]))
"""
COPIED = """
import torch

def record(module, _):
    tensors = [node.meta for node in module.graph.nodes if node.op == "placeholder"]
    moving = [meta["example_value"] for meta in tensors if "_dynamo_static_input_type" not in meta["tensor_dict"]]
    found.append(sorted(list(tensor.shape) for tensor in moving))
    return module.forward

found, compile = [], torch.compile
torch.compile = lambda function, **options: compile(function, backend=record, fullgraph=True)
adapter, program, work = prepare(WORKLOAD, "pytorch/compile", PARAMETERS)
for _ in range(2):
    state = work.fresh()
    for _ in range(2):
        state, _ = work.call(state, work.batches)
print(json.dumps(found))
"""


def test_every_block_trains_from_the_first_state_in_the_same_memory() -> None:
    found, untouched = inside("pytorch", SAME_MEMORY)
    first, second = found
    assert first == second
    assert first["as at first"]
    assert first["updated"]
    assert first["trained"]
    assert untouched


def test_a_result_survives_the_next_replay_and_arrays_changed_in_place_are_not_copied() -> None:
    values, same = inside("pytorch", OUTPUTS)
    assert values == [[2.0] * 3, [3.0] * 3, [6.0]]
    assert same


@pytest.mark.parametrize(
    ("workload", "parameters", "copied"),
    [
        pytest.param("inference-latency", SMALL["inference-latency"][0], [[[1, 3, 8, 8]]], id="image"),
        pytest.param("inference-latency", SMALL["inference-latency"][1], [[[1]]], id="token"),
        pytest.param("text-generation", SMALL["text-generation"][0], [[[2, 5], [5]], [[1], [2, 1], [2, 1]]], id="text"),
    ],
)
def test_a_request_copies_neither_weights_nor_cache_to_a_graph(
    workload: str, parameters: tuple[tuple[str, Any], ...], copied: list[list[list[int]]]
) -> None:
    """Only what a request brings moves: an image, a place, tokens. Nothing is compiled again for another block."""
    code = COPIED.replace("WORKLOAD", repr(workload)).replace("PARAMETERS", repr(dict(parameters)))
    assert inside("pytorch", code) == copied

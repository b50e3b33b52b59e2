"""Counting what Inductor's graphs compute leaves them as they are, also where their sizes are symbols."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

LENGTHS = """
import json
from observe.observing import Asked, observe

print(json.dumps(observe(Asked("variable-length", "pytorch/compile", (("shortening", 8), ("asks", "compilations"))))))
"""
SIZES = """
import json
import torch
from accelbench_runner.frameworks.torch_graphs import GraphCounter

counted = GraphCounter()
torch._inductor.config.post_grad_custom_post_pass = counted
torch._dynamo.config.capture_dynamic_output_shape_ops = True


@torch.compile(dynamic={dynamic}, fullgraph=True)
def step(x):
    return {body}


for size in (1000, 300):
    x = torch.linspace(-1.0, 1.0, size)
    step(x)
print(json.dumps({{"operations": counted.operations, "graphs": counted.graphs}}))
"""


def observations_of(program: str, cache: Path) -> Any:
    """What a process of its own prints last, as JSON; a graph that is in Inductor's cache is not looked at."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, "TORCHINDUCTOR_CACHE_DIR": str(cache)},
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_the_second_length_is_compiled_for_any(tmp_path: Path) -> None:
    assert observations_of(LENGTHS, tmp_path)["compilationsByCall"] == "1, 1, 0, 0, 0, 0, 0, 0"


@pytest.mark.parametrize(
    ("body", "dynamic", "expected"),
    [
        ("x * 2 + 1", True, {"operations": 2000, "graphs": 1}),
        pytest.param("x * 2 + 1", False, {"operations": 2600, "graphs": 2}, marks=pytest.mark.nightly),
        pytest.param(
            *("x[x > 0] * 2", True, {"operations": pytest.approx(float("nan"), nan_ok=True), "graphs": 1}),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_operations_are_those_of_the_sizes_that_a_graph_is_compiled_with(
    body: str, dynamic: bool, expected: dict[str, Any], tmp_path: Path
) -> None:
    assert observations_of(SIZES.format(body=body, dynamic=dynamic), tmp_path) == expected

"""Batches of several shapes: arrays() returns a list, and every batch is a call of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Cost, Program, Workload

SCRIPT = '''"""Sum sequences of several lengths."""


def arrays(rng, longest: int = 3):
    return [{"x": rng.standard_normal(length), "k": length} for length in range(1, longest + 1)]


def numpy(x, k):
    return {"sum": x.sum() * k}


def reference(x, k):
    return {"sum": x.sum() * k}
'''
Load = Callable[[str], Workload]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Workload:
        path = tmp_path / str(len(list(tmp_path.iterdir()))) / "sums.py"
        path.parent.mkdir()
        path.write_text(text)
        with script.use(path):
            return catalogue.find("sums")

    return load


class Tools:
    """Count how many functions are run in a mode, and how often."""

    def __init__(self) -> None:
        self.functions = self.calls = 0

    def put(self, arrays: Any) -> Any:
        return arrays

    def in_mode(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        self.functions += 1

        def counted(batch: Any) -> Any:
            self.calls += 1
            return function(batch)

        return counted


def build(workload: Workload, tools: Tools) -> Program:
    arrays = inputs.generate(workload, workload.Parameters(), seed=1)
    program: Program = getattr(workload, "numpy")(workload.Parameters(), arrays, tools)  # noqa: B009 - its own method
    return program


def test_a_step_calls_one_function_with_each_batch_and_exports_every_result(load: Load) -> None:
    workload, tools = load(SCRIPT), Tools()
    program = build(workload, tools)
    _, out = program.step({}, program.batches[0])
    assert (tools.functions, tools.calls) == (1, 3)  # one function, which is compiled anew for other shapes only
    assert (program.placed, program.units, len(program.batches)) == (True, 3, 1)
    exported = program.export({}, out)
    arrays = inputs.generate(workload, workload.Parameters(), seed=1)
    assert exported == {f"{index}.sum": batch["x"].sum() * batch["k"] for index, batch in enumerate(arrays.batches)}
    assert workload.reference(workload.Parameters(), arrays, 7) == exported


def test_a_list_of_one_batch_is_that_batch(load: Load) -> None:
    program = build(load(SCRIPT.replace("longest: int = 3", "longest: int = 1")), Tools())
    assert (program.placed, program.units) == (False, 1)
    assert list(program.export({}, program.step({}, program.batches[0])[1])) == ["sum"]


def test_units_are_given_for_every_call_or_as_a_list(load: Load) -> None:
    assert build(load(SCRIPT + '\nmeasure = {"unit": "row", "units": 10}\n'), Tools()).units == 30
    listed = load(SCRIPT + '\nmeasure = {"unit": "token", "units": [1, 2, 3]}\ncost = {"flops": 60, "bytes": 6}\n')
    assert build(listed, Tools()).units == 6
    assert listed.cost(listed.Parameters(), 4) == Cost(flops=10, bytes=1)
    with pytest.raises(InvalidWorkloadError, match=r"lists the units of 2 calls, and arrays\(\) returns 3"):
        build(load(SCRIPT + '\nmeasure = {"units": [1, 2]}\n'), Tools())


@pytest.mark.parametrize(
    ("setup", "number"),
    [("def setup_numpy():\n    return {'scale': 2}", 1), ("def setup_numpy(x):\n    return {'scale': len(x)}", 3)],
)
def test_a_setup_without_arrays_is_made_once_for_all_batches(load: Load, setup: str, number: int) -> None:
    tools = Tools()
    build(load(f"{SCRIPT.replace('def numpy(x, k)', 'def numpy(x, k, scale)')}\n\n{setup}\n"), tools)
    assert tools.functions == number


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[1, 2]", "arrays() returned a int; it has to return a dictionary of arrays"),
        ("[]", "arrays() returned a list; it has to return a dictionary of arrays"),
        ('[{"x": 1, "k": 1}, {"x": 1}]', "arrays() returned batches of different arrays: x, k; x"),
    ],
)
def test_invalid_batches_are_refused(load: Load, returned: str, message: str) -> None:
    text = SCRIPT.replace(
        '[{"x": rng.standard_normal(length), "k": length} for length in range(1, longest + 1)]', returned
    )
    with pytest.raises(InvalidWorkloadError) as refused:
        build(load(text), Tools())
    assert message in str(refused.value)

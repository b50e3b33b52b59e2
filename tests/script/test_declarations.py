"""Declarations of a script: how a call is measured, its cost, and its required operations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.notebook import script_text
from accelbench.workload import Cost, Measure, Operations, Workload

FUNCTIONS = '''"""Multiply."""

def arrays(rng, batch: int = 8, length: int = 4):
    return {"x": rng.standard_normal((batch, length))}

def numpy(x):
    return x @ x.T

'''
Load = Callable[[str], Workload]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Workload:
        path = tmp_path / str(len(list(tmp_path.iterdir()))) / "product.py"
        path.parent.mkdir()
        path.write_text(text)
        with script.use(path):
            return catalogue.find("product")

    return load


class Tools:
    def put(self, arrays: Any) -> Any:
        return arrays


@pytest.mark.parametrize(
    "measure",
    [
        'measure = {"protocol": "latency", "unit": "token", "units": 32, "cold": True}',
        'measure = lambda length: {"protocol": "latency", "unit": "token", "units": 8 * length, "cold": True}',
    ],
)
def test_a_script_says_how_a_call_is_measured(load: Load, measure: str) -> None:
    workload = load(FUNCTIONS + measure)
    parameters = workload.Parameters()
    declared = workload.measure(parameters)
    assert (declared.protocol, declared.unit, declared.cold, declared.differentiates) == (
        "latency",
        "token",
        True,
        False,
    )
    arrays = inputs.generate(workload, parameters, seed=1)
    program = getattr(workload, "numpy")(parameters, arrays, Tools())  # noqa: B009 - a method of its own
    assert program.units == 32


def test_a_measure_of_a_class_is_one_of_functions_too(load: Load) -> None:
    text = f"from accelbench.workload import Measure\n\n{FUNCTIONS}measure = Measure(non_finite='masked')"
    workload = load(text)
    assert workload.measure(workload.Parameters()).non_finite == "masked"


def test_without_a_measure_a_unit_is_a_call(load: Load) -> None:
    assert load(FUNCTIONS).measure(load(FUNCTIONS).Parameters()).unit == "call"


def test_a_script_says_what_a_call_costs_and_must_compute(load: Load) -> None:
    workload = load(
        FUNCTIONS
        + "def cost(batch, length, float_bytes):\n"
        + '    return {"flops": 2 * batch**2 * length, "bytes": batch * length * float_bytes}\n\n'
        + 'operations = {"products": 1}\n'
    )
    parameters = workload.Parameters.model_validate({"batch": 16})
    assert workload.cost(parameters, 4) == Cost(flops=2048, bytes=256)
    assert workload.operations(parameters) == Operations(products=1)


def test_a_cost_of_a_call_is_divided_by_its_units(load: Load) -> None:
    workload = load(FUNCTIONS + 'cost = {"flops": 100, "bytes": 50}\nmeasure = {"unit": "row", "units": 10}')
    assert workload.cost(workload.Parameters(), 4) == Cost(flops=10, bytes=5)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('measure = {"protocl": "latency"}', 'product.py: measure: unknown key "protocl"; did you mean protocol?'),
        ('measure = {"protocol": "episode"}', "\"protocol\": 'episode': input should be 'steady' or 'latency'"),
        ('measure = {"units": 0}', '"units": 0: input should be greater than 0'),
        ('measure = "latency"', 'measure is a str; it has to be a dictionary, such as {"protocol": "latency"}'),
        ('mesure = {"cold": True}', "mesure: did you mean measure?"),
        ("def cost(x):\n    return x", "cost() takes x, and cost() gets parameters of arrays() only"),
        ("def cost():\n    return 1 / 0", "line 9: cost(): ZeroDivisionError: division by zero"),
        ('cost = {"flops": -1, "bytes": 1}', "cost gives flops as -1.0; it has to be between 0 and 1e+30"),
        ('cost = {"flops": 1}', 'cost: "bytes" is missing, such as {"flops": 2e9, "bytes": 1e6}'),
        ("operations = 3", 'operations is a int; it has to be a dictionary, such as {"products": 2}'),
        ("def operations():\n    return None", "operations() is None; it has to be a dictionary"),
        (
            'operations = {"products": 1}\nmeasure = {"units": 2}',
            "operations are those of a call, which has to be one unit",
        ),
    ],
)
def test_wrong_declarations_are_refused_when_the_script_is_loaded(load: Load, declared: str, message: str) -> None:
    with pytest.raises(catalogue.UnknownWorkloadError) as refused:
        load(FUNCTIONS + declared)
    assert message in str(refused.value)


def test_a_helper_may_have_the_name_of_a_declaration(load: Load) -> None:
    helper = "def cost(one, other):\n    return one @ other.T\n"
    workload = load(FUNCTIONS.replace("x @ x.T", "cost(x, x)") + helper)
    assert workload.cost(workload.Parameters(), 4) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"measure": {"protocol": "latency"}}, "latency"),
        ({"measure": Measure(protocol="latency")}, "latency"),
        ({"measure": lambda rows: {"protocol": "latency" if rows > 1 else "steady"}}, "latency"),
        ({"cost": {"flops": np.float64(2), "bytes": 1}}, "steady"),
    ],
)
def test_a_notebook_makes_the_same_declarations(tmp_path: Path, given: dict[str, Any], expected: str) -> None:
    path = tmp_path / "sent.py"
    path.write_text(script_text({"numpy": np.negative}, lambda rng, rows=4: {"x": rng.random(rows)}, None, given))
    with script.use(path):
        workload = catalogue.find("sent")
    assert workload.measure(workload.Parameters()).protocol == expected


def test_a_run_may_ask_for_another_protocol_than_its_workload(load: Load) -> None:
    workload = load(FUNCTIONS + 'measure = {"unit": "row", "units": 8}')
    measure = catalogue.measure_of(workload, workload.Parameters(), "latency")
    assert (measure.protocol, measure.unit) == ("latency", "row")
    assert catalogue.measure_of(workload, workload.Parameters(), None).protocol == "steady"


def test_the_unit_of_arrivals_is_a_request(load: Load) -> None:
    workload = load(FUNCTIONS + 'measure = {"protocol": "latency", "unit": "row", "units": 8}')
    measure = catalogue.measure_of(workload, workload.Parameters(), "arrivals")
    assert (measure.protocol, measure.unit) == ("arrivals", "request")


def test_caches_cannot_be_emptied_while_requests_arrive(load: Load) -> None:
    workload = load(FUNCTIONS + 'measure = {"cold": True}')
    with pytest.raises(ValueError, match="requests would arrive while they are emptied"):
        catalogue.measure_of(workload, workload.Parameters(), "arrivals")


def test_a_workload_cannot_ask_for_arrivals_as_it_does_not_know_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = catalogue.find("matmul-chain")
    monkeypatch.setattr(workload, "measure", lambda _parameters: Measure(protocol="arrivals"))
    with pytest.raises(ValueError, match="ask for arrivals in the run's measurement"):
        catalogue.measure_of(workload, workload.Parameters(), None)

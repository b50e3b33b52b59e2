"""Declared shapes of inputs are those of drawn ones."""

import tracemalloc
from typing import Any

import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench.workload import Arrays

SAYS = [name for name in catalogue.names() if catalogue.find(name).has_shapes()]
MORE: dict[str, dict[str, Any]] = {"transformer-lm": {"embedding": "tied"}}


def declared(name: str, parameters: dict[str, Any]) -> Arrays:
    workload = catalogue.find(name)
    shapes = workload.shapes(catalogue.parse_parameters(workload, parameters))
    assert shapes is not None
    return shapes


@pytest.mark.parametrize("name", SAYS)
@pytest.mark.parametrize("which", ["defaults", "more"])
def test_abstract_inputs_have_the_names_shapes_and_types_of_drawn_ones(name: str, which: str) -> None:
    workload, parameters = catalogue.find(name), MORE.get(name, {}) if which == "more" else {}
    drawn = inputs.generate(workload, catalogue.parse_parameters(workload, parameters), seed=0)
    assert inputs.layout(declared(name, parameters)) == inputs.layout(drawn)


def test_seven_billion_weights_take_no_memory() -> None:
    tracemalloc.start()
    try:
        shapes = declared("transformer-lm", {"layers": 32, "width": 4096, "heads": 32, "vocabulary": 32_000})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert inputs.working_set(shapes, 4) > 2**34
    assert peak < 2**20

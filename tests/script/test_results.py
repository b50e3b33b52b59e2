"""Results of functions: nested dictionaries, tuples, named tuples and dataclasses, named by their paths."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from accelbench.catalogue.results import name_results, without_dataclasses

ONE, TWO, THREE = np.zeros(1), np.zeros(2), np.zeros(3)


class Step(NamedTuple):
    """Hold what a training step returns."""

    loss: Any
    weights: Any


@dataclass
class Layer:
    """Hold the weights of a layer."""

    kernel: Any
    bias: Any = None


@dataclass(frozen=True)
class State:
    """Hold weights beside settings that are no arrays."""

    weights: Any
    apply: Any = abs
    name: str = "state"
    rate: float = field(default=0.5, metadata={"static": True})
    tx: Any = field(default=0, metadata={"pytree_node": False})


def f() -> None:
    """Stand for the function of a user."""


def shapes(result: Any) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in name_results(f, result).items()}


@pytest.mark.parametrize(
    ("result", "named"),
    [
        (ONE, {"y": (1,)}),
        ((ONE, TWO), {"y0": (1,), "y1": (2,)}),
        ({"a": ONE, "b": {"c": TWO, "d": [THREE, ONE]}}, {"a": (1,), "b.c": (2,), "b.d.0": (3,), "b.d.1": (1,)}),
        ((ONE, {"w": TWO}), {"y0": (1,), "y1.w": (2,)}),
        (Step(ONE, {"dense": TWO}), {"loss": (1,), "weights.dense": (2,)}),
        ({"loss": ONE, "aux": None}, {"loss": (1,)}),
        ((2.5, ONE, True), {"y0": (), "y1": (1,), "y2": ()}),
        (State([ONE, TWO]), {"weights.0": (1,), "weights.1": (2,)}),
        ({1: ONE}, {"1": (1,)}),
    ],
)
def test_every_array_of_a_result_has_its_path(result: Any, named: dict[str, tuple[int, ...]]) -> None:
    assert shapes(result) == named
    assert shapes(without_dataclasses(result)) == named


def test_a_key_and_a_field_give_the_same_name() -> None:
    expected = {"dense.kernel": (1,), "dense.bias": (2,)}
    assert shapes({"dense": Layer(ONE, TWO)}) == expected
    assert shapes({"dense": {"kernel": ONE, "bias": TWO}}) == expected
    assert shapes({"dense.kernel": ONE, "dense.bias": TWO}) == expected


def test_parts_of_a_frameworks_own_result_are_named_by_their_positions() -> None:
    decomposition = np.linalg.eigh(np.eye(2))
    assert shapes(decomposition) == {"y0": (2,), "y1": (2, 2)}
    assert shapes({"e": decomposition}) == {"e.0": (2,), "e.1": (2, 2)}


def test_values_without_dataclasses_stay_the_same_objects() -> None:
    result = without_dataclasses({"a": (ONE, Step(TWO, None)), "b": Layer(THREE)})
    assert result["a"][0] is ONE
    assert result["a"][1] == Step(TWO, None)
    assert result["b"] == {"kernel": THREE, "bias": None}

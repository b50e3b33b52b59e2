"""Find and replace what functions capture."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from accelbench_runner.frameworks.captured import captured_arrays, find_places


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Model:
    """A pytree as libraries for JAX define it."""

    weights: Any = field(default_factory=lambda: np.ones(3))

    def __call__(self, x: Any) -> Any:
        return x * self.weights

    def half(self, x: Any) -> Any:
        return x * self.weights / 2


WEIGHTS = np.ones(2)


def helper(x: Any) -> Any:
    return x * WEIGHTS


def by_closure() -> Callable[[Any], Any]:
    weights = np.ones(2)
    return lambda x: x * weights


def in_an_inner_function(x: Any) -> Any:
    return sum(y * WEIGHTS for y in x)


def by_default(x: Any, first: Any = WEIGHTS, *, last: Any = WEIGHTS) -> Any:
    return x * first * last


def nested() -> Callable[[Any], Any]:
    parameters = {"layers": [Pair(np.ones(4), {"bias": np.ones(5)})], "space": SimpleNamespace(scale=np.ones(6))}
    return lambda x: x + parameters


def of_an_object() -> Callable[[Any], Any]:
    model = Model()
    return lambda x: 2 * model(x)


def many_numbers() -> Callable[[Any], Any]:
    numbers = [np.ones(2)] * 1001
    return lambda x: x + numbers


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (by_closure(), ["weights (2,)"]),
        (in_an_inner_function, ["WEIGHTS (2,)"]),
        (lambda x: 2 * helper(x), ["WEIGHTS (2,)"]),
        (by_default, ["default 0 (2,)"]),  # one array in two places
        (functools.partial(helper, x=np.ones(7)), ["WEIGHTS (2,)", "argument x (7,)"]),
        (functools.partial(Model(), np.ones(7)), ["argument 0 (7,)", "function.weights (3,)"]),
        (
            nested(),
            [
                "parameters['layers'][0][0] (4,)",
                "parameters['layers'][0][1]['bias'] (5,)",
                "parameters['space'].scale (6,)",
            ],
        ),
        (of_an_object(), ["model.weights (3,)"]),
        (Model(), ["self.weights (3,)"]),
        (Model().half, ["self.__self__.weights (3,)"]),
        (many_numbers(), []),
        (lambda x: np.polynomial.chebyshev.chebval(x, x), []),
    ],
)
def test_captured_arrays_of_a_function_are_listed(function: Callable[..., Any], names: list[str]) -> None:
    assert captured_arrays(function) == [f"{name} float64" for name in names]


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


@pytest.mark.parametrize(
    "make",
    [
        by_closure,
        nested,
        of_an_object,
        lambda: functools.partial(lambda x, w, k: x * w * k, w=np.ones(3), k=np.ones(2)),
        lambda: functools.partial(Model(), np.ones(3)),
        lambda: functools.partial(lambda w, k, x: x * w * k, np.ones(3), np.ones(2)),
    ],
)
def test_the_function_uses_the_replaced_arrays(make: Callable[[], Callable[..., Any]]) -> None:
    function = make()
    places = list(find_places(function, is_array))
    assert places
    for place in places:
        place.replace(place.value.astype(np.float32))
    assert {str(place.value.dtype) for place in find_places(function, is_array)} == {"float32"}


def test_a_method_of_another_object_is_called_where_the_object_is_replaced() -> None:
    half = Model().half

    def function(x: Any) -> Any:
        return half(x)

    [place] = find_places(function, lambda value: isinstance(value, Model))
    place.replace(Model(np.full(3, 4.0)))
    np.testing.assert_array_equal(function(np.ones(3)), [2, 2, 2])


def test_a_callable_object_is_replaced_in_the_step_that_wraps_it() -> None:
    model = Model()
    call = functools.partial(lambda function: lambda x: 2 * function(x))(model)

    def step(x: Any) -> Any:
        return call(x)

    vars(step).update(__wrapped__=model)
    [place] = find_places(step, lambda value: isinstance(value, Model))
    place.replace(Model(np.full(3, 4.0)))
    np.testing.assert_array_equal(step(np.ones(3)), [8, 8, 8])


def test_defaults_are_replaced() -> None:
    def function(x: Any, first: Any = np.ones(2), *, last: Any = np.ones(3)) -> Any:  # noqa: B008 - the array is meant
        return x, first, last

    for place in find_places(function, is_array):
        place.replace(2 * place.value)
    _, first, last = function(0)
    assert [*first, *last] == [2, 2, 2, 2, 2]


def test_a_description_of_an_array_is_not_taken_for_an_array() -> None:
    """As JAX's abstract values do, which have no numbers."""
    description = SimpleNamespace(shape=(2, 3), dtype=np.dtype(np.float32))
    assert captured_arrays(lambda x: x.reshape(description.shape)) == []

"""The references of derivatives in NumPy obey mathematical laws; parity extends them to every variant."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench.workload import Array, Arrays, NamedArrays
from accelbench.workloads import _composed as composed
from accelbench.workloads.adversarial_gradient import gradients_by_hand

STEP = 1e-5
"""Of central differences: their error is about its square, 1e-10."""
WITHIN = 1e-7


def drawn(name: str, **parameters: Any) -> tuple[Any, Any, Arrays]:
    workload = catalogue.find(name)
    parsed = catalogue.parse_parameters(workload, parameters)
    return workload, parsed, inputs.generate(workload, parsed, seed=1)


def differences(function: Callable[[Array], Any], x: Array) -> Array:
    """Return the derivative of a function of an array by central differences; the last axes are those of x."""
    found = []
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = STEP
        found.append((function(x + step) - function(x - step)) / (2 * STEP))
    return np.moveaxis(np.array(found), 0, -1).reshape(*np.shape(found[0]), *x.shape)


def outputs(state: NamedArrays, inputs: Array) -> Array:
    """Return a network's outputs: tanh after every layer but the last."""
    x = inputs
    layers = len(state) // 2
    for index in range(layers):
        x = x @ state[f"weights{index}"] + state[f"biases{index}"]
        x = np.tanh(x) if index < layers - 1 else x
    return x


@pytest.mark.parametrize("name", ["weights0", "biases1", "weights2"])
def test_the_gradients_of_the_examples_add_up_to_that_of_the_whole_batch(name: str) -> None:
    workload, parameters, arrays = drawn("per-example-gradients", inputs=3, width=4, batch=5)
    batch = arrays.batches[0]

    def loss(weights: Array) -> float:
        return float(((outputs({**arrays.state, name: weights}, batch["inputs"]) - batch["targets"]) ** 2).sum())

    gradients = workload.reference(parameters, arrays, units=1)[name]
    assert len(gradients) == 5
    assert gradients.sum(0) == pytest.approx(differences(loss, arrays.state[name]), abs=WITHIN)


def test_one_example_has_the_gradient_that_it_has_among_others() -> None:
    workload, parameters, arrays = drawn("per-example-gradients", inputs=3, width=4, batch=5)
    alone = Arrays(arrays.state, [{name: array[2:3] for name, array in arrays.batches[0].items()}])
    among_others = workload.reference(parameters, arrays, units=1)
    for name, gradient in workload.reference(parameters, alone, units=1).items():
        assert gradient[0] == pytest.approx(among_others[name][2], abs=1e-14)


def test_a_hessian_is_symmetric_and_the_derivative_of_the_gradient() -> None:
    workload, parameters, arrays = drawn("hessian", size=5)
    a, v = arrays.batches[0]["a"], arrays.batches[0]["v"]
    hessian = workload.reference(parameters, arrays, units=1)["derivative"]
    assert hessian == pytest.approx(hessian.T, abs=1e-15)
    gradient = differences(lambda x: np.log(np.cosh(a @ x)).sum(), arrays.state["x"])
    assert gradient == pytest.approx(a.T @ np.tanh(a @ arrays.state["x"]), abs=WITHIN)
    assert hessian == pytest.approx(differences(lambda x: a.T @ np.tanh(a @ x), arrays.state["x"]), abs=WITHIN)
    _, of_product, _ = drawn("hessian", size=5, of="product")
    assert workload.reference(of_product, arrays, units=1)["derivative"] == pytest.approx(hessian @ v, abs=1e-14)


def test_the_hessian_of_a_quadratic_is_its_matrix() -> None:
    """Near zero log cosh is x^2 / 2, so that the function is |A x|^2 / 2, and its Hessian is A'A."""
    workload, parameters, arrays = drawn("hessian", size=5)
    a = arrays.batches[0]["a"]
    at_zero = Arrays({"x": np.zeros(5)}, arrays.batches)
    assert workload.reference(parameters, at_zero, units=1)["derivative"] == pytest.approx(a.T @ a, abs=1e-15)


@pytest.mark.parametrize("name", ["weights0", "biases1"])
def test_the_gradient_is_that_of_the_loss(name: str) -> None:
    workload, parameters, arrays = drawn("joint-gradient", layers=2, width=3, batch=4)

    def loss(weights: Array) -> Array:
        changed = Arrays({**arrays.state, name: weights}, arrays.batches)
        return np.asarray(workload.reference(parameters, changed, units=1)["loss"])

    gradient = workload.reference(parameters, arrays, units=1)[name]
    assert gradient == pytest.approx(differences(loss, arrays.state[name]), abs=WITHIN)


def test_a_batch_by_vmap_is_what_the_function_gives_row_by_row() -> None:
    workload, parameters, arrays = drawn("vmap", rows=3)
    x, v = arrays.batches[0]["x"], arrays.batches[0]["v"]
    rows = [[x[row, 0] + 0.01 * v[row, 0], x[row, 1] + 0.01 * v[row, 1]] for row in range(3)]
    assert workload.reference(parameters, arrays, units=5)["result"] == pytest.approx(np.array(rows), abs=1e-15)


def solved(problem: str) -> tuple[Array, Array, NamedArrays]:
    """Return a problem's closed form, its weights and its data."""
    workload, parameters, arrays = drawn("composed-gradients", problem=problem, examples=5, width=3)
    result = workload.reference(parameters, arrays, units=1)["result"]
    return result, arrays.state["weights"], arrays.batches[0]


def squared_error(w: Array, x: Array, y: Array) -> float:
    return float(np.mean((x @ w - y) ** 2))


def test_meta_learning_differentiates_through_the_step() -> None:
    result, weights, data = solved("meta-learning")

    def loss_after_a_step(w: Array) -> float:
        losses = []
        for task in range(composed.TASKS):
            x, y, x_test, y_test = (data[name][task] for name in ("x_adapt", "y_adapt", "x_test", "y_test"))
            gradient = 2 / len(y) * x.T @ (x @ w - y)
            losses.append(squared_error(w - composed.RATE * gradient, x_test, y_test))
        return float(np.mean(losses))

    assert result == pytest.approx(differences(loss_after_a_step, weights), abs=WITHIN)


def test_fisher_information_is_the_curvature_of_the_negative_log_likelihood() -> None:
    """Of a logistic regression it does not depend on the labels."""
    result, weights, data = solved("fisher")
    x = data["x"]

    def gradient_for_label_zero(w: Array) -> Array:
        return x.T @ (1 / (1 + np.exp(-x @ w))) / len(x)

    assert result == pytest.approx(differences(gradient_for_label_zero, weights), abs=WITHIN)


def test_the_variational_gradient_is_that_of_the_bound_with_the_same_noise() -> None:
    result, weights, data = solved("variational")
    y = data["y"]

    def bound(weights: Array) -> float:
        z = weights[0] + np.exp(weights[1]) * data["noise"]
        log_joint = [-((y - each) ** 2).sum() / 2 - (each**2).sum() / 2 for each in z]
        return float((np.mean(log_joint) + weights[1].sum()) / len(y))

    assert result == pytest.approx(differences(bound, weights), abs=WITHIN)


def test_a_straight_through_gradient_is_the_gradient_at_the_rounded_weights() -> None:
    result, weights, data = solved("straight-through")
    rounded = np.round(composed.LEVELS * weights) / composed.LEVELS
    at_rounded = differences(lambda w: squared_error(w, data["x"], data["y"]), rounded)
    assert result == pytest.approx(at_rounded, abs=WITHIN)
    at_weights = differences(lambda w: squared_error(w, data["x"], data["y"]), weights)
    assert np.abs(result - at_weights).max() > 100 * WITHIN, "rounding changes the gradient"


def test_each_example_has_its_own_jacobian() -> None:
    result, weights, data = solved("batched-jacobian")
    for x, jacobian in zip(data["x"], result, strict=True):
        assert jacobian == pytest.approx(differences(lambda x: np.tanh(weights @ x), x), abs=WITHIN)


def test_an_adversarial_gradient_is_the_derivative_by_the_data() -> None:
    rng = np.random.default_rng(1)
    w, x, y = rng.standard_normal((3, 1)), rng.standard_normal((4, 3)), rng.integers(-1, 2, (4, 1))
    by_hand = gradients_by_hand(w, x, y)
    assert by_hand["data"] == pytest.approx(differences(lambda x: np.mean((np.tanh(x @ w) - y) ** 2), x), abs=WITHIN)
    assert by_hand["weights"] == pytest.approx(differences(lambda w: np.mean((np.tanh(x @ w) - y) ** 2), w), abs=WITHIN)

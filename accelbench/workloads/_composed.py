"""Define problems whose solution composes gradients with batching or with gradients; each has a closed form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.workload import Array, NamedArrays

if TYPE_CHECKING:
    from numpy.random import Generator

Data = Mapping[str, Any]
Solution = Callable[[Any, Data], Any]
"""Function (weights, data by name) -> result, on arrays of one framework."""

TASKS = 4
"""Tasks of meta-learning; each has data of its own."""
RATE = 0.1
"""Learning rate of the gradient descent within a task."""
SAMPLES = 16
"""Number of samples that estimate a variational objective."""
LEVELS = 8
"""Rounded weights are multiples of 1 / LEVELS."""


@dataclass(frozen=True)
class Functions:
    """Hold a framework's functions that solutions are composed of, by the names that JAX and PyTorch share."""

    grad: Callable[..., Any]
    vmap: Callable[..., Any]
    jacrev: Callable[..., Any]
    stop_gradient: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    round: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    softplus: Callable[[Any], Any]
    tanh: Callable[[Any], Any]


class Problem(Protocol):
    """Draw a problem's weights and data, and solve it in four ways."""

    def draw(self, rng: "Generator", examples: int, width: int) -> tuple[Array, NamedArrays]:
        """Draw the weights, with respect to which gradients are computed, and the data."""
        ...

    def closed_form(self, weights: Array, data: NamedArrays) -> Array:
        """Return the solution in NumPy, differentiated by hand."""
        ...

    def cost(self, examples: int, width: int) -> tuple[float, float]:
        """Count the closed form's operations, except on vectors of (width,), and the numbers read and written."""
        ...

    def compose(self, f: Functions) -> Solution:
        """Return the solution as a composition of a framework's functions."""
        ...

    def by_autograd(self, weights: Any, data: Data) -> Any:
        """Return the solution by torch.autograd, without torch.func; the weights require gradients."""
        ...


class MetaLearning:
    """Differentiate the loss on new data after a step of gradient descent, averaged over tasks: MAML (Finn 2017)."""

    def draw(self, rng: "Generator", examples: int, width: int) -> tuple[Array, NamedArrays]:
        """Draw weights (width,), and x (examples, width) and y (examples,) for each task, to adapt to and to test."""
        x_adapt, x_test = rng.standard_normal((2, TASKS, examples, width))
        y_adapt, y_test = rng.standard_normal((2, TASKS, examples))
        weights = rng.standard_normal(width) / width**0.5
        return weights, {"x_adapt": x_adapt, "y_adapt": y_adapt, "x_test": x_test, "y_test": y_test}

    def closed_form(self, weights: Array, data: NamedArrays) -> Array:
        """Return the mean over tasks of (I - RATE H) g: H is the Hessian before the step, g the gradient after it."""
        import numpy as np

        def gradient(w: Array, x: Array, y: Array) -> Array:
            """Return the gradient of the mean squared error of x @ w."""
            error: Array = x @ w - y
            return 2 / len(y) * x.T @ error

        found = []
        for x_adapt, y_adapt, x_test, y_test in zip(*_of_tasks(data), strict=True):
            hessian = 2 / len(y_adapt) * x_adapt.T @ x_adapt
            adapted = weights - RATE * gradient(weights, x_adapt, y_adapt)
            found.append((np.eye(len(weights)) - RATE * hessian) @ gradient(adapted, x_test, y_test))
        result: Array = np.stack(found).mean(0)
        return result

    def cost(self, examples: int, width: int) -> tuple[float, float]:
        """Count two gradients and a product with the Hessian for each task; each is two products of x and a vector."""
        return 12.0 * TASKS * examples * width, 2.0 * TASKS * examples * (width + 1) + 2 * width

    def compose(self, f: Functions) -> Solution:
        """Use vmap(grad(loss after a step along grad(loss)))."""

        def loss_after_a_step(w: Any, x_adapt: Any, y_adapt: Any, x_test: Any, y_test: Any) -> Any:
            """Return the loss on the test data, after a step of gradient descent on the other data."""
            adapted = w - RATE * f.grad(_squared_error)(w, x_adapt, y_adapt)
            return _squared_error(adapted, x_test, y_test)

        gradients = f.vmap(f.grad(loss_after_a_step), (None, 0, 0, 0, 0))
        return lambda weights, data: gradients(weights, *_of_tasks(data)).mean(0)

    def by_autograd(self, weights: Any, data: Data) -> Any:
        """Loop over tasks; because of create_graph=True, the second backward pass differentiates the first gradient."""
        import torch

        found = []
        for x_adapt, y_adapt, x_test, y_test in zip(*_of_tasks(data), strict=True):
            loss = _squared_error(weights, x_adapt, y_adapt)
            (gradient,) = torch.autograd.grad(loss, weights, create_graph=True)
            loss_after_a_step = _squared_error(weights - RATE * gradient, x_test, y_test)
            found.append(torch.autograd.grad(loss_after_a_step, weights)[0])
        return torch.stack(found).mean(0)


class Fisher:
    """Compute the Fisher information of a logistic regression: the mean of g g' for gradients g of the log-likelihood.

    The mean is over all x of the data and over both labels, weighted by the probabilities that the model predicts.
    """

    def draw(self, rng: "Generator", examples: int, width: int) -> tuple[Array, NamedArrays]:
        """Draw weights (width,) and x (examples, width)."""
        return rng.standard_normal(width) / width**0.5, {"x": rng.standard_normal((examples, width))}

    def closed_form(self, weights: Array, data: NamedArrays) -> Array:
        """Return X' diag(p (1 - p)) X / n, where p has the n predicted probabilities."""
        import numpy as np

        x = data["x"]
        p = 1 / (1 + np.exp(-x @ weights))
        information: Array = x.T @ ((p * (1 - p))[:, None] * x) / len(x)
        return information

    def cost(self, examples: int, width: int) -> tuple[float, float]:
        """Count the product of x with the weights, the scaling of x, and the product of x' with the scaled x."""
        return examples * width * (3.0 + 2.0 * width), examples * width + width + width**2

    def compose(self, f: Functions) -> Solution:
        """Use vmap(grad(log-likelihood)) for each label."""

        def log_likelihood(w: Any, x: Any, label: float) -> Any:
            """Return the log-likelihood of the label, 0 or 1, for one x (width,)."""
            return label * (x @ w) - f.softplus(x @ w)

        gradients = f.vmap(f.grad(log_likelihood), (None, 0, None))

        def fisher(weights: Any, data: Data) -> Any:
            """Return the mean of g g' over all examples and both labels."""
            x = data["x"]
            p = f.sigmoid(x @ weights)
            # Gradients of all examples for the label 1, and for the label 0.
            of_one, of_zero = gradients(weights, x, 1.0), gradients(weights, x, 0.0)
            return (of_one.T @ (p[:, None] * of_one) + of_zero.T @ ((1 - p)[:, None] * of_zero)) / len(x)

        return fisher

    def by_autograd(self, weights: Any, data: Data) -> Any:
        """Differentiate example by example, and label by label."""
        import torch

        sum_of_products = 0
        for x in data["x"]:
            p = torch.sigmoid(x @ weights).detach()
            for label, probability in ((1.0, p), (0.0, 1 - p)):
                logit = x @ weights
                log_likelihood = label * logit - torch.nn.functional.softplus(logit)
                (gradient,) = torch.autograd.grad(log_likelihood, weights)
                sum_of_products = sum_of_products + probability * torch.outer(gradient, gradient)
        return sum_of_products / len(data["x"])


class Variational:
    """Differentiate an evidence lower bound by reparameterisation: y ~ N(z, 1), prior z ~ N(0, 1), q(z) = N(mean, s^2).

    The bound is divided by the number of observations. The noise is data, so that all variants use the same.
    """

    def draw(self, rng: "Generator", examples: int, width: int) -> tuple[Array, NamedArrays]:
        """Draw mean and log s (2, width), y (examples, width) and standard normal noise (SAMPLES, width)."""
        weights = 0.5 * rng.standard_normal((2, width))
        y = 1 + rng.standard_normal((examples, width))
        return weights, {"y": y, "noise": rng.standard_normal((SAMPLES, width))}

    def closed_form(self, weights: Array, data: NamedArrays) -> Array:
        """Return the gradients with respect to mean and log s, by the chain rule through z = mean + s * noise."""
        import numpy as np

        y, noise = data["y"], data["noise"]
        mean, s = weights[0], np.exp(weights[1])
        by_z = y.sum(0) - (len(y) + 1) * (mean + s * noise)  # gradient of log p(y, z), (SAMPLES, width)
        # The 1 is the gradient of the entropy of q.
        return np.stack([by_z.mean(0), (by_z * s * noise).mean(0) + 1]) / len(y)

    def cost(self, examples: int, width: int) -> tuple[float, float]:
        """Count operations, and numbers read and written.

        Operations: the sum of y, and eight for each number of the noise. Numbers: y, the noise, the two weights and
        their gradients.
        """
        return width * (examples + 8.0 * SAMPLES), width * (examples + SAMPLES + 4)

    def compose(self, f: Functions) -> Solution:
        """Use grad(mean of vmap(bound for one sample))."""

        def bound_of_sample(weights: Any, noise: Any, y: Any) -> Any:
            """Return the evidence lower bound for one sample of the noise (width,)."""
            return _evidence_lower_bound(weights, f.exp(weights[1]) * noise, y)

        def bound(weights: Any, noise: Any, y: Any) -> Any:
            """Return the mean of the bounds for all samples of the noise."""
            return f.vmap(bound_of_sample, (None, 0, None))(weights, noise, y).mean()

        return lambda weights, data: f.grad(bound)(weights, data["noise"], data["y"])

    def by_autograd(self, weights: Any, data: Data) -> Any:
        """Use one backward pass for the mean over all samples, which are the first axis of z."""
        import torch

        y, log_s = data["y"], weights[1]
        z = weights[0] + torch.exp(log_s) * data["noise"]  # (SAMPLES, width)
        squares = ((y - z[:, None]) ** 2).sum((1, 2)) + (z**2).sum(1)
        return torch.autograd.grad((log_s.sum() - squares.mean() / 2) / len(y), weights)[0]


class StraightThrough:
    """Differentiate the mean squared error of rounded weights as if rounding were the identity (Bengio 2013)."""

    def draw(self, rng: "Generator", examples: int, width: int) -> tuple[Array, NamedArrays]:
        """Draw weights (width,), x (examples, width) and y (examples,)."""
        data = {"x": rng.standard_normal((examples, width)), "y": rng.standard_normal(examples)}
        return rng.standard_normal(width), data

    def closed_form(self, weights: Array, data: NamedArrays) -> Array:
        """Return the gradient of the mean squared error at the rounded weights."""
        x, y = data["x"], data["y"]
        rounded: Array = (LEVELS * weights).round() / LEVELS
        gradient: Array = 2 / len(y) * x.T @ (x @ rounded - y)
        return gradient

    def cost(self, examples: int, width: int) -> tuple[float, float]:
        """Count two products of x with a vector, and the error."""
        return 4.0 * examples * width + examples, examples * (width + 1.0) + 2 * width

    def compose(self, f: Functions) -> Solution:
        """Add the rounding error to the weights under stop_gradient, so that it has no gradient."""

        def loss(w: Any, x: Any, y: Any) -> Any:
            """Return the mean squared error of the rounded weights; its gradient ignores the rounding."""
            rounded = w + f.stop_gradient(f.round(LEVELS * w) / LEVELS - w)
            return _squared_error(rounded, x, y)

        return lambda weights, data: f.grad(loss)(weights, data["x"], data["y"])

    def by_autograd(self, weights: Any, data: Data) -> Any:
        """Use a torch.autograd.Function whose backward pass returns the gradient unchanged."""
        import torch

        loss = _squared_error(_torch_round().apply(weights), data["x"], data["y"])
        return torch.autograd.grad(loss, weights)[0]


class BatchedJacobian:
    """Compute the Jacobian of tanh(W x) with respect to x, for each x."""

    def draw(self, rng: "Generator", examples: int, width: int) -> tuple[Array, NamedArrays]:
        """Draw W (width, width) and x (examples, width)."""
        return rng.standard_normal((width, width)) / width**0.5, {"x": rng.standard_normal((examples, width))}

    def closed_form(self, weights: Array, data: NamedArrays) -> Array:
        """Return diag(1 - tanh^2(W x)) W for each x."""
        import numpy as np

        derivatives: Array = 1 - np.tanh(data["x"] @ weights.T) ** 2
        return derivatives[:, :, None] * weights

    def cost(self, examples: int, width: int) -> tuple[float, float]:
        """Count, for each example and row of W, a product (2 width), tanh's derivative (3) and the results (width)."""
        return examples * width * (3.0 * width + 3.0), width**2 + examples * width * (1.0 + width)

    def compose(self, f: Functions) -> Solution:
        """Use vmap(jacrev(function))."""

        def jacobian(weights: Any, x: Any) -> Any:
            """Return the Jacobian (width, width) for one x (width,)."""
            return f.jacrev(lambda x: f.tanh(weights @ x))(x)

        return lambda weights, data: f.vmap(jacobian, (None, 0))(weights, data["x"])

    def by_autograd(self, weights: Any, data: Data) -> Any:
        """Call torch.autograd.functional.jacobian for one x after another."""
        import torch
        from torch.autograd.functional import jacobian

        return torch.stack([jacobian(lambda x: torch.tanh(weights.detach() @ x), x) for x in data["x"]])


PROBLEMS: Mapping[str, Problem] = {
    "meta-learning": MetaLearning(),
    "fisher": Fisher(),
    "variational": Variational(),
    "straight-through": StraightThrough(),
    "batched-jacobian": BatchedJacobian(),
}


@cache
def _torch_round() -> Any:
    """Return the class of rounding with a gradient of 1, created once, as a step of PyTorch's should not create it."""
    import torch

    class Round(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(_context: Any, w: Any) -> Any:
            """Return the rounded weights."""
            return torch.round(LEVELS * w) / LEVELS

        @staticmethod
        def backward(_context: Any, gradient: Any) -> Any:
            """Return the gradient unchanged, as if nothing were rounded."""
            return gradient

    return Round


def _squared_error(w: Any, x: Any, y: Any) -> Any:
    """Return the mean squared error of x @ w, in any framework."""
    return ((x @ w - y) ** 2).mean()


def _of_tasks(data: Data) -> tuple[Any, Any, Any, Any]:
    """Return the arrays of meta-learning, whose first axis is the task: x and y to adapt, x and y to test."""
    return data["x_adapt"], data["y_adapt"], data["x_test"], data["y_test"]


def _evidence_lower_bound(weights: Any, deviation: Any, y: Any) -> Any:
    """Return the bound for one sample z = mean + deviation, up to a constant, divided by len(y), in any framework.

    The bound is log p(y | z) + log p(z) plus the entropy of q, which is log s.
    """
    z = weights[0] + deviation
    return (weights[1].sum() - ((y - z) ** 2).sum() / 2 - (z**2).sum() / 2) / len(y)

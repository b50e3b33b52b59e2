"""Train on real data, and observe the loss of each epoch and what was learned, in both frameworks."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Array,
    Arrays,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from numpy.random import Generator

CLASSES = 10
HELD_OUT = 0.2
DECAY1, DECAY2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's defaults, the same in optax and torch.optim."""
DATA = ("sklearn.datasets", "mnist1d.data")


class TrainingCurve(Workload):
    """Train linear, tanh, linear by Adam on the cross-entropy, in mini-batches; a call is an epoch.

    The data comes with installed packages, so nothing is downloaded: `digits` are the 1,797 images of 8 x 8 that
    scikit-learn has from the UCI repository, `mnist1d` 5,000 signals of 40 numbers made by mnist1d (Greydanus and Kobak
    2024). A fifth is held out. Both frameworks start from the same weights and see the same mini-batches in the same
    order; they are compared with the same training in NumPy and float64. Nothing is timed: the question is whether the
    faster program also learns, and learns the same.
    """

    name = "training-curve"
    modes = {}
    libraries = {"jax": ("optax", *DATA), "pytorch": DATA}
    observes = {
        "losses": "Mean loss of each epoch's mini-batches, to three digits.",
        "testAccuracy": "Share of the held-out examples classified correctly after the last epoch.",
        "largestRelativeDifference": "Largest relative difference of a loss from the same training in float64.",
    }

    class Parameters(WorkloadParameters):
        """Choose the data, the network, and the training."""

        data: Literal["digits", "mnist1d"] = Field(default="digits", description="The data set.")
        hidden: int = Field(default=64, ge=1, le=4096, description="Width of the hidden layer.")
        batch: int = Field(
            default=64, ge=1, le=1024, description="Examples in a mini-batch; an incomplete last batch is dropped."
        )
        epochs: int = Field(default=10, ge=1, le=12, description="Passes over all examples.")
        learning_rate: float = Field(default=0.003, gt=0, le=1, description="Adam's step size.")

    def measure(self, parameters: Parameters) -> Measure:
        """Observe each epoch."""
        del parameters
        return Measure(protocol="observe", unit="epoch", differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights (in, out), biases, and each epoch's inputs (steps, batch, in) and labels (steps, batch).

        Every epoch also holds the validation data: inputs (examples, in) and labels (examples,).
        """
        p = parameters
        inputs, labels = _digits() if p.data == "digits" else _mnist1d()
        order = rng.permutation(len(inputs))
        held_out, seen = order[: round(HELD_OUT * len(order))], order[round(HELD_OUT * len(order)) :]
        network = {}
        for number, (fan_in, fan_out) in enumerate(((inputs.shape[1], p.hidden), (p.hidden, CLASSES)), start=1):
            network[f"weights{number}"] = rng.standard_normal((fan_in, fan_out)) / math.sqrt(fan_in)
            network[f"biases{number}"] = 0.1 * rng.standard_normal(fan_out)
        steps = len(seen) // p.batch
        epochs = []
        for _ in range(p.epochs):
            chosen = rng.permutation(seen)[: steps * p.batch].reshape(steps, p.batch)
            epochs.append(
                {
                    "inputs": inputs[chosen],
                    "labels": labels[chosen],
                    "held_out_inputs": inputs[held_out],
                    "held_out_labels": labels[held_out],
                }
            )
        return Arrays(state=network, batches=epochs)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile a step with jit and optax, in a Python loop over the mini-batches."""
        import jax

        def through(step: Any) -> Any:
            update, mean = jax.jit(step), jax.jit(lambda losses: sum(losses) / len(losses))

            def epoch(state: Any, batches: Any) -> tuple[Any, Any]:
                losses = []
                for batch in batches:
                    state, loss = update(state, batch)
                    losses.append(loss)
                return state, mean(losses)

            return epoch

        return _jax_program(parameters, arrays, tools, through, put_one_by_one)

    @variant("jax/scan")
    def scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile an epoch as one scan over its mini-batches."""
        import jax

        def through(step: Any) -> Any:
            def epoch(state: Any, stacked: Any) -> tuple[Any, Any]:
                state, losses = jax.lax.scan(step, state, stacked)
                return state, losses.mean()

            return jax.jit(epoch)

        return _jax_program(parameters, arrays, tools, through, lambda stacked: stacked)

    @variant("pytorch/eager")
    def eager(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn and torch.optim."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile forward pass and loss with torch.compile; the optimizer runs eagerly."""
        return _torch_program(parameters, arrays, tools, compiled=True)


PutEpoch = Callable[[NamedArrays], Any]
"""A function that puts an epoch's mini-batches, stacked in NumPy, on the device."""


def put_one_by_one(stacked: NamedArrays) -> list[dict[str, Array]]:
    """Put each mini-batch on the device by itself."""
    steps = len(stacked["labels"])
    return [{name: array[step] for name, array in stacked.items()} for step in range(steps)]


def _digits() -> tuple[Array, Array]:
    """Return images (1797, 64), with pixels from 0 to 1, and labels (1797,)."""
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    return inputs / 16, labels


def _mnist1d() -> tuple[Array, Array]:
    """Make signals (5000, 40) of mean 0 and deviation 1, and labels (5000,), from the package's own seed."""
    import numpy as np
    from mnist1d.data import make_dataset

    made = make_dataset()
    return np.concatenate([made["x"], made["x_test"]]), np.concatenate([made["y"], made["y_test"]])


def _jax_program(
    parameters: TrainingCurve.Parameters, arrays: Arrays, tools: Tools, through: Callable[[Any], Any], seen: PutEpoch
) -> Program:
    import jax
    import jax.numpy as jnp
    import optax

    def logits_of(network: Any, inputs: Any) -> Any:
        hidden = jnp.tanh(inputs @ network["weights1"] + network["biases1"])
        return hidden @ network["weights2"] + network["biases2"]

    def cross_entropy(network: Any, batch: Any) -> Any:
        logits = logits_of(network, batch["inputs"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    optimizer = optax.adam(parameters.learning_rate, DECAY1, DECAY2, EPSILON)
    epoch = through(training.optax_step(cross_entropy, optimizer))
    right = jax.jit(lambda network, inputs, labels: (logits_of(network, inputs).argmax(-1) == labels).mean())

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        state, loss = epoch(state, batch["seen"])
        return state, {"loss": loss, "accuracy": right(state[0], *batch["held_out"])}

    network = tools.put(dict(arrays.state))
    return _program((network, optimizer.init(network)), step, parameters, arrays, tools, seen)


def _torch_program(
    parameters: TrainingCurve.Parameters, arrays: Arrays, tools: Tools, *, compiled: bool = False
) -> Program:
    import torch

    place: Callable[[Any], Any] = torch.compile if compiled else (lambda function: function)
    w1, b1, w2, b2 = tools.put([arrays.state[name] for name in ("weights1", "biases1", "weights2", "biases2")])
    linear = partial(torch.nn.Linear, device="meta")  # its random weights would be overwritten
    model = torch.nn.Sequential(linear(*w1.shape), torch.nn.Tanh(), linear(*w2.shape))
    for layer, weights, biases in ((model[0], w1, b1), (model[2], w2, b2)):
        layer.weight, layer.bias = torch.nn.Parameter(weights.T.contiguous()), torch.nn.Parameter(biases)

    @place
    def cross_entropy(model: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch["inputs"]), batch["labels"])

    update = training.torch_step(cross_entropy)

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        losses = []
        for mini_batch in batch["seen"]:
            state, loss = update(state, mini_batch)
            losses.append(loss)
        inputs, labels = batch["held_out"]
        with torch.no_grad():
            right = state[0](inputs).argmax(-1) == labels
        return state, {"loss": torch.stack(losses).mean(), "accuracy": right.double().mean()}

    optimizer = torch.optim.Adam(model.parameters(), parameters.learning_rate, (DECAY1, DECAY2), EPSILON)
    return _program((model, optimizer), step, parameters, arrays, tools, put_one_by_one)


def _program(
    state: Any, step: Any, parameters: TrainingCurve.Parameters, arrays: Arrays, tools: Tools, seen: PutEpoch
) -> Program:
    batches = [
        {
            "seen": seen({name: epoch[name] for name in ("inputs", "labels")}),
            "held_out": (epoch["held_out_inputs"], epoch["held_out_labels"]),
        }
        for epoch in arrays.batches
    ]

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        reached = [(out, epoch) for out, epoch in zip(outs, arrays.batches, strict=True) if out is not None]
        if not reached:
            return {}
        losses = [float(out["loss"]) for out, _ in reached]
        expected = curve(arrays.state, [epoch for _, epoch in reached], parameters.learning_rate)
        differences = [abs(loss - right) / right for loss, right in zip(losses, expected, strict=True)]
        return {
            "losses": [f"{loss:.3g}" for loss in losses],
            "testAccuracy": float(reached[-1][0]["accuracy"]),
            "largestRelativeDifference": max(differences),
        }

    return Program(state=state, step=step, batches=tools.put(batches), placed=True, observe=observe)


def curve(network: NamedArrays, epochs: Sequence[NamedArrays], learning_rate: float) -> list[float]:
    """Return the mean loss of each epoch, in NumPy and float64: chain rule and Adam (Kingma and Ba 2015) by hand."""
    import numpy as np

    w = dict(network)
    m, v = ({name: np.zeros_like(w[name]) for name in w} for _ in range(2))
    losses_of_epochs, number = [], 0
    for epoch in epochs:
        losses = []
        for inputs, labels in zip(epoch["inputs"], epoch["labels"], strict=True):
            hidden = np.tanh(inputs @ w["weights1"] + w["biases1"])
            logits = hidden @ w["weights2"] + w["biases2"]
            loss, d_logits = training.cross_entropy_and_gradient(logits, labels)
            losses.append(loss)
            d_hidden = d_logits @ w["weights2"].T * (1 - hidden**2)
            gradients = {
                "weights1": inputs.T @ d_hidden,
                "biases1": d_hidden.sum(0),
                "weights2": hidden.T @ d_logits,
                "biases2": d_logits.sum(0),
            }
            number += 1
            for name, gradient in gradients.items():
                m[name] = DECAY1 * m[name] + (1 - DECAY1) * gradient
                v[name] = DECAY2 * v[name] + (1 - DECAY2) * gradient**2
                scale = np.sqrt(v[name] / (1 - DECAY2**number)) + EPSILON
                w[name] = w[name] - learning_rate * m[name] / (1 - DECAY1**number) / scale
        losses_of_epochs.append(float(np.mean(losses)))
    return losses_of_epochs

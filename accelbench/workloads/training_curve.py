"""Train on real data, and observe the loss of each epoch and what was learned, in both frameworks."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
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
TEST_SHARE = 0.2
"""Share of the examples that are held out for the test."""
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
        """Use the protocol `observe`, which records what the epochs return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="epoch", differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights and biases; return for each epoch newly shuffled mini-batches and the same test examples.

        Inputs are (steps, batch, in), labels (steps, batch).
        """
        p = parameters
        inputs, labels = _digits() if p.data == "digits" else _mnist1d()
        shuffled = rng.permutation(len(inputs))
        test_examples = round(TEST_SHARE * len(inputs))
        test_indices, training_indices = shuffled[:test_examples], shuffled[test_examples:]
        network = {}
        widths = (inputs.shape[1], p.hidden, CLASSES)
        for layer, (fan_in, fan_out) in enumerate(pairwise(widths), start=1):
            network[f"weights{layer}"] = rng.standard_normal((fan_in, fan_out)) / math.sqrt(fan_in)
            network[f"biases{layer}"] = 0.1 * rng.standard_normal(fan_out)
        steps = len(training_indices) // p.batch
        epochs = []
        for _ in range(p.epochs):
            mini_batches = rng.permutation(training_indices)[: steps * p.batch].reshape(steps, p.batch)
            epochs.append(
                {
                    "inputs": inputs[mini_batches],
                    "labels": labels[mini_batches],
                    "held_out_inputs": inputs[test_indices],
                    "held_out_labels": labels[test_indices],
                }
            )
        return Arrays(state=network, batches=epochs)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one step of optax with jit, and call the step for each mini-batch in a Python loop."""
        import jax

        def make_train_epoch(step: Any) -> Any:
            """Return a function that trains for an epoch: it calls the compiled step for each mini-batch."""
            compiled_step = jax.jit(step)
            mean = jax.jit(lambda losses: sum(losses) / len(losses))

            def train_epoch(state: Any, mini_batches: Any) -> tuple[Any, Any]:
                """Train on a list of mini-batches; return the next state and the mean loss."""
                losses = []
                for mini_batch in mini_batches:
                    state, loss = compiled_step(state, mini_batch)
                    losses.append(loss)
                return state, mean(losses)

            return train_epoch

        return _jax_program(parameters, arrays, tools, make_train_epoch, _split_into_mini_batches)

    @variant("jax/scan")
    def scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile a whole epoch with jit, as a scan over the mini-batches."""
        import jax

        def make_train_epoch(step: Any) -> Any:
            """Return a compiled function that trains for an epoch, as a scan of `step` over the mini-batches."""

            def train_epoch(state: Any, stacked_mini_batches: Any) -> tuple[Any, Any]:
                """Train on stacked mini-batches; return the next state and the mean loss."""
                state, losses = jax.lax.scan(step, state, stacked_mini_batches)
                return state, losses.mean()

            return jax.jit(train_epoch)

        return _jax_program(parameters, arrays, tools, make_train_epoch, arrange_mini_batches=lambda stacked: stacked)

    @variant("pytorch/eager")
    def eager(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train with torch.nn and torch.optim, without torch.compile."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile forward pass, loss and backward pass with torch.compile; the optimizer runs eagerly."""
        return _torch_program(parameters, arrays, tools, compiled=True)


Arrange = Callable[[NamedArrays], Any]
"""A function from an epoch's mini-batches, stacked in NumPy, to the form in which the program takes them."""


def _split_into_mini_batches(stacked: NamedArrays) -> list[dict[str, Array]]:
    """Return a list of mini-batches, made from arrays in which the mini-batches of an epoch are stacked."""
    steps = len(stacked["labels"])
    return [{name: array[step] for name, array in stacked.items()} for step in range(steps)]


def _digits() -> tuple[Array, Array]:
    """Return scikit-learn's digits: images (1797, 64), with pixels from 0 to 1, and labels (1797,)."""
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    return inputs / 16, labels  # a pixel is at most 16


def _mnist1d() -> tuple[Array, Array]:
    """Return the data set MNIST-1D, made with a fixed seed: signals (5000, 40) and labels (5000,)."""
    import numpy as np
    from mnist1d.data import make_dataset

    dataset = make_dataset()
    inputs = np.concatenate([dataset["x"], dataset["x_test"]])
    labels = np.concatenate([dataset["y"], dataset["y_test"]])
    return inputs, labels


def _jax_program(
    parameters: TrainingCurve.Parameters,
    arrays: Arrays,
    tools: Tools,
    make_train_epoch: Callable[[Any], Any],
    arrange_mini_batches: Arrange,
) -> Program:
    """Return a program that trains with optax; one call is an epoch.

    `make_train_epoch` turns a step for one mini-batch into a function for an epoch, (state, mini-batches) -> (state,
    mean loss). `arrange_mini_batches` brings the stacked mini-batches into the form that this function takes.
    """
    import jax
    import jax.numpy as jnp
    import optax

    def logits_of(network: Any, inputs: Any) -> Any:
        """Return the logits (batch, classes)."""
        hidden = jnp.tanh(inputs @ network["weights1"] + network["biases1"])
        return hidden @ network["weights2"] + network["biases2"]

    def cross_entropy(network: Any, batch: Any) -> Any:
        logits = logits_of(network, batch["inputs"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    optimizer = optax.adam(parameters.learning_rate, DECAY1, DECAY2, EPSILON)
    train_epoch = make_train_epoch(training.optax_step(cross_entropy, optimizer))

    def accuracy(network: Any, inputs: Any, labels: Any) -> Any:
        """Return the share of examples that are classified correctly."""
        return (logits_of(network, inputs).argmax(-1) == labels).mean()

    compiled_accuracy = jax.jit(accuracy)

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train for one epoch; return the next state, the mean loss and the test accuracy."""
        state, loss = train_epoch(state, batch["mini_batches"])
        network, _optimizer_state = state
        test_inputs, test_labels = batch["test"]
        return state, {"loss": loss, "accuracy": compiled_accuracy(network, test_inputs, test_labels)}

    network = tools.put(dict(arrays.state))
    state = (network, optimizer.init(network))
    return _program(state, step, parameters, arrays, tools, arrange_mini_batches)


def _torch_program(
    parameters: TrainingCurve.Parameters, arrays: Arrays, tools: Tools, *, compiled: bool = False
) -> Program:
    """Return a program that trains with torch.nn; if `compiled`, torch.compile compiles the loss."""
    import torch

    w1, b1, w2, b2 = tools.put([arrays.state[name] for name in ("weights1", "biases1", "weights2", "biases2")])
    linear = partial(torch.nn.Linear, device="meta")  # its random weights would be overwritten
    model = torch.nn.Sequential(linear(*w1.shape), torch.nn.Tanh(), linear(*w2.shape))
    for layer, weights, biases in ((model[0], w1, b1), (model[2], w2, b2)):
        layer.weight, layer.bias = torch.nn.Parameter(weights.T.contiguous()), torch.nn.Parameter(biases)

    def cross_entropy(model: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch["inputs"]), batch["labels"])

    train_mini_batch = training.torch_step(torch.compile(cross_entropy) if compiled else cross_entropy)

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train for one epoch; return the next state, the mean loss and the test accuracy."""
        losses = []
        for mini_batch in batch["mini_batches"]:
            state, loss = train_mini_batch(state, mini_batch)
            losses.append(loss)
        model, _optimizer = state
        test_inputs, test_labels = batch["test"]
        with torch.no_grad():
            correct = model(test_inputs).argmax(-1) == test_labels
        return state, {"loss": torch.stack(losses).mean(), "accuracy": correct.double().mean()}

    optimizer = torch.optim.Adam(model.parameters(), parameters.learning_rate, (DECAY1, DECAY2), EPSILON)
    return _program((model, optimizer), step, parameters, arrays, tools, _split_into_mini_batches)


def _program(
    state: Any,
    step: Any,
    parameters: TrainingCurve.Parameters,
    arrays: Arrays,
    tools: Tools,
    arrange_mini_batches: Arrange,
) -> Program:
    """Return a program that calls `step` with each epoch's mini-batches and the test examples.

    `arrange_mini_batches` brings the stacked mini-batches of an epoch into the form that `step` takes.
    """
    batches = []
    for epoch in arrays.batches:
        mini_batches = arrange_mini_batches({"inputs": epoch["inputs"], "labels": epoch["labels"]})
        batches.append({"mini_batches": mini_batches, "test": (epoch["held_out_inputs"], epoch["held_out_labels"])})

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        """Return losses, test accuracy, and the largest difference from a training in NumPy.

        A failed epoch has None in `outs`; the training in NumPy leaves it out too.
        """
        finished_outs, finished_epochs = [], []
        for out, epoch in zip(outs, arrays.batches, strict=True):
            if out is not None:
                finished_outs.append(out)
                finished_epochs.append(epoch)
        if not finished_outs:
            return {}
        losses = [float(out["loss"]) for out in finished_outs]
        references = reference_losses(arrays.state, finished_epochs, parameters.learning_rate)
        differences = [abs(loss - reference) / reference for loss, reference in zip(losses, references, strict=True)]
        return {
            "losses": [f"{loss:.3g}" for loss in losses],
            "testAccuracy": float(finished_outs[-1]["accuracy"]),
            "largestRelativeDifference": max(differences),
        }

    return Program(state=state, step=step, batches=tools.put(batches), placed=True, observe=observe)


def reference_losses(network: NamedArrays, epochs: Sequence[NamedArrays], learning_rate: float) -> list[float]:
    """Train in NumPy by Adam (Kingma and Ba 2015, algorithm 1); return each epoch's mean loss.

    `network` has the initial weights by name; each epoch has inputs (steps, batch, in) and labels (steps, batch).
    """
    import numpy as np

    w = dict(network)
    m = {name: np.zeros_like(array) for name, array in w.items()}  # first moments
    v = dict(m)  # second moments
    t = 0  # steps so far
    losses_of_epochs = []
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
            t += 1
            for name, gradient in gradients.items():
                m[name] = DECAY1 * m[name] + (1 - DECAY1) * gradient
                v[name] = DECAY2 * v[name] + (1 - DECAY2) * gradient**2
                scale = np.sqrt(v[name] / (1 - DECAY2**t)) + EPSILON
                w[name] = w[name] - learning_rate * m[name] / (1 - DECAY1**t) / scale
        losses_of_epochs.append(float(np.mean(losses)))
    return losses_of_epochs

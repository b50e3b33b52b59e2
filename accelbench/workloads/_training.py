"""Build training steps in the usual way: with optax, and with torch.optim."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from accelbench.workload import Array, Program, Tools

Loss = Callable[[Any, Any], Any]
"""(weights or model, batch) -> the loss, a scalar."""


Step = Callable[[Any, Any], tuple[Any, Any]]
"""See `Program.step`."""


def optax_step(loss_of: Loss, optimizer: Any) -> Step:
    """Return a JAX training step whose state is (weights, optimizer state); the caller should donate this state."""
    import jax
    import optax

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch; return the next state and the loss."""
        weights, optimizer_state = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        updates, optimizer_state = optimizer.update(gradients, optimizer_state, weights)
        return (optax.apply_updates(weights, updates), optimizer_state), loss

    return step


def jit_donating(program: Program) -> Program:
    """Return the program with its step under jax.jit; each call donates the state."""
    import jax

    return replace(program, step=jax.jit(program.step, donate_argnums=0), placed=True, donate=True)


def torch_step(loss_of: Loss, *, clear_all: bool = False) -> Step:
    """Return a PyTorch training step whose state is (model, optimizer).

    If `clear_all`, each step clears the gradients of the whole model, not only of what the optimizer updates.
    """

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch; return the state, changed in place, and the loss."""
        model, optimizer = state
        if clear_all:
            model.zero_grad()
        else:
            optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return state, loss.detach()

    return step


Tensors = Mapping[str, Any]
"""PyTorch tensors by name."""
Part = Literal["loss", "step", "whole"]
"""What runs in the variant's mode, such as compiled: the loss with its backward pass, the optimizer's step as well, or
both as one program."""


def torch_program(
    model: Any,
    loss_of: Loss,
    learning_rate: float,
    batches: Sequence[Any],
    export_weights: Callable[[Tensors], Mapping[str, Any]],
    tools: Tools,
    part: Part = "loss",
) -> Program:
    """Return a program that trains `model` by gradient descent.

    `export_weights` maps the model's tensors to arrays with the names that `reference` uses. `part` is what runs in
    the variant's mode: the `loss` with its backward pass, the optimizer's `step` too, or the `whole` step at once.
    """
    import torch

    def export_tensors(tensors: Tensors, loss: Any) -> dict[str, Any]:
        """Return the weights and the loss by the names that `reference` uses."""
        return {**export_weights(tensors), "loss": loss}

    if part == "whole":

        def loss_of_tensors(tensors: Tensors, batch: Any) -> Any:
            """Return the loss of the model with `tensors` in place of the model's own parameters."""

            def apply_model(inputs: Any) -> Any:
                """Return the outputs of the model with `tensors` as parameters."""
                return torch.func.functional_call(model, dict(tensors), (inputs,))

            return loss_of(apply_model, batch)

        step = torch_whole_step(loss_of_tensors, learning_rate, tools)
        return Program(state=_named_tensors(model), step=step, batches=batches, placed=True, export=export_tensors)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    if part == "step":
        step = torch_compiled_step(tools.in_mode(loss_of), model, optimizer, tools)
        return Program(state=_named_tensors(model), step=step, batches=batches, placed=True, export=export_tensors)

    def export_state(state: Any, loss: Any) -> dict[str, Any]:
        """Return the model's weights and the loss by the names that `reference` uses."""
        trained_model, _optimizer = state
        return export_tensors(_named_tensors(trained_model), loss)

    return Program(
        state=(model, optimizer),
        step=torch_step(tools.in_mode(loss_of)),
        batches=batches,
        placed=True,
        export=export_state,
    )


def torch_whole_step(loss_of: Loss, learning_rate: float, tools: Tools) -> Step:
    """Return a step of gradient descent, in the variant's mode, whose state is the weights: tensors by name."""
    import torch

    def step(weights: Any, batch: Any) -> tuple[Any, Any]:
        """Update the weights in place by gradient descent; return them and the loss."""
        # A call of backward() would break the graph.
        gradients, loss = torch.func.grad_and_value(loss_of)(weights, batch)
        for name, weight in weights.items():
            weight.sub_(gradients[name], alpha=learning_rate)
        return weights, loss

    return tools.in_mode(step, one_program=True)


def torch_compiled_step(loss_of: Loss, model: Any, optimizer: Any, tools: Tools) -> Step:
    """Return a training step that compiles the optimizer's step; its state is the weights: tensors by name.

    The optimizer must have no state of its own, like plain SGD.
    """
    # torch.compile compiles again for another optimizer, so all measured blocks share this one.
    update = tools.in_mode(optimizer.step)
    parameters = dict(model.named_parameters())
    last_weights: Tensors = {}

    def step(weights: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch; return the weights, changed in place, and the loss."""
        nonlocal last_weights
        # A block starts from new copies of the weights: let the model's parameters use their memory.
        if weights is not last_weights:
            for name, parameter in parameters.items():
                parameter.data = weights[name]
            last_weights = weights
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        update()
        return weights, loss.detach()

    return step


def _named_tensors(model: Any) -> dict[str, Any]:
    """Return the model's parameters by name, as tensors without gradients that share the parameters' memory."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def cross_entropy_and_gradient(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Return the mean cross-entropy of labels (batch,), and the gradient with respect to logits (batch, classes)."""
    import numpy as np

    probabilities = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    correct = np.arange(len(labels)), labels  # index of each example's correct class
    loss = -np.log(probabilities[correct]).mean()
    # The gradient with respect to a logit is the probability of its class, minus 1 for the correct class.
    probabilities[correct] -= 1
    return np.asarray(loss), probabilities / len(labels)

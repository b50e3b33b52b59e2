"""Build training steps in the usual way: with optax, and with torch.optim."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from accelbench.workload import Array, Program

Loss = Callable[[Any, Any], Any]
"""(weights or model, batch) -> the loss, a scalar."""


Step = Callable[[Any, Any], tuple[Any, Any]]
"""See `Program.step`."""


def optax_step(loss_of: Loss, optimizer: Any) -> Step:
    """Return a step whose state is (weights, optimizer state), to be donated as flax's nnx.jit advises."""
    import jax
    import optax

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        weights, optimizer_state = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        updates, optimizer_state = optimizer.update(gradients, optimizer_state, weights)
        return (optax.apply_updates(weights, updates), optimizer_state), loss

    return step


def jit_donating(program: Program) -> Program:
    """Return the program under jax.jit with its state donated, for variants that apply jit themselves."""
    import jax

    return replace(program, step=jax.jit(program.step, donate_argnums=0), placed=True, donate=True)


def torch_step(loss_of: Loss, *, clear_all: bool = False) -> Step:
    """Return a step whose state is (model, optimizer), both changed in place.

    `clear_all`: clear the gradients of the whole model, also of parameters that the optimizer does not train.
    """

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        model, optimizer = state
        (model if clear_all else optimizer).zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return state, loss.detach()

    return step


Tensors = Mapping[str, Any]
"""PyTorch tensors by name."""
Compiled = Literal["nothing", "loss", "step", "whole"]
"""The part under torch.compile: the loss with its backward pass, the optimizer's step as well, or all in one graph."""


def torch_program(
    model: Any,
    loss_of: Loss,
    learning_rate: float,
    batches: Sequence[Any],
    exported: Callable[[Tensors], Mapping[str, Any]],
    compiled: Compiled = "nothing",
) -> Program:
    """Return a training by torch.optim.SGD; `exported` names the trained weights as the reference does."""
    import torch

    if compiled == "whole":

        def loss_with(numbers: Tensors, batch: Any) -> Any:
            return loss_of(lambda inputs: torch.func.functional_call(model, dict(numbers), (inputs,)), batch)

        return Program(
            state=_tensors(model),
            step=torch_whole_step(loss_with, learning_rate),
            batches=batches,
            placed=True,
            export=lambda numbers, loss: {**exported(numbers), "loss": loss},
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    if compiled == "step":
        return Program(
            state=_tensors(model),
            step=torch_compiled_step(torch.compile(loss_of), model, optimizer),
            batches=batches,
            placed=True,
            export=lambda numbers, loss: {**exported(numbers), "loss": loss},
        )
    return Program(
        state=(model, optimizer),
        step=torch_step(torch.compile(loss_of) if compiled == "loss" else loss_of),
        batches=batches,
        placed=compiled == "loss",
        export=lambda state, loss: {**exported(_tensors(state[0])), "loss": loss},
    )


def torch_whole_step(loss_of: Loss, learning_rate: float) -> Step:
    """Return a step of gradient descent on tensors by name, compiled into one graph as by jax.jit.

    torch.func computes the gradients: a call of backward() would break the graph.
    """
    import torch

    def step(numbers: Any, batch: Any) -> tuple[Any, Any]:
        gradients, loss = torch.func.grad_and_value(loss_of)(numbers, batch)
        for name, number in numbers.items():
            number.sub_(gradients[name], alpha=learning_rate)
        return numbers, loss

    whole: Step = torch.compile(step, fullgraph=True)
    return whole


def torch_compiled_step(loss_of: Loss, model: Any, optimizer: Any) -> Step:
    """Return a step on the model's parameters by name, with the optimizer's step under torch.compile.

    A compiled optimizer step belongs to its object, and a copy would be compiled again. So there is one model and one
    stateless optimizer, which work in the memory of the state that the step gets.
    """
    import torch

    update = torch.compile(optimizer.step)
    parameters = dict(model.named_parameters())
    given: Tensors = {}

    def step(numbers: Any, batch: Any) -> tuple[Any, Any]:
        nonlocal given
        if numbers is not given:
            for name, parameter in parameters.items():
                parameter.data = numbers[name]
            given = numbers
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        update()
        return numbers, loss.detach()

    return step


def _tensors(model: Any) -> dict[str, Any]:
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def cross_entropy_and_gradient(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Return the mean loss of logits (batch, classes) for labels (batch,), and its gradient, in NumPy."""
    import numpy as np

    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    right = np.arange(len(labels)), labels
    loss = -np.log(shares[right]).mean()
    shares[right] -= 1
    return np.asarray(loss), shares / len(labels)

"""Measure training with the first layers frozen: are their gradients computed all the same?"""

from typing import Any, Self

from pydantic import Field, model_validator

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import _deep_network as network
from accelbench.workloads import _training as training


class FreezeLayers(network.DeepNetwork):
    """Train a network of tanh layers (width x width) by gradient descent, with its first `frozen` layers fixed.

    Row 57 of the claims: freezing is `requires_grad = False` in PyTorch, while in JAX "you'd filter the pytree
    manually". Frozen layers need no gradient, and no backward pass is needed below the first trained layer. In JAX,
    optax can mask updates (gradients of everything are written, and a compiler may drop them), or the loss is
    differentiated by the trained layers alone. In PyTorch it is `requires_grad_(False)`; another variant shows the cost
    of forgetting that call.
    """

    name = "freeze-layers"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
    libraries = {"jax": ("optax",)}

    class Parameters(network.DeepNetwork.Parameters):
        """Describe the network, the batch, and how many layers are frozen."""

        frozen: int = Field(default=8, ge=0, le=1000, description="Layers that stay fixed, from the first.")

        @model_validator(mode="after")
        def _something_is_trained(self) -> Self:
            if self.frozen >= self.layers:
                raise ValueError("at least one layer has to be trained: frozen must be below layers")
            return self

    def frozen(self, parameters: Parameters) -> int:
        """Return the parameter `frozen`."""
        return parameters.frozen

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use optax.partition: compute gradients of all layers and set those of the frozen ones to zero."""
        import optax

        p = parameters
        labels = ["frozen"] * p.frozen + ["trained"] * (p.layers - p.frozen)
        optimizer = optax.partition({"frozen": optax.set_to_zero(), "trained": optax.sgd(p.learning_rate)}, labels)
        layers = tools.put(network.as_layers(arrays.state))
        return Program(
            state=(layers, optimizer.init(layers)),
            step=training.optax_step(network.jax_loss(network.jax_layer), optimizer),
            batches=tools.put(arrays.batches),
            donate=True,
            export=lambda state, loss: {**network.named(state[0]), "loss": loss},
        )

    @variant("jax/jit-trained-only")
    def jit_trained_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate by the trained layers alone, and donate the whole state."""
        import jax
        import optax

        p = parameters
        optimizer = optax.sgd(p.learning_rate)
        loss_of = network.jax_loss(network.jax_layer)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            frozen, trained, optimizer_state = state
            loss, gradients = jax.value_and_grad(lambda trained: loss_of(frozen + trained, batch))(trained)
            updates, optimizer_state = optimizer.update(gradients, optimizer_state, trained)
            return (frozen, optax.apply_updates(trained, updates), optimizer_state), loss

        layers = tools.put(network.as_layers(arrays.state))
        frozen, trained = layers[: p.frozen], layers[p.frozen :]
        program = Program(
            state=(frozen, trained, optimizer.init(trained)),
            step=step,
            batches=tools.put(arrays.batches),
            export=lambda state, loss: {**network.named(state[0] + state[1]), "loss": loss},
        )
        return training.jit_donating(program)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call requires_grad_(False) and give the optimizer the rest, as PyTorch's transfer learning tutorial does."""
        return _torch_program(parameters, arrays, tools, requires_grad=False)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call requires_grad_(False), and compile forward pass and loss with torch.compile."""
        return _torch_program(parameters, arrays, tools, requires_grad=False, compiled=True)

    @variant("pytorch/left-out")
    def left_out(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Forget requires_grad_: the optimizer gets no frozen layer, but their gradients are computed.

        It is no baseline: it shows what requires_grad_(False) saves.
        """
        return _torch_program(parameters, arrays, tools, requires_grad=True)


def _torch_program(
    parameters: FreezeLayers.Parameters, arrays: Arrays, tools: Tools, *, requires_grad: bool, compiled: bool = False
) -> Program:
    import torch

    model = network.torch_network(tools.put(network.as_layers(arrays.state)))
    model[: 2 * parameters.frozen].requires_grad_(requires_grad)

    def mean_squared_error(model: Any, batch: Any) -> Any:
        return torch.nn.functional.mse_loss(model(batch["inputs"]), batch["targets"])

    loss_of = torch.compile(mean_squared_error) if compiled else mean_squared_error
    trained = model[2 * parameters.frozen :].parameters()
    # An optimizer clears only the gradients of its own parameters.
    clear_all = requires_grad
    return network.torch_training(model, trained, loss_of, parameters.learning_rate, arrays, tools, clear_all=clear_all)

"""Measure training with the first layers frozen: are gradients of the frozen layers computed nevertheless?"""

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
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    libraries = {"jax": ("optax",)}

    class Parameters(network.DeepNetwork.Parameters):
        """Describe the network, the batch, and how many layers are frozen."""

        frozen: int = Field(default=8, ge=0, le=1000, description="Layers that stay fixed, from the first.")

        @model_validator(mode="after")
        def _at_least_one_layer_is_trained(self) -> Self:
            if self.frozen >= self.layers:
                raise ValueError("at least one layer has to be trained: frozen must be below layers")
            return self

    def frozen_layers(self, parameters: Parameters) -> int:
        """Return how many layers, counted from the first, are not trained."""
        return parameters.frozen

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Set the updates of frozen layers to zero by optax.partition."""
        import optax

        p = parameters
        labels = ["frozen"] * p.frozen + ["trained"] * (p.layers - p.frozen)
        optimizer = optax.partition({"frozen": optax.set_to_zero(), "trained": optax.sgd(p.learning_rate)}, labels)

        def export(state: Any, loss: Any) -> dict[str, Any]:
            layers, _optimizer_state = state
            return {**network.as_state(layers), "loss": loss}

        layers = tools.put(network.as_layers(arrays.state))
        return Program(
            state=(layers, optimizer.init(layers)),
            step=training.optax_step(network.jax_loss(network.jax_layer), optimizer),
            batches=tools.put(arrays.batches),
            donate=True,
            export=export,
        )

    @variant("jax/jit-trained-only")
    def jit_trained_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate with respect to the trained layers alone, and donate the whole state."""
        import jax
        import optax

        p = parameters
        optimizer = optax.sgd(p.learning_rate)
        loss_of = network.jax_loss(network.jax_layer)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            """Update the trained layers with one batch; return the next state and the loss."""
            frozen_layers, trained_layers, optimizer_state = state

            def loss_of_trained(trained_layers: Any) -> Any:
                """Return the loss as a function of the trained layers alone."""
                return loss_of(frozen_layers + trained_layers, batch)

            loss, gradients = jax.value_and_grad(loss_of_trained)(trained_layers)
            updates, optimizer_state = optimizer.update(gradients, optimizer_state, trained_layers)
            return (frozen_layers, optax.apply_updates(trained_layers, updates), optimizer_state), loss

        def export(state: Any, loss: Any) -> dict[str, Any]:
            frozen_layers, trained_layers, _optimizer_state = state
            return {**network.as_state(frozen_layers + trained_layers), "loss": loss}

        layers = tools.put(network.as_layers(arrays.state))
        frozen_layers, trained_layers = layers[: p.frozen], layers[p.frozen :]
        state = (frozen_layers, trained_layers, optimizer.init(trained_layers))
        return training.jit_donating(Program(state=state, step=step, batches=tools.put(arrays.batches), export=export))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call requires_grad_(False) on frozen layers, as PyTorch's tutorial does."""
        return _torch_program(parameters, arrays, tools, requires_grad=False)

    @variant("pytorch/left-out", in_mode="eager")
    def left_out(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Leave out requires_grad_(False): the gradients of frozen layers are computed, but not used.

        This variant measures how much time requires_grad_(False) saves; it is no baseline.
        """
        return _torch_program(parameters, arrays, tools, requires_grad=True)


def _torch_program(
    parameters: FreezeLayers.Parameters, arrays: Arrays, tools: Tools, *, requires_grad: bool
) -> Program:
    """Return a training program whose optimizer gets only the trained layers; the loss runs in the variant's mode.

    If `requires_grad`, gradients of frozen layers are computed too.
    """
    import torch

    model = network.torch_network(tools.put(network.as_layers(arrays.state)))
    frozen_modules = 2 * parameters.frozen  # each layer is a Linear and a Tanh
    model[:frozen_modules].requires_grad_(requires_grad)

    def mean_squared_error(model: Any, batch: Any) -> Any:
        return torch.nn.functional.mse_loss(model(batch["inputs"]), batch["targets"])

    loss_of = tools.in_mode(mean_squared_error)
    trained = model[frozen_modules:].parameters()
    # The optimizer clears only the gradients of trained layers. Those of frozen layers would grow, so clear all.
    clear_all = requires_grad
    return network.torch_training(model, trained, loss_of, parameters.learning_rate, arrays, tools, clear_all=clear_all)

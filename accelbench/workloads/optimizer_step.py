"""Measure a step of Adam: a functional optimizer that returns its state against one that updates it in place."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import (
    Array,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)

if TYPE_CHECKING:
    from numpy.random import Generator

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class OptimizerStep(Workload):
    """Apply Adam (Kingma and Ba 2015, algorithm 1) to `tensors` parameters of (size,) each, with given gradients.

    Row 54 of the claims: PyTorch's optimizers hold their state and "mutate it in-place", in JAX it is threaded through
    every step. Compared are optax.adam, with and without donating the old state, and torch.optim.Adam with its default
    implementation (on a CPU tensor by tensor, on CUDA foreach), foreach and fused. By default parameters, gradients and
    moments take 256 MiB in float32, more than caches hold. The gradients stay the same, with magnitudes from 0.5 to
    1.5, so that none vanishes in a narrow type.
    """

    name = "optimizer-step"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
    libraries = {"jax": ("optax",)}

    class Parameters(WorkloadParameters):
        """Set the number and size of the parameters."""

        tensors: int = Field(default=16, ge=1, le=1024, description="Parameter tensors.")
        size: int = Field(default=2**20, ge=1, le=2**30, description="Numbers in each tensor.")
        learning_rate: float = Field(default=0.001, gt=0, le=1, description="Adam's step size.")

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after three steps, as Adam's bias corrections differ in each."""
        del parameters
        return Measure(parity_units=3)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw parameters p0, p1, ... (size,), and gradients with the same names."""
        names = [f"p{index}" for index in range(parameters.tensors)]
        gradients = {}
        for name in names:
            signs = rng.choice((-1.0, 1.0), parameters.size)
            gradients[name] = signs * rng.uniform(0.5, 1.5, parameters.size)  # squares do not vanish in narrow types
        return Arrays(state={name: rng.standard_normal(parameters.size) for name in names}, batches=(gradients,))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply `units` steps of Adam in NumPy; return parameters and moments."""
        import numpy as np

        outputs: dict[str, Array] = {}
        for name, start in arrays.state.items():
            p, gradient = start, arrays.batches[0][name]
            m, v = np.zeros_like(p), np.zeros_like(p)  # first and second moments
            for t in range(1, units + 1):
                m = BETA1 * m + (1 - BETA1) * gradient
                v = BETA2 * v + (1 - BETA2) * gradient**2
                p = p - parameters.learning_rate * (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON)
            outputs |= {name: p, f"{name}.m": m, f"{name}.v": v}
        return outputs

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count fourteen operations for each parameter; 4 arrays are read, 3 are written.

        Parameters, gradients and both moments are read; all of them but the gradients are written.
        """
        size = parameters.tensors * parameters.size
        # m takes 3, v 4, both corrections 2, root and epsilon 2, learning rate and quotient 2, subtraction 1.
        return Cost(flops=14.0 * size, bytes=7.0 * size * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use optax.adam and optax.apply_updates, without donation."""
        return _jax_program(parameters, arrays, tools)

    @variant("jax/jit-donated")
    def jit_donated(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Donate the old parameters and moments to jit, so that the new ones can take their memory."""
        import jax

        program = _jax_program(parameters, arrays, tools)
        return replace(program, step=jax.jit(program.step, donate_argnums=0), placed=True, donate=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.Adam with its default implementation for the device."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/foreach")
    def foreach(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.Adam with foreach=True: each operation is applied to all tensors at once."""
        return _torch_program(parameters, arrays, tools, foreach=True)

    @variant("pytorch/fused")
    def fused(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.Adam with fused=True: one operation computes a whole step of all tensors."""
        return _torch_program(parameters, arrays, tools, fused=True)


def _jax_program(parameters: OptimizerStep.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program that applies optax.adam to the state (weights, optimizer state); batches are gradients."""
    import optax

    adam = optax.adam(parameters.learning_rate, b1=BETA1, b2=BETA2, eps=EPSILON)

    def step(state: Any, gradients: Any) -> tuple[Any, None]:
        """Apply one step of Adam; return the next state."""
        weights, optimizer_state = state
        updates, optimizer_state = adam.update(gradients, optimizer_state, weights)
        return (optax.apply_updates(weights, updates), optimizer_state), None

    def export(state: Any, _: Any) -> dict[str, Any]:
        """Return weights and moments by the names that `reference` uses."""
        weights, (moments, *_) = state  # optax.adam's state begins with the moments
        return _arrays_by_name(weights, moments.mu, moments.nu)

    weights = tools.put(arrays.state)
    return Program(state=(weights, adam.init(weights)), step=step, batches=tools.put(arrays.batches), export=export)


def _torch_program(parameters: OptimizerStep.Parameters, arrays: Arrays, tools: Tools, **options: bool) -> Program:
    """Return a program that applies torch.optim.Adam to the state (weights, optimizer); batches are gradients.

    `options` are arguments of torch.optim.Adam, such as `fused`.
    """
    import torch

    def step(state: Any, gradients: Any) -> tuple[Any, None]:
        """Apply one step of Adam, which changes weights and moments in place."""
        weights, adam = state
        for name, weight in weights.items():
            weight.grad = gradients[name]
        adam.step()
        return state, None

    def export(state: Any, _: Any) -> dict[str, Any]:
        """Return weights and moments by the names that `reference` uses."""
        weights, adam = state
        first_moments = {name: adam.state[weight]["exp_avg"] for name, weight in weights.items()}
        second_moments = {name: adam.state[weight]["exp_avg_sq"] for name, weight in weights.items()}
        detached_weights = {name: weight.detach() for name, weight in weights.items()}
        return _arrays_by_name(detached_weights, first_moments, second_moments)

    weights = {name: torch.nn.Parameter(tensor) for name, tensor in tools.put(arrays.state).items()}
    rate, betas = parameters.learning_rate, (BETA1, BETA2)
    adam = torch.optim.Adam(weights.values(), lr=rate, betas=betas, eps=EPSILON, **options)
    return Program(state=(weights, adam), step=step, batches=tools.put(arrays.batches), placed=True, export=export)


def _arrays_by_name(weights: Any, first_moments: Any, second_moments: Any) -> dict[str, Any]:
    """Return weights and moments by the names that `reference` uses: p0, p0.m, p0.v, ..."""
    return {
        **weights,
        **{f"{name}.m": moment for name, moment in first_moments.items()},
        **{f"{name}.v": moment for name, moment in second_moments.items()},
    }

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
        """Compare after three steps: the bias corrections differ from step to step."""
        del parameters
        return Measure(parity_units=3)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw standard normal parameters p0, p1, ... of shape (size,), and gradients by the same names."""
        names = [f"p{number}" for number in range(parameters.tensors)]
        gradients = {
            name: rng.choice((-1.0, 1.0), parameters.size) * rng.uniform(0.5, 1.5, parameters.size) for name in names
        }
        return Arrays(state={name: rng.standard_normal(parameters.size) for name in names}, batches=(gradients,))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Follow the algorithm as printed."""
        import numpy as np

        outputs: dict[str, Array] = {}
        for name, start in arrays.state.items():
            p, gradient = start, arrays.batches[0][name]
            m, v = np.zeros_like(p), np.zeros_like(p)
            for t in range(1, units + 1):
                m = BETA1 * m + (1 - BETA1) * gradient
                v = BETA2 * v + (1 - BETA2) * gradient**2
                p = p - parameters.learning_rate * (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON)
            outputs |= {name: p, f"{name}.m": m, f"{name}.v": v}
        return outputs

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count fourteen operations a number; numbers, gradients and moments are read, all but gradients written."""
        numbers = parameters.tensors * parameters.size
        return Cost(flops=14.0 * numbers, bytes=7.0 * numbers * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use optax.adam and optax.apply_updates without donation, which shows the cost of keeping the old state."""
        return _jax_program(parameters, arrays, tools)

    @variant("jax/jit-donated")
    def jit_donated(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Donate the old parameters and moments."""
        import jax

        program = _jax_program(parameters, arrays, tools)
        return replace(program, step=jax.jit(program.step, donate_argnums=0), placed=True, donate=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.Adam with its default implementation for the device."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/foreach")
    def foreach(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.Adam with foreach: each operation on all tensors at once."""
        return _torch_program(parameters, arrays, tools, foreach=True)

    @variant("pytorch/fused")
    def fused(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.Adam with fused: one kernel for a whole step."""
        return _torch_program(parameters, arrays, tools, fused=True)


def _jax_program(parameters: OptimizerStep.Parameters, arrays: Arrays, tools: Tools) -> Program:
    import optax

    adam = optax.adam(parameters.learning_rate, b1=BETA1, b2=BETA2, eps=EPSILON)

    def step(state: Any, gradients: Any) -> tuple[Any, None]:
        numbers, moments = state
        updates, moments = adam.update(gradients, moments, numbers)
        return (optax.apply_updates(numbers, updates), moments), None

    def export(state: Any, _: Any) -> dict[str, Any]:
        numbers, (moments, *_rest) = state
        return _named(numbers, moments.mu, moments.nu)

    numbers = tools.put(arrays.state)
    return Program(state=(numbers, adam.init(numbers)), step=step, batches=tools.put(arrays.batches), export=export)


def _torch_program(parameters: OptimizerStep.Parameters, arrays: Arrays, tools: Tools, **how: bool) -> Program:
    import torch

    def step(state: Any, gradients: Any) -> tuple[Any, None]:
        numbers, adam = state
        for name, number in numbers.items():
            number.grad = gradients[name]
        adam.step()
        return state, None

    def export(state: Any, _: Any) -> dict[str, Any]:
        numbers, adam = state
        m, v = ({name: adam.state[numbers[name]][key] for name in numbers} for key in ("exp_avg", "exp_avg_sq"))
        return _named({name: number.detach() for name, number in numbers.items()}, m, v)

    numbers = {name: torch.nn.Parameter(number) for name, number in tools.put(arrays.state).items()}
    rate, betas = parameters.learning_rate, (BETA1, BETA2)
    adam = torch.optim.Adam(numbers.values(), lr=rate, betas=betas, eps=EPSILON, **how)
    return Program(state=(numbers, adam), step=step, batches=tools.put(arrays.batches), placed=True, export=export)


def _named(numbers: Any, m: Any, v: Any) -> dict[str, Any]:
    return {
        **numbers,
        **{f"{name}.m": number for name, number in m.items()},
        **{f"{name}.v": number for name, number in v.items()},
    }

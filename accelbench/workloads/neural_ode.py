"""Measure solvers of ordinary differential equations, alone and within training: the same method with fixed steps."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.picture import Picture
from accelbench.workload import (
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
from accelbench.workloads import _kutta as kutta

if TYPE_CHECKING:
    from numpy.random import Generator

RATE = 0.01
"""Learning rate of the gradient descent."""
TARGET_STEPS = 1024
"""Number of steps of the solution that gives the network's targets."""
FIRST_EVALUATIONS = 2
"""Evaluations of dz/dt by which torchdiffeq chooses the size of its first step."""
DRAWN, MAXIMUM_DRAWN = 8, 2**16
"""Pendulums in a picture, and the largest batch that a report draws them from."""

Solve = Callable[[Any, Any], Any]
"""Maps z (batch, 2) at the start, and the network's weights or None for a pendulum, to z at the end."""


class NeuralOde(Workload):
    """Solve dz/dt = f(z) from 0 to `time` in `steps` equal steps of Kutta's 3/8 rule, for a batch of z (batch, 2).

    Row 46 of the claims: neural ODEs and Hamiltonian dynamics. `work: solve` moves pendulums, f(angle, speed) =
    (speed, -sin(angle)); each solution starts where the last one ends. `work: train` has the network f(z) = tanh(z W1 +
    b1) W2 + b2 learn to move like them: a step is the solution, the mean squared error of its end, the gradient through
    all steps of the solver, and gradient descent. torchdiffeq calls this rule rk4; diffrax gets its coefficients.

    Adaptive steps would compare two rules for the size of steps, not two frameworks: equal tolerances are neither equal
    work nor equal errors. So `work: adaptive` times nothing, and observes how many steps of Dormand and Prince's rule a
    library takes for the pendulums, and how large its error is.
    """

    name = "neural-ode"
    modes = {
        "jax": ("jit",),
        "jax_diffrax": ("jit",),
        "pytorch": ("eager",),
        "pytorch_torchdiffeq": ("eager",),
    }
    libraries = {
        "jax_diffrax": ("diffrax",),
        "diffrax_adaptive": ("diffrax",),
        "pytorch_torchdiffeq": ("torchdiffeq",),
        "torchdiffeq_adaptive": ("torchdiffeq",),
    }
    extra = "scientific"
    observes = {
        "triedSteps": "Steps that the library tried; the most of any pendulum, if each has its own.",
        "largestError": "Largest error of an angle or a speed at the end, to two digits.",
        "energyDrift": "Largest change of a pendulum's energy, to two digits.",
    }

    class Parameters(WorkloadParameters):
        """Choose what is solved, and how finely."""

        work: Literal["solve", "train", "adaptive"] = Field(
            default="solve",
            description="solve: pendulums, without gradients; train: a step of training a network; adaptive: steps and "
            "errors of adaptive solvers, without times.",
        )
        batch: int = Field(default=32, ge=1, le=2**20, description="Solutions that are computed together.")
        time: float = Field(default=8.0, gt=0, le=1000, description="Length of a solution.")
        steps: int = Field(
            default=128, ge=1, le=10_000, description="Steps of a solution; time / steps is best a power of two."
        )
        tolerance: float = Field(default=1e-6, ge=1e-12, lt=1, description="Tolerance of adaptive steps.")
        hidden: int = Field(default=32, ge=1, le=4096, description="Hidden units of the network.")

    def measure(self, parameters: Parameters) -> Measure:
        """Set the unit to a solution or a training step; for `work: adaptive`, use the protocol `observe`."""
        if parameters.work == "adaptive":
            return Measure(protocol="observe", unit="solution")
        if parameters.work == "solve":
            return Measure(unit="solution")
        return Measure(unit="step", differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw angles and speeds z (batch, 2); for `work: train` also weights, with the pendulums' ends as targets."""
        import numpy as np

        p = parameters
        z = rng.uniform(-1.5, 1.5, (p.batch, 2))
        if p.work != "train":
            return Arrays(state={"z": z})
        weights = {
            "w1": rng.standard_normal((2, p.hidden)),
            "b1": rng.standard_normal(p.hidden),
            "w2": 0.1 * rng.standard_normal((p.hidden, 2)) / np.sqrt(p.hidden),
            "b2": np.zeros(2),
        }
        targets = kutta.solve(lambda z: kutta.pendulum(np, z), z, p.time / TARGET_STEPS, TARGET_STEPS)
        return Arrays(state=weights, batches=({"z": z, "targets": targets},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Solve, or train with the chain rule written out, in NumPy."""
        import numpy as np

        h = parameters.time / parameters.steps
        if parameters.work == "solve":
            return {"z": kutta.solve(lambda z: kutta.pendulum(np, z), arrays.state["z"], h, units * parameters.steps)}
        weights, batch = dict(arrays.state), arrays.batches[0]
        for _ in range(units):
            gradients = kutta.gradients(weights, batch, h, parameters.steps)
            weights = {name: weights[name] - RATE * gradients[name] for name in weights}
        return weights

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count 19 operations for each number and step: 16 of the rule, 3 of the pendulum; z is read and written.

        Training takes four evaluations in a step, each with 30 operations for each hidden unit: 24 of two products
        forward and four backward, 6 of biases, tanh and their gradients. The rule takes 36 operations for each number
        and step: 16 forward, 20 backward. Intermediate results count no bytes, because they stay in caches.
        """
        p = parameters
        numbers = 2.0 * p.batch
        if p.work == "solve":
            return Cost(flops=19 * numbers * p.steps, bytes=2 * numbers * float_bytes)
        evaluations = 4.0 * p.batch * p.steps
        return Cost(
            flops=30 * p.hidden * evaluations + 36 * numbers * p.steps,
            bytes=2 * (5.0 * p.hidden + numbers) * float_bytes,
        )

    def picture(self, parameters: Parameters, rng: "Generator") -> Picture | None:
        """Draw pendulums in the plane of angle and speed, and the solver's error for fewer and more steps."""
        if parameters.work != "solve" or parameters.batch > MAXIMUM_DRAWN:
            return None
        z = self.arrays(parameters, rng).state["z"][:DRAWN]
        return kutta.picture(z, parameters.time, parameters.steps)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write out the rule, in a lax.scan over the steps."""
        import jax
        import jax.numpy as jnp

        h = parameters.time / parameters.steps

        def solution(z: Any, weights: Any) -> Any:
            """Return z at the end: the scan makes all steps of the rule."""
            field = kutta.vector_field(jnp, weights)
            return jax.lax.scan(lambda z, _: (kutta.step(field, z, h), None), z, length=parameters.steps)[0]

        return _jax_program(parameters, arrays, tools, solution)

    def jax_diffrax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call diffrax.diffeqsolve for one z, mapped over the batch with jax.vmap; z is kept at every step."""
        import diffrax
        import jax
        import jax.numpy as jnp

        controller = diffrax.StepTo(ts=jnp.linspace(0, parameters.time, parameters.steps + 1))
        # By default the backward pass has few checkpoints, and computes steps several times to reach the others.
        adjoint = diffrax.RecursiveCheckpointAdjoint(checkpoints=parameters.steps)
        term = diffrax.ODETerm(lambda _t, z, weights: kutta.vector_field(jnp, weights)(z))

        def one(z: Any, weights: Any) -> Any:
            """Solve for one z (2,)."""
            solution = diffrax.diffeqsolve(
                term, kutta.diffrax_solver(), 0.0, parameters.time, None, z, weights,
                stepsize_controller=controller, adjoint=adjoint, max_steps=parameters.steps,
            )  # fmt: skip
            return solution.ys[-1]

        return _jax_program(parameters, arrays, tools, jax.vmap(one, (0, None)))

    @variant("jax/diffrax-adaptive")
    def diffrax_adaptive(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call diffrax.diffeqsolve with Dopri5 and a PIDController for one z, mapped over the batch."""
        import diffrax
        import jax
        import jax.numpy as jnp

        controller = diffrax.PIDController(rtol=parameters.tolerance, atol=parameters.tolerance)
        term = diffrax.ODETerm(lambda _t, z, _: kutta.pendulum(jnp, z))

        def one(z: Any) -> tuple[Any, Any]:
            """Solve for one z (2,); return its end, and the number of steps."""
            solution = diffrax.diffeqsolve(
                term, diffrax.Dopri5(), 0.0, parameters.time, None, z, stepsize_controller=controller
            )
            return solution.ys[-1], solution.stats["num_steps"]

        return _adaptive_program(parameters, arrays, tools, jax.jit(jax.vmap(one)))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write out the rule, in a Python loop over the steps."""
        import torch

        h = parameters.time / parameters.steps

        def solution(z: Any, weights: Any) -> Any:
            """Return z at the end, by a Python loop."""
            return kutta.solve(kutta.vector_field(torch, weights), z, h, parameters.steps)

        return _torch_program(parameters, arrays, tools, solution)

    @variant("pytorch/compile-step", in_mode="compile")
    def compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one step of the rule with torch.compile, and call it in a Python loop over the steps."""
        import torch

        h = parameters.time / parameters.steps
        compiled = tools.in_mode(
            lambda z, weights: kutta.step(kutta.vector_field(torch, weights), z, h), one_program=True
        )

        def solution(z: Any, weights: Any) -> Any:
            """Return z at the end, by calls of the compiled step."""
            for _ in range(parameters.steps):
                z = compiled(z, weights)
            return z

        return replace(_torch_program(parameters, arrays, tools, solution), placed=True)

    def pytorch_torchdiffeq(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torchdiffeq.odeint with the method rk4 for the whole batch."""
        import torch
        from torchdiffeq import odeint

        options = {"step_size": parameters.time / parameters.steps}

        def solution(z: Any, weights: Any) -> Any:
            """Return z at the end, for the whole batch."""
            field = kutta.vector_field(torch, weights)
            times = torch.tensor([0.0, parameters.time], dtype=z.dtype, device=z.device)
            return odeint(lambda _t, z: field(z), z, times, method="rk4", options=options)[-1]

        return _torch_program(parameters, arrays, tools, solution)

    @variant("pytorch/torchdiffeq-adaptive")
    def torchdiffeq_adaptive(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torchdiffeq.odeint with dopri5, which chooses the same steps for the whole batch."""
        import torch
        from torchdiffeq import odeint

        tolerances = {"rtol": parameters.tolerance, "atol": parameters.tolerance}

        def solution(z: Any) -> tuple[Any, Any]:
            """Solve for the whole batch; return its end, and the number of steps, of six evaluations each."""
            evaluations = 0

            def rates(_t: Any, z: Any) -> Any:
                """Return dz/dt, and count the evaluation."""
                nonlocal evaluations
                evaluations += 1
                return kutta.pendulum(torch, z)

            times = torch.tensor([0.0, parameters.time], dtype=z.dtype, device=z.device)
            ends = odeint(rates, z, times, method="dopri5", options={"dtype": z.dtype}, **tolerances)
            return ends[-1], torch.tensor((evaluations - FIRST_EVALUATIONS) // 6)

        return _adaptive_program(parameters, arrays, tools, solution)


def _jax_program(parameters: NeuralOde.Parameters, arrays: Arrays, tools: Tools, solution: Solve) -> Program:
    """Return a program for JAX that solves, or trains through the solver."""
    import jax

    def train(weights: Any, batch: Any) -> tuple[Any, None]:
        """Make a step of gradient descent."""
        gradients = jax.grad(lambda weights: ((solution(batch["z"], weights) - batch["targets"]) ** 2).mean())(weights)
        return jax.tree.map(lambda weight, gradient: weight - RATE * gradient, weights, gradients), None

    return _program(parameters, arrays, tools, solution, train)


def _torch_program(parameters: NeuralOde.Parameters, arrays: Arrays, tools: Tools, solution: Solve) -> Program:
    """Return a program for PyTorch that solves, or trains through the solver."""
    import torch

    def train(weights: Any, batch: Any) -> tuple[Any, None]:
        """Return the weights after a step of gradient descent."""
        weights = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        loss = torch.nn.functional.mse_loss(solution(batch["z"], weights), batch["targets"])
        gradients = torch.autograd.grad(loss, list(weights.values()))
        updated = zip(weights.items(), gradients, strict=True)
        return {name: weight.detach() - RATE * gradient for (name, weight), gradient in updated}, None

    return _program(parameters, arrays, tools, solution, train)


def _program(parameters: NeuralOde.Parameters, arrays: Arrays, tools: Tools, solution: Solve, train: Any) -> Program:
    """Return a program whose step moves pendulums by `solution` or, for `work: train`, is `train`.

    Raises ValueError for `work: adaptive`, which a variant with fixed steps cannot do.
    """
    if parameters.work == "adaptive":
        raise ValueError("this variant takes fixed steps: leave it out, or set work: solve")
    if parameters.work == "solve":
        return Program(
            state=tools.put(arrays.state["z"]),
            step=lambda z, _: (solution(z, None), None),
            export=lambda z, _: {"z": z},
        )
    return Program(state=tools.put(dict(arrays.state)), step=train, batches=tools.put(arrays.batches))


def _adaptive_program(
    parameters: NeuralOde.Parameters, arrays: Arrays, tools: Tools, solution: Callable[[Any], tuple[Any, Any]]
) -> Program:
    """Return a program that observes `solution`, which maps z to its end and the number of steps.

    Raises ValueError unless the case has `work: adaptive`.
    """
    import numpy as np

    if parameters.work != "adaptive":
        raise ValueError("this variant takes adaptive steps: leave it out, or set work: adaptive")

    def step(z: Any, _: Any) -> tuple[Any, Any]:
        """Solve once; return the end as the next state, and end and steps as the output."""
        end, steps = solution(z)
        return end, {"end": end, "steps": steps}

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        """Return the steps and errors of the only call; nothing if it failed."""
        [out] = outs
        if out is None:
            return {}
        errors = kutta.errors(arrays.state["z"], np.asarray(out["end"], np.float64), parameters.time)
        return {"triedSteps": int(np.max(out["steps"])), **errors}

    return Program(state=tools.put(arrays.state["z"]), step=step, placed=True, observe=observe)

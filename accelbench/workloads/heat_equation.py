"""Measure an explicit step of the heat equation, with the five-point stencil written in several ways."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.picture import Panel, Picture
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

STENCIL = ((0.0, 1.0, 0.0), (1.0, -4.0, 1.0), (0.0, 1.0, 0.0))
"""The five-point stencil as the kernel of a convolution."""
MAXIMUM_DRAWN_UPDATES = 2**24
"""Largest number of updates of points in a field of a picture; a picture needs about twenty fields, a few seconds."""
POINTS = 9
"""How many points of an eigenmode's decay a picture shows."""

Step = Callable[[Any, Any], tuple[Any, None]]
"""Function (u, batch) -> (u a time step later, None)."""


class HeatEquation(Workload):
    """Compute u <- u + r (u_north + u_south + u_west + u_east - 4 u) inside of a square whose edges keep their values.

    Row 48 of the claims: discretisations of partial differential equations "massively benefit from JIT". It is the
    explicit method for u_t = a (u_xx + u_yy) with r = a dt / h^2, stable up to r = 1/4. Each framework's community
    writes the stencil in several ways, and their times differ by more than those of the frameworks: shifted slices
    whose change is padded with zeros, an update of the inner points, rolled arrays with a mask, a convolution. The
    field starts at random; later values stay between the smallest and the largest of the start.
    """

    name = "heat-equation"
    moves_once = True
    modes = {
        "jax": ("jit", "op-by-op"),
        "jax_set": ("jit",),
        "jax_roll": ("jit",),
        "jax_convolution": ("jit",),
        "pytorch": ("eager", "compile"),
        "pytorch_pad": ("eager", "compile"),
        "pytorch_roll": ("eager", "compile"),
        "pytorch_convolution": ("eager",),
        "numpy": ("eager",),
    }

    class Parameters(WorkloadParameters):
        """Set the grid and the size of a step."""

        size: int = Field(
            default=256, ge=4, le=16_384, description="Points along a side of the square, with its edges."
        )
        ratio: float = Field(default=0.2, gt=0, le=0.25, description="r = a dt / h^2.")
        steps: int = Field(default=50, ge=1, le=10_000, description="Time steps in a call of jax/scan; else one.")

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after five steps, when points depend on others five away."""
        del parameters
        return Measure(parity_units=5)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw a field u (size, size) uniformly from 0 to 1."""
        return Arrays(state={"u": rng.uniform(0, 1, (parameters.size, parameters.size))})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Make `units` steps in NumPy."""
        u = arrays.state["u"].copy()
        for _ in range(units):
            u[1:-1, 1:-1] += parameters.ratio * _laplacian(u)
        return {"u": u}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count seven operations for each inner point: five of the stencil, product and sum; u is read and written."""
        inner_points = float(parameters.size - 2) ** 2
        return Cost(flops=7 * inner_points, bytes=2.0 * parameters.size**2 * float_bytes)

    def picture(self, parameters: Parameters, rng: "Generator") -> Picture | None:
        """Draw the field at the start and after `steps` steps, and how three eigenmodes decay."""
        import numpy as np

        n, steps = parameters.size, parameters.steps
        if n**2 * steps > MAXIMUM_DRAWN_UPDATES:
            return None
        # `stops` are the numbers of steps after which an eigenmode's amplitude is drawn.
        arrays, stops = self.arrays(parameters, rng), np.unique(np.linspace(0, steps, POINTS).astype(int))
        later = self.reference(parameters, arrays, steps)["u"]
        curves, points = {}, {}
        for waves in sorted({1, n // 16 or 1, n // 8 or 1}):
            mode = Arrays(state={"u": eigenmode(n, waves)})
            ends = [np.abs(self.reference(parameters, mode, int(stop))["u"]).max() for stop in stops]
            points[f"{waves} half waves"] = (stops, np.array(ends) / np.abs(mode.state["u"]).max())
            curves[f"{waves} half waves, closed form"] = (stops, decay(parameters, waves) ** stops)
        return Picture(
            caption=(
                f"The field at the start and {steps} steps later; and eigenmodes of the grid, sin(k pi x) sin(k pi y), "
                "which each step multiplies by a number that is known in closed form (lines)."
            ),
            panels=(
                Panel("u at the start", image=arrays.state["u"], colours="u"),
                Panel(f"u after {steps} steps", image=later, colours="u"),
                Panel("Decay of eigenmodes", x="step", y="amplitude", curves=curves, points=points, legend=False),
            ),
        )

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Pad the change of the inner points with zeros, and add it."""
        return _program(arrays, tools, _jax_pad(parameters.ratio))

    @variant("jax/scan")
    def scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run `steps` time steps, in which the change is padded with zeros, in one compiled lax.scan."""
        return _scan(parameters, arrays, tools, _jax_pad(parameters.ratio))

    def jax_set(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Update the inner points with u.at[1:-1, 1:-1].add; the field is donated, so that it is changed in place."""
        # The other steps read a point's neighbours while they write: there XLA would copy a donated field first.
        return replace(_program(arrays, tools, _jax_set(parameters.ratio)), donate=True)

    @variant("jax/scan-set")
    def scan_set(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run `steps` time steps with u.at[1:-1, 1:-1].add in one compiled lax.scan."""
        return _scan(parameters, arrays, tools, _jax_set(parameters.ratio))

    def jax_roll(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Roll the field by one point in each direction, and keep the edges with a mask."""
        import jax.numpy as jnp

        inside = tools.put(_inside(parameters.size))

        def step(u: Any, inside: Any) -> tuple[Any, None]:
            """Compute the change of all points, and discard it at the edges."""
            neighbours = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
            return jnp.where(inside, u + parameters.ratio * (neighbours - 4 * u), u), None

        # Passed as a batch, the mask is an argument of the step, and no constant of a compiled step.
        return replace(_program(arrays, tools, step), batches=(inside,))

    def jax_convolution(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Convolve the field with the stencil."""
        import jax
        import jax.numpy as jnp

        stencil = tools.put(_stencil())

        def step(u: Any, stencil: Any) -> tuple[Any, None]:
            """Add the change of the inner points, padded with zeros."""
            laplacian = jax.lax.conv(u[None, None], stencil[None, None], (1, 1), "VALID")[0, 0]
            return u + jnp.pad(parameters.ratio * laplacian, 1), None

        # Passed as a batch, the stencil is an argument of the step, and no constant of a compiled step.
        return replace(_program(arrays, tools, step), batches=(stencil,))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Update the inner points in place, as in NumPy."""
        return _program(arrays, tools, _in_place(parameters.ratio))

    def pytorch_pad(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Pad the change of the inner points with zeros, and add it; nothing changes in place."""
        from torch.nn.functional import pad

        def step(u: Any, _: Any) -> tuple[Any, None]:
            """Add the change of the inner points, padded with zeros."""
            return u + pad(parameters.ratio * _laplacian(u), (1, 1, 1, 1)), None

        return _program(arrays, tools, step)

    def pytorch_roll(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Roll the field by one point in each direction, and keep the edges with a mask."""
        import torch

        inside = tools.put(_inside(parameters.size))

        def step(u: Any, inside: Any) -> tuple[Any, None]:
            """Compute the change of all points, and discard it at the edges."""
            neighbours = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
            return torch.where(inside, u + parameters.ratio * (neighbours - 4 * u), u), None

        # Passed as a batch, the mask is an argument of the step, and no constant of a compiled step.
        return replace(_program(arrays, tools, step), batches=(inside,))

    def pytorch_convolution(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Convolve the field with the stencil."""
        from torch.nn.functional import conv2d, pad

        stencil = tools.put(_stencil())

        def step(u: Any, stencil: Any) -> tuple[Any, None]:
            """Add the change of the inner points, padded with zeros."""
            laplacian = conv2d(u[None, None], stencil[None, None])[0, 0]
            return u + pad(parameters.ratio * laplacian, (1, 1, 1, 1)), None

        # Passed as a batch, the stencil is an argument of the step, and no constant of a compiled step.
        return replace(_program(arrays, tools, step), batches=(stencil,))

    def numpy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Update the inner points in place."""
        return _program(arrays, tools, _in_place(parameters.ratio))


def eigenmode(size: int, waves: int) -> Array:
    """Return sin(k pi x) sin(k pi y) on the grid (size, size) for k = `waves`, 0 on the edges."""
    import numpy as np

    wave = np.sin(waves * np.pi * np.arange(size) / (size - 1))
    wave[-1] = 0.0  # the sine of a rounded k pi is not quite 0
    return np.outer(wave, wave)


def decay(parameters: HeatEquation.Parameters, waves: int) -> float:
    """Return the factor by which a step multiplies `eigenmode`: 1 - 8 r sin^2(k pi h / 2), h = 1 / (size - 1)."""
    import math

    return 1 - 8 * parameters.ratio * math.sin(waves * math.pi / (2 * (parameters.size - 1))) ** 2


def _laplacian(u: Any) -> Any:
    """Return the sum of the four neighbours less four times the point, for the inner points, in any framework."""
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def _in_place(ratio: float) -> Step:
    """Return a step that changes u in place, for PyTorch and NumPy."""

    def step(u: Any, _: Any) -> tuple[Any, None]:
        """Change the inner points of u in place."""
        u[1:-1, 1:-1] += ratio * _laplacian(u)
        return u, None

    return step


def _jax_pad(ratio: float) -> Step:
    """Return a step for JAX that pads the change of the inner points."""
    import jax.numpy as jnp

    return lambda u, _: (u + jnp.pad(ratio * _laplacian(u), 1), None)


def _jax_set(ratio: float) -> Step:
    """Return a step for JAX that updates the inner points."""
    return lambda u, _: (u.at[1:-1, 1:-1].add(ratio * _laplacian(u)), None)


def _scan(parameters: HeatEquation.Parameters, arrays: Arrays, tools: Tools, time_step: Step) -> Program:
    """Return a program that makes `steps` time steps in a call, as one lax.scan."""
    import jax

    def step(u: Any, batch: Any) -> tuple[Any, None]:
        """Make all time steps of a call."""
        return jax.lax.scan(lambda u, _: time_step(u, batch), u, length=parameters.steps)[0], None

    return replace(_program(arrays, tools, jax.jit(step)), units=parameters.steps, placed=True)


def _inside(size: int) -> Array:
    """Return True for the inner points of the grid."""
    import numpy as np

    inside = np.zeros((size, size), bool)
    inside[1:-1, 1:-1] = True
    return inside


def _stencil() -> Array:
    """Return the stencil as an array."""
    import numpy as np

    return np.array(STENCIL)


def _program(arrays: Arrays, tools: Tools, step: Step) -> Program:
    """Return a program whose state is u, and whose step is (u, batch) -> (u a step later, None)."""
    return Program(state=tools.put(arrays.state["u"]), step=step, export=lambda u, _: {"u": u})

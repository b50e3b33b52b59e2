"""Measure molecular dynamics of a Lennard-Jones liquid at constant energy, with all pairs of atoms compared."""

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

DENSITY = 0.8442
"""Atoms in a cube of side sigma; at this density and `TEMPERATURE`, the liquid is near its triple point."""
TEMPERATURE = 0.722
"""Temperature in epsilon over Boltzmann's constant."""
CUT_OFF = 2.5
"""Distance in sigma beyond which atoms do not act on each other."""
DISPLACEMENT = 0.05
"""Standard deviation, in sigma, of the atoms' distances from the sites of a lattice at the start."""
ATOMS_OF_CELL = ((0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0))
"""Positions of a cell's atoms in a face-centred cubic lattice, in sides of the cell."""
DRAWN_STEPS, MAXIMUM_DRAWN_ATOMS = 50, 300
"""Time steps in a picture, and the largest number of atoms for which a report draws one, in a few seconds."""
BINS = 80
"""Number of bins in the distribution of distances."""


class LennardJones(Workload):
    """Make a velocity Verlet step: v <- v + dt/2 F(x); x <- x + dt v; v <- v + dt/2 F(x), in units of the potential.

    Row 49 of the claims: molecular dynamics. U(r) = 4 (r^-12 - r^-6), cut off at 2.5 and shifted so that force and
    energy are continuous there; with a merely cut-off potential the energy drifts, however small dt is. The cube is
    periodic, and every atom is compared with every other one: lists of neighbours would be another algorithm. The
    motion is chaotic, but slowly: in 200 steps an error grows by about ten times. The error of the energy is
    proportional to dt^2.
    """

    name = "lennard-jones"
    modes = {
        "jax": ("jit", "op-by-op"),
        "jax_gradient": ("jit",),
        "pytorch": ("eager", "compile"),
        "pytorch_gradient": ("eager",),
        "numpy": ("eager",),
    }

    class Parameters(WorkloadParameters):
        """Set the number of atoms and the time step."""

        cells: int = Field(default=4, ge=3, le=16, description="k: 4 k^3 atoms start near the sites of a lattice.")
        dt: float = Field(default=0.004, gt=0, le=0.02, description="Time step, in sigma sqrt(m / epsilon).")
        steps: int = Field(default=100, ge=1, le=10_000, description="Time steps in a call of jax/scan; else one.")

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after five steps, before an error can grow."""
        del parameters
        return Measure(parity_units=5)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw positions x (n, 3) near a lattice and velocities v (n, 3) without total momentum; compute the forces."""
        import numpy as np

        cells = parameters.cells
        corners = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
        sites = (corners + np.array(ATOMS_OF_CELL)).reshape(-1, 3) * box(parameters) / cells
        x = sites + DISPLACEMENT * rng.standard_normal(sites.shape)
        v = np.sqrt(TEMPERATURE) * rng.standard_normal(sites.shape)
        return Arrays(state={"x": x, "v": v - v.mean(0), "f": forces(np, x, box(parameters))})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Make `units` steps in NumPy."""
        import numpy as np

        state = arrays.state
        for _ in range(units):
            state = _verlet(state, parameters.dt, lambda x: forces(np, x, box(parameters)))
        return {"x": state["x"], "v": state["v"]}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count 41 operations for each ordered pair of atoms, and 15 for each atom; x, v and f are read and written.

        A pair takes 15 for the nearest image, 5 for r^2, 4 for comparing, 11 for the force, 6 for its sum.
        """
        n = count_atoms(parameters)
        return Cost(flops=41.0 * n**2 + 15 * n, bytes=18.0 * n * float_bytes)

    def picture(self, parameters: Parameters, rng: "Generator") -> Picture | None:
        """Draw the error of the energy with dt and with dt / 2, and the distribution of distances at the end.

        None with more than `MAXIMUM_DRAWN_ATOMS` atoms, because that would take too long.
        """
        import numpy as np

        steps, n = DRAWN_STEPS, count_atoms(parameters)
        if n > MAXIMUM_DRAWN_ATOMS:
            return None
        arrays = self.arrays(parameters, rng)
        halved = parameters.model_copy(update={"dt": parameters.dt / 2})
        x, energies = trajectory(parameters, arrays.state, steps)
        _, energies_halved = trajectory(halved, arrays.state, 2 * steps)
        time, time_halved = parameters.dt * np.arange(steps + 1), halved.dt * np.arange(2 * steps + 1)
        curves = {
            f"dt = {parameters.dt:g}": (time, 1e5 * (energies - energies[0]) / n),
            f"dt = {halved.dt:g}": (time_halved, 1e5 * (energies_halved - energies_halved[0]) / n),
        }
        return Picture(
            caption=(
                f"{n} atoms: the error of the total energy falls to a quarter if dt is halved, as velocity Verlet's "
                "has to; and the distribution of distances, relative to an ideal gas."
            ),
            panels=(
                Panel(
                    "Error of the energy",
                    x="time in sigma sqrt(m / epsilon)",
                    y="change per atom in 1e-5 epsilon",
                    curves=curves,
                ),
                Panel(
                    f"Distances after {steps} steps",
                    x="r in sigma",
                    y="g(r)",
                    curves={"g(r)": _distribution(x, box(parameters))},
                ),
            ),
        )

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the forces by their formula."""
        return _program(parameters, arrays, tools, _jax_forces(parameters))

    @variant("jax/scan")
    def scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run `steps` time steps in one compiled lax.scan."""
        import jax

        program = _program(parameters, arrays, tools, _jax_forces(parameters))

        def step(state: Any, batch: Any) -> tuple[Any, None]:
            """Make all time steps of a call."""
            return jax.lax.scan(lambda state, _: program.step(state, batch), state, length=parameters.steps)[0], None

        return replace(program, step=jax.jit(step), units=parameters.steps, placed=True)

    def jax_gradient(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the energy by its formula, and the forces as its negative gradient by jax.grad."""
        import jax
        import jax.numpy as jnp

        gradient = jax.grad(lambda x: energy(jnp, x, box(parameters)))
        return _program(parameters, arrays, tools, lambda x: -gradient(x))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the forces by their formula."""
        import torch

        return _program(parameters, arrays, tools, lambda x: forces(torch, x, box(parameters)))

    def pytorch_gradient(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the energy by its formula, and the forces as its negative gradient by autograd."""
        import torch

        def force(x: Any) -> Any:
            """Return the negative gradient of the energy, by autograd."""
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                (gradient,) = torch.autograd.grad(energy(torch, x, box(parameters)), x)
            return -gradient

        return _program(parameters, arrays, tools, force)

    def numpy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the forces by their formula."""
        import numpy as np

        return _program(parameters, arrays, tools, lambda x: forces(np, x, box(parameters)))


def count_atoms(parameters: LennardJones.Parameters) -> int:
    """Return the number of atoms: four in each cell."""
    return 4 * parameters.cells**3


def box(parameters: LennardJones.Parameters) -> float:
    """Return the side of the periodic cube, in sigma."""
    return float((count_atoms(parameters) / DENSITY) ** (1 / 3))


def forces(xp: Any, x: Any, side: float) -> Any:
    """Return the force on each atom at x (n, 3) in a cube with this side: -dU/dr, shifted to 0 at the cut-off.

    `xp` is the module of the framework's functions: numpy, jax.numpy or torch.
    """
    displacements, near, square = _near_pairs(xp, x, side)
    inverse = 1 / square
    sixth = inverse * inverse * inverse  # r^-6
    over_r = (48 * sixth - 24) * sixth * inverse - _force(CUT_OFF) * xp.sqrt(inverse)  # force / r
    return (xp.where(near, over_r, 0.0)[..., None] * displacements).sum(1)


def energy(xp: Any, x: Any, side: float) -> Any:
    """Return the potential energy of all pairs, of which `forces` is the negative gradient."""
    _, near, square = _near_pairs(xp, x, side)
    inverse = 1 / square
    sixth = inverse * inverse * inverse  # r^-6
    at_cut_off = 4 * (CUT_OFF**-12 - CUT_OFF**-6)
    potential = 4 * (sixth - 1) * sixth - at_cut_off + _force(CUT_OFF) * (xp.sqrt(square) - CUT_OFF)
    return xp.where(near, potential, 0.0).sum() / 2  # the sum has each pair twice


def total_energy(state: NamedArrays, side: float) -> float:
    """Return the kinetic and potential energy of all atoms, in epsilon."""
    import numpy as np

    return float(energy(np, state["x"], side) + (state["v"] ** 2).sum() / 2)


def trajectory(parameters: LennardJones.Parameters, state: NamedArrays, steps: int) -> tuple[Array, Array]:
    """Make `steps` steps in NumPy; return the last positions, and the total energy before and after each step."""
    import numpy as np

    side = box(parameters)
    energies = [total_energy(state, side)]
    for _ in range(steps):
        state = _verlet(state, parameters.dt, lambda x: forces(np, x, side))
        energies.append(total_energy(state, side))
    return state["x"], np.array(energies)


def _near_pairs(xp: Any, x: Any, side: float) -> tuple[Any, Any, Any]:
    """Return each pair's displacement (n, n, 3) between nearest images, if it is within the cut-off, and r^2.

    For pairs beyond the cut-off, and for an atom and itself, r^2 is replaced by 1: nothing overflows, and no gradient
    is NaN.
    """
    displacements = x[:, None] - x[None]
    displacements = displacements - side * xp.round(displacements / side)
    square = (displacements * displacements).sum(-1)
    near = (square < CUT_OFF**2) & (square > 0)
    return displacements, near, xp.where(near, square, 1.0)


def _force(r: float) -> float:
    """Return the force -dU/dr of the potential without a cut-off at the distance r."""
    return float(48 * r**-13 - 24 * r**-7)


def _verlet(state: Any, dt: float, force: Any) -> dict[str, Any]:
    """Make a step of velocity Verlet; the state has positions x, velocities v and forces f."""
    v = state["v"] + dt / 2 * state["f"]
    x = state["x"] + dt * v
    f = force(x)
    return {"x": x, "v": v + dt / 2 * f, "f": f}


def _jax_forces(parameters: LennardJones.Parameters) -> Any:
    """Return the function from positions to forces for JAX."""
    import jax.numpy as jnp

    return lambda x: forces(jnp, x, box(parameters))


def _distribution(x: Array, side: float) -> tuple[Array, Array]:
    """Return distances r up to half of the side, and g(r): the number of pairs at r relative to an ideal gas."""
    import numpy as np

    displacements = x[:, None] - x[None]
    distances = np.sqrt(((displacements - side * np.round(displacements / side)) ** 2).sum(-1))
    counts, edges = np.histogram(distances[~np.eye(len(x), dtype=bool)], BINS, (0.0, side / 2))
    shells = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
    return (edges[1:] + edges[:-1]) / 2, counts / (len(x) * shells * (len(x) / side**3))


def _program(parameters: LennardJones.Parameters, arrays: Arrays, tools: Tools, force: Any) -> Program:
    """Return a program whose step is a step of velocity Verlet; `force` maps positions to forces."""

    def step(state: Any, _: Any) -> tuple[Any, None]:
        return _verlet(state, parameters.dt, force), None

    return Program(
        state=tools.put(dict(arrays.state)), step=step, export=lambda state, _: {"x": state["x"], "v": state["v"]}
    )

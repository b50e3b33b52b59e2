"""Measure photometric stereo: the shape of an object from images under several lights, fitted by L-BFGS."""

import math
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

RADIUS = 0.95
"""Radius of the disc of pixels, in radii of the sphere: nearer to the sphere's rim, too few lights reach a pixel."""
HEIGHT = math.radians(60)
"""Angle of the lights above the plane of the image, in radians."""
TARGET = 1e-6
"""Mean squared error of all pixels at which a fit ends; pixels are between 0 and 1."""
ITERATIONS = 200
"""Maximum iterations of L-BFGS; about 30 are enough."""
MAXIMUM_DRAWN_SIZE = 512
"""Largest size of an image for which a report draws a picture."""


class PhotometricStereo(Workload):
    """Find b = albedo x normal of each pixel of a sphere, so that max(0, light . b) is its brightness in each image.

    Row 47 of the claims: "15x (3 minutes to 12 seconds per scene on an A100)" over NumPy. A step is a whole fit: L-BFGS
    from b = (0, 0, 1/2), until the mean squared error is at most 1e-6. The frameworks' own L-BFGS differ in line search
    and tolerance, so equal numbers of iterations or equal tolerances would not be equal work; instead all fits end at
    the same error. Every b with an error that small is right, and is replaced by the solution in closed form before the
    comparison: least squares over the lights that reach the pixel. numpy/pixel-by-pixel and numpy/normal-equations
    compute this solution directly.
    """

    name = "photometric-stereo"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}
    libraries = {"jax": ("optax",), "numpy": ("scipy.optimize",)}

    class Parameters(WorkloadParameters):
        """Set the size of the scene."""

        size: int = Field(default=64, ge=4, le=4096, description="Rows and columns of an image.")
        lights: int = Field(default=12, ge=8, le=256, description="Images, each under a light of its own.")

    def measure(self, parameters: Parameters) -> Measure:
        """Make one scene the unit of work, and declare that a step computes gradients."""
        del parameters
        return Measure(unit="scene", differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw albedos and lights (lights, 3); return lights, images (lights, pixels) and a start (pixels, 3)."""
        import numpy as np

        normals = normals_of_sphere(parameters)
        # Lights at equal distances on a circle, which is rotated by a random angle.
        angles = 2 * np.pi * (np.arange(parameters.lights) + rng.uniform(-0.2, 0.2)) / parameters.lights
        horizontal = np.cos(HEIGHT) * np.stack([np.cos(angles), np.sin(angles)], 1)
        lights = np.concatenate([horizontal, np.full((parameters.lights, 1), np.sin(HEIGHT))], 1)
        albedos = rng.uniform(0.3, 0.9, (len(normals), 1))
        images = np.maximum(lights @ (albedos * normals).T, 0)
        start = np.tile([0.0, 0.0, 0.5], (len(normals), 1))
        return Arrays(state={"start": start}, batches=({"lights": lights, "images": images},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Solve the least squares over the lights that reach each pixel."""
        del parameters, units
        return {"b": solve(arrays.batches[0])}

    def canonical(self, parameters: Parameters, arrays: Arrays, outputs: NamedArrays) -> NamedArrays:
        """Replace b by the solution in closed form if the error of b is small enough; otherwise leave b unchanged."""
        import numpy as np

        del parameters
        batch = arrays.batches[0]
        has_reached = squared_error(np, outputs["b"], batch) <= 1.01 * TARGET * batch["images"].size  # 1 %: rounding
        return {"b": solve(batch)} if has_reached else outputs

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the least squares in closed form: 21 operations for each number of an image, which is read once."""
        numbers = float(parameters.lights * len(normals_of_sphere(parameters)))
        return Cost(flops=21 * numbers, bytes=numbers * float_bytes)

    def picture(self, parameters: Parameters, rng: "Generator") -> Picture | None:
        """Draw one of the images, and the normals and albedos that are computed from all of them."""
        import numpy as np

        if parameters.size > MAXIMUM_DRAWN_SIZE:
            return None
        batch, inside = self.arrays(parameters, rng).batches[0], _disc(parameters)
        b = solve(batch)
        albedos = np.sqrt((b**2).sum(1))

        def image(pixels: Array, background: float) -> Array:
            """Return an image with these pixels in the disc, and `background` outside of it."""
            drawn = np.full((*inside.shape, *pixels.shape[1:]), background)
            drawn[inside] = pixels
            return drawn

        return Picture(
            caption=(
                f"One of {parameters.lights} images of a sphere with random albedos, and what follows from all. "
                "Red, green and blue of a normal are its components, from -1 to 1."
            ),
            panels=(
                Panel("Image under the first light", image=image(batch["images"][0], np.nan), colours="brightness"),
                # Components of a normal from 0 to 1 as red, green and blue; an opacity of 1, outside of the disc 0.
                Panel("Normals", image=image(np.insert((b / albedos[:, None] + 1) / 2, 3, 1.0, 1), 0.0)),
                Panel("Albedos", image=image(albedos, np.nan), colours="albedo"),
            ),
        )

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use optax.lbfgs with its line search, in a lax.while_loop."""
        import jax
        import jax.numpy as jnp
        import optax

        del parameters
        optimizer = optax.lbfgs()

        def step(start: Any, batch: Any) -> tuple[Any, Any]:
            """Fit b to the images."""

            def loss(b: Any) -> Any:
                return squared_error(jnp, b, batch)

            value_and_gradient = optax.value_and_grad_from_state(loss)  # reuses what the line search has computed

            def goes_on(state: Any) -> Any:
                """Return True while the error is above the target, and iterations are left."""
                _b, _optimizer, value, iteration = state
                return (value > TARGET * batch["images"].size) & (iteration < ITERATIONS)

            def iterate(state: Any) -> Any:
                """Make one iteration of L-BFGS."""
                b, optimizer_state, _value, iteration = state
                value, gradient = value_and_gradient(b, state=optimizer_state)
                updates, optimizer_state = optimizer.update(
                    gradient, optimizer_state, b, value=value, grad=gradient, value_fn=loss
                )
                b = optax.apply_updates(b, updates)
                return b, optimizer_state, optax.tree_utils.tree_get(optimizer_state, "value"), iteration + 1

            first = (start, optimizer.init(start), loss(start), 0)
            return start, jax.lax.while_loop(goes_on, iterate, first)[0]

        return _program(arrays, tools, step)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.optim.LBFGS without line search, its default; stop it at the target, after any iteration.

        It remembers up to 100 iterations, by default; optax.lbfgs and SciPy remember 10.
        """
        import torch

        del parameters

        def step(start: Any, batch: Any) -> tuple[Any, Any]:
            """Fit b to the images."""
            b = start.clone().requires_grad_()
            optimizer = torch.optim.LBFGS([b], max_iter=1, tolerance_grad=0, tolerance_change=0)

            def closure() -> Any:
                """Compute the loss and its gradient, as torch.optim.LBFGS requires."""
                optimizer.zero_grad()
                loss = squared_error(torch, b, batch)
                loss.backward()
                return loss

            for _ in range(ITERATIONS):
                before = b.detach().clone()
                if (
                    float(optimizer.step(closure).detach()) <= TARGET * batch["images"].numel()
                ):  # `step` returns the loss of `before`
                    return start, before
            return start, b.detach()

        return _program(arrays, tools, step)

    @variant("numpy/scipy")
    def scipy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use L-BFGS-B of scipy.optimize.minimize, with the gradient written out in NumPy."""
        import numpy as np
        from scipy.optimize import minimize

        del parameters

        def step(start: Any, batch: Any) -> tuple[Any, Any]:
            """Fit b to the images."""
            lights, images = batch["lights"], batch["images"]

            def loss_and_gradient(flat: Any) -> tuple[Any, Any]:
                """Return the squared error of b, given as a flat array, and its gradient."""
                b = flat.reshape(start.shape).astype(start.dtype)
                bright = lights @ b.T
                error = np.maximum(bright, 0) - images
                gradient = 2 * (np.where(bright > 0, error, 0).T @ lights)
                return np.sum(error * error), gradient.ravel()

            def stop(intermediate_result: Any) -> None:
                """End the fit when the error is small enough."""
                if intermediate_result.fun <= TARGET * images.size:
                    raise StopIteration

            options = {"maxiter": ITERATIONS, "ftol": 0.0, "gtol": 0.0}
            fitted = minimize(
                loss_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options
            )
            return start, fitted.x.reshape(start.shape).astype(start.dtype)

        return _program(arrays, tools, step, placed=True)

    @variant("numpy/pixel-by-pixel")
    def pixel_by_pixel(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call numpy.linalg.lstsq for each pixel, as many write it: the solution in closed form, in a Python loop."""
        import numpy as np

        del parameters

        def step(start: Any, batch: Any) -> tuple[Any, Any]:
            """Solve for the b of each pixel."""
            b = np.empty_like(start)
            for pixel, brightness in enumerate(batch["images"].T):
                lit = brightness > 0
                b[pixel] = np.linalg.lstsq(batch["lights"][lit], brightness[lit], rcond=None)[0]
            return start, b

        return _program(arrays, tools, step, placed=True)

    @variant("numpy/normal-equations")
    def normal_equations(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Solve the normal equations of all pixels at once: the solution in closed form, without a loop."""
        del parameters
        return _program(arrays, tools, lambda start, batch: (start, solve(batch)), placed=True)


def squared_error(xp: Any, b: Any, batch: Any) -> Any:
    """Return the squared error of the brightness, summed over pixels and images; b is (pixels, 3).

    `xp` is the module of the framework's functions: numpy, jax.numpy or torch.
    """
    bright = batch["lights"] @ b.T
    error = xp.where(bright > 0, bright, 0.0) - batch["images"]
    return (error * error).sum()


def solve(batch: NamedArrays) -> Array:
    """Return the b (pixels, 3) of least squares over the lights that reach each pixel, by the normal equations."""
    import numpy as np

    lights, images = batch["lights"], batch["images"]
    lit = np.where(images > 0, np.ones_like(images), 0.0)  # (lights, pixels)
    outer_products = (lights[:, :, None] * lights[:, None, :]).reshape(-1, 9)
    matrices = (lit.T @ outer_products).reshape(-1, 3, 3)
    b: Array = np.linalg.solve(matrices, (images.T @ lights)[:, :, None])[:, :, 0]
    return b


def _disc(parameters: PhotometricStereo.Parameters) -> Array:
    """Return True for the pixels (size, size) that show the sphere."""
    y, x = _grid(parameters)
    inside: Array = x**2 + y**2 < RADIUS**2
    return inside


def normals_of_sphere(parameters: PhotometricStereo.Parameters) -> Array:
    """Return the sphere's normal (pixels, 3) in each pixel of the disc."""
    import numpy as np

    y, x = _grid(parameters)
    inside = _disc(parameters)
    return np.stack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 0))], -1)[inside]


def _grid(parameters: PhotometricStereo.Parameters) -> tuple[Array, Array]:
    """Return the coordinates y and x (size, size) of the pixels, in radii of the sphere."""
    import numpy as np

    positions = (np.arange(parameters.size) + 0.5) / parameters.size * 2 - 1
    y, x = np.meshgrid(positions, positions, indexing="ij")
    return y, x


def _program(arrays: Arrays, tools: Tools, step: Any, *, placed: bool = False) -> Program:
    """Return a program whose step is (start, batch) -> (start, b)."""
    return Program(
        state=tools.put(arrays.state["start"]),
        step=step,
        batches=tools.put(arrays.batches),
        placed=placed,
        export=lambda _, b: {"b": b},
    )

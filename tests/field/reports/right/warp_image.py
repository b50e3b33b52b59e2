"""Warp an image by a random displacement, with linear interpolation: map_coordinates against grid_sample.

Outside of the image everything is 0. grid_sample wants coordinates from -1 to 1, the centres of the corner pixels.
"""


def arrays(rng, size: int = 128):
    """Draw an image and displacements of two pixels or so."""
    return {
        "image": rng.random((size, size)),
        "dy": 2 * rng.standard_normal((size, size)),
        "dx": 2 * rng.standard_normal((size, size)),
    }


def jax(image, dy, dx):
    """Use jax.scipy.ndimage."""
    import jax.numpy as jnp
    from jax.scipy.ndimage import map_coordinates

    height, width = image.shape
    y, x = jnp.meshgrid(jnp.arange(height), jnp.arange(width), indexing="ij")
    return map_coordinates(image, [y + dy, x + dx], order=1, mode="constant", cval=0.0)


def pytorch(image, dy, dx):
    """Use grid_sample, with x before y."""
    import torch
    import torch.nn.functional as F

    height, width = image.shape
    y, x = torch.meshgrid(
        torch.arange(height, device=image.device), torch.arange(width, device=image.device), indexing="ij"
    )
    grid = torch.stack([2 * (x + dx) / (width - 1) - 1, 2 * (y + dy) / (height - 1) - 1], dim=-1)
    warped = F.grid_sample(image[None, None], grid[None], mode="bilinear", padding_mode="zeros", align_corners=True)
    return warped[0, 0]

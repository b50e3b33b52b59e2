"""Mark the samples of each row that lie within two robust sigmas of the row's median.

The robust sigma is 0.7413 times the distance of the quartiles. Outputs: the mask and the sigmas.
"""

COEFFICIENT = 0.7413
SIGMAS = 2.0


def arrays(rng, rows: int = 1000, times: int = 64):
    """Draw likelihoods around 10, a tenth of them outliers."""
    lh = 10 + rng.standard_normal((rows, times))
    lh = lh + np_outliers(rng, (rows, times))
    return {"lh": lh}


def np_outliers(rng, shape):
    """Draw large numbers at one of ten places, and 0 elsewhere."""
    return (rng.random(shape) < 0.1) * rng.normal(0, 30, shape)


def jax(lh):
    """Use jnp.percentile."""
    import jax.numpy as jnp

    lower, median, upper = jnp.percentile(lh, jnp.array([25.0, 50.0, 75.0]), axis=1, keepdims=True)
    sigma = COEFFICIENT * (upper - lower)
    inside = (lh > median - SIGMAS * sigma) & (lh < median + SIGMAS * sigma)
    return {"inside": inside, "sigma": sigma[:, 0]}


def pytorch(lh):
    """Use torch.quantile."""
    import torch

    levels = torch.tensor([0.25, 0.5, 0.75], dtype=lh.dtype, device=lh.device)
    lower, median, upper = torch.quantile(lh, levels, dim=1, keepdim=True)
    sigma = COEFFICIENT * (upper - lower)
    inside = (lh > median - SIGMAS * sigma) & (lh < median + SIGMAS * sigma)
    return {"inside": inside, "sigma": sigma[:, 0]}

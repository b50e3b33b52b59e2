"""Find principal components by a singular value decomposition; each component's largest entry is made positive.

A notebook cell.
"""

import jax.numpy as jnp
import numpy as np
import torch

import accelbench

COMPONENTS = 5


def numpy_pca(x):
    x = x - x.mean(axis=0)
    _, s, vh = np.linalg.svd(x, full_matrices=False)
    vh = vh[:COMPONENTS]
    largest = np.abs(vh).argmax(axis=1)
    vh = vh * np.sign(vh[np.arange(COMPONENTS), largest])[:, None]
    return {"components": vh, "scores": x @ vh.T, "variance": s[:COMPONENTS] ** 2 / (len(x) - 1)}


def jax_pca(x):
    x = x - x.mean(axis=0)
    _, s, vh = jnp.linalg.svd(x, full_matrices=False)
    vh = vh[:COMPONENTS]
    largest = jnp.abs(vh).argmax(axis=1)
    vh = vh * jnp.sign(vh[jnp.arange(COMPONENTS), largest])[:, None]
    return {"components": vh, "scores": x @ vh.T, "variance": s[:COMPONENTS] ** 2 / (len(x) - 1)}


def torch_pca(x):
    x = x - x.mean(dim=0)
    _, s, vh = torch.linalg.svd(x, full_matrices=False)
    vh = vh[:COMPONENTS]
    largest = vh.abs().argmax(dim=1)
    vh = vh * torch.sign(vh[torch.arange(COMPONENTS), largest])[:, None]
    return {"components": vh, "scores": x @ vh.T, "variance": s[:COMPONENTS] ** 2 / (len(x) - 1)}


def draw(rng):
    """Draw rows whose features are mixed, with falling standard deviations."""
    mixing, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    return {"x": rng.standard_normal((600, 30)) * 0.75 ** np.arange(30) @ mixing + rng.standard_normal(30)}


if __name__ == "__main__":
    found = accelbench.compare(pytorch=torch_pca, jax=jax_pca, reference=numpy_pca, arrays=draw)
    print(found)

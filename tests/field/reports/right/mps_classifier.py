"""Contract a matrix product state with a batch of product states: a classifier of tensor networks.

JAX contracts one sample under vmap, PyTorch the whole batch with einsum and bmm.
"""

import jax
import jax.numpy as jnp
import numpy as np
import torch

import accelbench

SITES, BOND, CLASSES, BATCH = 20, 8, 10, 64


def draw(rng):
    angle = np.pi / 2 * rng.random((BATCH, SITES))
    return {
        "inputs": np.stack([np.cos(angle), np.sin(angle)], axis=-1),
        "left": rng.standard_normal(BOND),
        "cores": rng.standard_normal((SITES, BOND, 2, BOND)) / BOND**0.5,
        "right": rng.standard_normal((BOND, CLASSES)) / BOND**0.5,
    }


def mps_jax(inputs, left, cores, right):
    def contract(sample):
        vector = left
        for site in range(SITES):
            vector = vector @ jnp.einsum("p,apb->ab", sample[site], cores[site])
        return vector @ right

    return jax.vmap(contract)(inputs)


def mps_torch(inputs, left, cores, right):
    matrices = torch.einsum("nsp,sapb->snab", inputs, cores)
    vector = left.expand(inputs.shape[0], 1, -1)
    for site in range(SITES):
        vector = torch.bmm(vector, matrices[site])
    return vector[:, 0] @ right


if __name__ == "__main__":
    found = accelbench.compare(jax=mps_jax, pytorch=mps_torch, arrays=draw, name="mps-classifier")
    print(found)

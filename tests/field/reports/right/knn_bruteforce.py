"""Find the ten nearest of 2000 points for each of 300 queries by brute force: distances by a product, then top-k.

A notebook cell. Returns distances and indices.
"""

import jax
import jax.numpy as jnp
import numpy as np

import accelbench

K = 10


def torch_knn(points, queries):
    squared = (queries**2).sum(1)[:, None] + (points**2).sum(1)[None, :] - 2 * queries @ points.T
    values, indices = squared.topk(K, dim=1, largest=False)
    return {"distances": values.clamp(min=0).sqrt(), "indices": indices}


def jax_knn(points, queries):
    squared = (queries**2).sum(1)[:, None] + (points**2).sum(1)[None, :] - 2 * queries @ points.T
    values, indices = jax.lax.top_k(-squared, K)
    return {"distances": jnp.sqrt(jnp.maximum(-values, 0)), "indices": indices}


if __name__ == "__main__":
    rng = np.random.default_rng(3)
    found = accelbench.compare(
        pytorch=torch_knn,
        jax=jax_knn,
        arrays={"points": rng.standard_normal((2000, 10)), "queries": rng.standard_normal((300, 10))},
    )
    print(found)

"""Filter a series with a Kalman filter: sequentially with lax.scan, and in parallel with lax.associative_scan.

A notebook cell; both programs are JAX's. The reference is a loop in NumPy.
"""

import jax
import jax.numpy as jnp
import numpy as np

import accelbench

F = [[0.95, 0.2], [0.0, 0.9]]
Q = [[0.05, 0.01], [0.01, 0.08]]
H = [[1.0, 0.3]]
R = [[0.1]]


def draw(rng, length=512):
    """Simulate the states, and observe them."""
    noise = rng.multivariate_normal([0, 0], Q, length)
    state, ys = np.zeros(2), []
    for w in noise:
        state = np.array(F) @ state + w
        ys.append(np.array(H) @ state + R[0][0] ** 0.5 * rng.standard_normal(1))
    return {"y": np.array(ys)}


def sequential(y):
    f, q, h, r = (jnp.array(m) for m in (F, Q, H, R))

    def step(carry, y):
        m, p = carry
        m = f @ m
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        k = jnp.linalg.solve(s, h @ p).T
        m = m + k @ (y - h @ m)
        p = p - k @ s @ k.T
        return (m, p), (m, p)

    _, (means, covariances) = jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2)), y)
    return {"means": means, "covariances": covariances}


def parallel(y):
    f, q, h, r = (jnp.array(m) for m in (F, Q, H, R))
    m0, p0 = jnp.zeros(2), jnp.eye(2)

    def element(y):
        s = h @ q @ h.T + r
        k = jnp.linalg.solve(s, h @ q).T
        a = f - k @ h @ f
        b = k @ y
        c = q - k @ h @ q
        gain = f.T @ jnp.linalg.solve(s, h).T
        return a, b, c, gain @ y, gain @ h @ f

    def first(y):
        m = f @ m0
        p = f @ p0 @ f.T + q
        s = h @ p @ h.T + r
        k = jnp.linalg.solve(s, h @ p).T
        return jnp.zeros((2, 2)), m + k @ (y - h @ m), p - k @ s @ k.T, jnp.zeros(2), jnp.zeros((2, 2))

    @jax.vmap
    def combine(left, right):
        a1, b1, c1, eta1, j1 = left
        a2, b2, c2, eta2, j2 = right
        one = jnp.eye(2)
        # a2 (1 + c1 j2)^-1
        g = jnp.linalg.solve((one + c1 @ j2).T, a2.T).T
        # a1' (1 + j2 c1)^-1
        e = jnp.linalg.solve((one + j2 @ c1).T, a1).T
        return g @ a1, g @ (b1 + c1 @ eta2) + b2, g @ c1 @ a2.T + c2, e @ (eta2 - j2 @ b1) + eta1, e @ j2 @ a1 + j1

    elements = jax.vmap(element)(y)
    elements = jax.tree.map(lambda all, one: all.at[0].set(one), elements, first(y[0]))
    _, means, covariances, _, _ = jax.lax.associative_scan(combine, elements)
    return {"means": means, "covariances": covariances}


def loop(y):
    f, q, h, r = (np.array(m) for m in (F, Q, H, R))
    m, p = np.zeros(2), np.eye(2)
    means, covariances = [], []
    for observed in y:
        m = f @ m
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        k = p @ h.T @ np.linalg.inv(s)
        m = m + k @ (observed - h @ m)
        p = (np.eye(2) - k @ h) @ p
        means.append(m)
        covariances.append(p)
    return {"means": np.array(means), "covariances": np.array(covariances)}


found = accelbench.compare(jax_scan=sequential, jax_associative=parallel, reference=loop, arrays=draw)
print(found)

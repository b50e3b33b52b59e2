"""Define programs with recurrences of many steps: differential equations, filters and averages over time."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from benchmarks.parity.program import FLOAT32, Fault, Program, normal, uniform

DECAY = 0.999
LORENZ_STEPS = 12
FORCED_STEPS = 20
FORCED_STEP = 2e-4
HEAT_STEPS = 200
HEAT_RATE = 0.2
NOISE = 0.1
SOFTENING = 0.05


def _average_numpy(x):
    average, averages = 0 * x[0], []
    for row in x:
        average = DECAY * average + (1 - DECAY) * row
        averages.append(average)
    return np.stack(averages)


def _average_jax(x, decay=DECAY):
    def step(average, row):
        average = decay * average + (1 - decay) * row
        return average, average

    return jax.lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x)[1]


def _average_torch(x):
    average, averages = torch.zeros_like(x[0]), []
    for row in x:
        average = torch.lerp(average, row, 1 - DECAY)
        averages.append(average)
    return torch.stack(averages)


def _lorenz(library, state):
    """Return the time derivative of the Lorenz system."""
    x, y, z = state
    return library.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def _runge_kutta(slope, state, step):
    """Return the state after a step of the fourth-order Runge-Kutta method."""
    first = slope(state)
    second = slope(state + step / 2 * first)
    third = slope(state + step / 2 * second)
    return state + step / 6 * (first + 2 * second + 2 * third + slope(state + step * third))


def _lorenz_numpy(state):
    for _ in range(LORENZ_STEPS):
        state = _runge_kutta(lambda state: _lorenz(np, state), state, 0.02)
    return state


def _lorenz_jax(state, steps=LORENZ_STEPS, step=0.02):
    def advance(_, state):
        return _runge_kutta(lambda state: _lorenz(jnp, state), state, step)

    return jax.lax.fori_loop(0, steps, advance, state)


def _lorenz_torch(state):
    for _ in range(LORENZ_STEPS):
        state = _runge_kutta(lambda state: _lorenz(torch, state), state, 0.02)
    return state


def _forced(library, state, time):
    """Return the time derivative of a forced oscillator's position and velocity."""
    position, velocity = state
    return library.stack([velocity, library.cos(2 * time) - position])


def _forced_steps(library, state, time, last=1.0):
    """Integrate the oscillator by Runge-Kutta; with `last` other than 1, the fourth slope is at a wrong time."""
    for _ in range(FORCED_STEPS):
        first = _forced(library, state, time)
        second = _forced(library, state + FORCED_STEP / 2 * first, time + FORCED_STEP / 2)
        third = _forced(library, state + FORCED_STEP / 2 * second, time + FORCED_STEP / 2)
        fourth = _forced(library, state + FORCED_STEP * third, time + last * FORCED_STEP)
        state = state + FORCED_STEP / 6 * (first + 2 * second + 2 * third + fourth)
        time = time + FORCED_STEP
    return state


def _heat_numpy(u):
    for _ in range(HEAT_STEPS):
        inner = u[1:-1] + HEAT_RATE * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.concatenate([u[:1], inner, u[-1:]])
    return u


def _heat_jax(u, last=None):
    def step(_, u):
        second = jnp.roll(u, -1, 0) - 2 * u + jnp.roll(u, 1, 0)
        new = u + HEAT_RATE * second
        return new.at[0].set(u[0]).at[-1].set(u[-1] if last is None else last)

    return jax.lax.fori_loop(0, HEAT_STEPS, step, u)


def _heat_torch(u):
    for _ in range(HEAT_STEPS):
        u = torch.cat([u[:1], torch.lerp(u[1:-1], (u[2:] + u[:-2]) / 2, 2 * HEAT_RATE), u[-1:]])
    return u


def _kalman_numpy(z):
    level = slope = 0 * z[0]
    p, q, r = level + 1, level, level + 1  # the covariance [[p, q], [q, r]]
    for measured in z:
        level = level + slope
        p, q, r = p + 2 * q + r + 0.01, q + r, r + 0.01
        gain, slope_gain = p / (p + NOISE), q / (p + NOISE)
        error = measured - level
        level, slope = level + gain * error, slope + slope_gain * error
        p, q, r = (1 - gain) * p, (1 - gain) * q, r - slope_gain * q
    return level


def _kalman_jax(z, noise=NOISE, skipped=None):
    transition = jnp.array([[1, 1], [0, 1]], z.dtype)

    def step(carried, indexed):
        mean, covariance = carried
        index, measured = indexed
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + 0.01 * jnp.eye(2, dtype=z.dtype)
        gain = covariance[:, :1] / (covariance[0, 0] + noise)
        if skipped is not None:
            gain = jnp.where(index == skipped, 0, gain)
        mean = mean + gain * (measured - mean[0])
        return (mean, covariance - gain * covariance[:1]), None

    start = jnp.zeros((2, z.shape[1]), z.dtype), jnp.eye(2, dtype=z.dtype)
    return jax.lax.scan(step, start, (jnp.arange(z.shape[0]), z))[0][0][0]


def _kalman_torch(z):
    transition = torch.tensor([[1, 1], [0, 1]], dtype=z.dtype)
    mean, covariance = torch.zeros(2, z.shape[1], dtype=z.dtype), torch.eye(2, dtype=z.dtype)
    for measured in z:
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + 0.01 * torch.eye(2, dtype=z.dtype)
        gain = covariance[:, :1] / (covariance[0, 0] + NOISE)
        mean = mean + gain * (measured - mean[0])
        covariance = covariance - gain @ covariance[:1]
    return mean[0]


def _bodies_numpy(p, v):
    for _ in range(5):
        difference = p[None] - p[:, None]
        squares = np.sum(difference * difference, -1) + SOFTENING**2
        v = v + 0.01 * np.sum(difference / (squares * np.sqrt(squares))[..., None], 1)
        p = p + 0.01 * v
    return p


def _bodies_jax(p, v, softening=SOFTENING**2):
    def step(_, state):
        p, v = state

        def force(one):
            difference = p - one
            return jnp.sum(difference * (jnp.sum(difference**2, -1, keepdims=True) + softening) ** -1.5, 0)

        v = v + 0.01 * jax.vmap(force)(p)
        return p + 0.01 * v, v

    return jax.lax.fori_loop(0, 5, step, (p, v))[0]


def _bodies_torch(p, v):
    for _ in range(5):
        difference = p.unsqueeze(0) - p.unsqueeze(1)
        weights = torch.rsqrt(difference.square().sum(-1) + SOFTENING**2).pow(3)
        v = torch.add(v, torch.einsum("ij,ijk->ik", weights, difference), alpha=0.01)
        p = torch.add(p, v, alpha=0.01)
    return p


def _weighted_average_numpy(x):
    coefficients = np.arange(1, 9) / 36
    total = 0 * x[7:]
    for lag in range(8):
        total = total + float(coefficients[lag]) * x[7 - lag : x.shape[0] - lag]
    return total


def _weighted_average_jax(x):
    return jnp.convolve(x, jnp.arange(1, 9).astype(x.dtype) / 36, "valid")


def _weighted_average_torch(x):
    weights = torch.arange(8, 0, -1).to(x.dtype) / 36
    return functional.conv1d(x[None, None], weights[None, None])[0, 0]


PROGRAMS = (
    Program(
        "exponential average of 2000 steps",
        {"x": uniform(0, 1, 2000, 2)},
        _average_numpy,
        _average_jax,
        _average_torch,
        (
            Fault("0.9991 for 0.999", "all", lambda x: _average_jax(x, 0.9991)),
            Fault("0.99901 for 0.999", "all", lambda x: _average_jax(x, 0.99901)),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "weighted average of 8",
        {"x": normal(5_000)},
        _weighted_average_numpy,
        _weighted_average_jax,
        _weighted_average_torch,
        (Fault("weights reversed", "all", lambda x: _weighted_average_jax(x[::-1])[::-1]),),
    ),
    Program(
        "Runge-Kutta, 12 steps",
        {"state": normal(3, 400, scale=5)},
        _lorenz_numpy,
        _lorenz_jax,
        _lorenz_torch,
        (
            Fault("11 steps", "all", lambda state: _lorenz_jax(state, LORENZ_STEPS - 1)),
            Fault("step 0.02001 for 0.02", "all", lambda state: _lorenz_jax(state, step=0.02001)),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "Runge-Kutta, a forced oscillator",
        {"state": normal(2, 400), "time": uniform(0, 3, 400)},
        lambda state, time: _forced_steps(np, state, time),
        lambda state, time: _forced_steps(jnp, state, time),
        lambda state, time: _forced_steps(torch, state, time),
        (Fault("the fourth slope half a step early", "all", lambda state, time: _forced_steps(jnp, state, time, 0.5)),),
        precisions=FLOAT32,
    ),
    Program(
        "heat equation, 200 steps",
        {"u": uniform(0, 1, 200, 16)},
        _heat_numpy,
        _heat_jax,
        _heat_torch,
        (Fault("one end held at 0", "few", lambda u: _heat_jax(u, 0.0)),),
    ),
    Program(
        "Kalman filter of 100 steps",
        {"z": normal(100, 200)},
        _kalman_numpy,
        _kalman_jax,
        _kalman_torch,
        (
            Fault("noise 0.11 for 0.1", "all", lambda z: _kalman_jax(z, 0.11)),
            Fault("the 90th measurement skipped", "all", lambda z: _kalman_jax(z, skipped=89)),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "64 bodies, 5 steps",
        {"p": uniform(0, 4, 64, 3), "v": normal(64, 3, scale=0.1)},
        _bodies_numpy,
        _bodies_jax,
        _bodies_torch,
        (Fault("softening not squared", "all", lambda p, v: _bodies_jax(p, v, SOFTENING)),),
    ),
)

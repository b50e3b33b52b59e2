"""Price an arithmetic Asian call by Monte Carlo, with delta, vega and rho by automatic differentiation.

Wrong on JAX's side: the average is over the first `fixings` points of a path that starts with today's price, so it
has today's price and lacks the last fixing (off by one).
"""

STRIKE, YEARS = 100.0, 1.0


def arrays(rng, paths: int = 4000, fixings: int = 52):
    """Draw the market, and a normal number for each path and fixing."""
    return {"spot": 100.0, "volatility": 0.2, "rate": 0.03, "z": rng.standard_normal((paths, fixings))}


def jax(spot, volatility, rate, z, fixings):
    """Differentiate in the three numbers of the market."""
    import jax
    import jax.numpy as jnp

    dt = YEARS / fixings

    def price(spot, volatility, rate):
        steps = (rate - 0.5 * volatility**2) * dt + volatility * dt**0.5 * z
        logs = jnp.concatenate([jnp.zeros_like(z[:, :1]), jnp.cumsum(steps, axis=1)], axis=1)
        average = (spot * jnp.exp(logs[:, :fixings])).mean(axis=1)
        return jnp.exp(-rate * YEARS) * jnp.maximum(average - STRIKE, 0.0).mean()

    value, (delta, vega, rho) = jax.value_and_grad(price, argnums=(0, 1, 2))(spot, volatility, rate)
    return {"price": value, "delta": delta, "vega": vega, "rho": rho}


def pytorch(spot, volatility, rate, z, fixings):
    """Call backward()."""
    import torch

    dt = YEARS / fixings
    spot, volatility, rate = (m.clone().requires_grad_() for m in (spot, volatility, rate))
    steps = (rate - 0.5 * volatility**2) * dt + volatility * dt**0.5 * z
    average = (spot * torch.exp(torch.cumsum(steps, dim=1))).mean(dim=1)
    price = torch.exp(-rate * YEARS) * torch.clamp(average - STRIKE, min=0.0).mean()
    price.backward()
    return {"price": price.detach(), "delta": spot.grad, "vega": volatility.grad, "rho": rate.grad}

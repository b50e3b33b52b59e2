"""Compute the density of sea water at one atmosphere by the international equation of 1980, and its thermal expansion.

Long polynomials of temperature and salinity on a grid, in float64, and the derivative in
temperature by automatic differentiation: grad of the sum in JAX, backward() in PyTorch.
"""


def arrays(rng, rows: int = 200, columns: int = 200):
    """Draw temperatures in degrees Celsius and practical salinities."""
    return {"temperature": 30 * rng.random((rows, columns)), "salinity": 30 + 8 * rng.random((rows, columns))}


def density(t, s):
    """Return kg/m^3; works for numbers and arrays of both frameworks."""
    water = 999.842594 + t * (
        6.793952e-2 + t * (-9.095290e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9)))
    )
    a = 8.24493e-1 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9)))
    b = -5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6)
    return water + a * s + b * s**1.5 + 4.8314e-4 * s**2


def jax(temperature, salinity):
    """Differentiate the sum of all densities."""
    import jax

    rho = density(temperature, salinity)
    slope = jax.grad(lambda t: density(t, salinity).sum())(temperature)
    return {"density": rho, "expansion": -slope / rho}


def pytorch(temperature, salinity):
    """Call backward() on the sum."""
    t = temperature.clone().requires_grad_()
    rho = density(t, salinity)
    rho.sum().backward()
    rho = rho.detach()
    return {"density": rho, "expansion": -t.grad / rho}

"""Filter many channels by a cascade of two second-order sections, sample after sample.

The coefficients are those of a Butterworth low-pass of order 4. SciPy has the reference.
"""


def arrays(rng, channels: int = 32, samples: int = 200):
    """Draw signals; the coefficients are the same for every draw."""
    from scipy.signal import butter

    return {"x": rng.standard_normal((channels, samples)), "sos": butter(4, 0.2, output="sos")}


def reference(x, sos):
    """Use SciPy."""
    from scipy.signal import sosfilt

    return sosfilt(sos, x, axis=-1)


def jax(x, sos):
    """Scan over time, a section after the other."""
    import jax
    import jax.numpy as jnp

    def section(signal, coefficients):
        b0, b1, b2, _, a1, a2 = coefficients

        def step(state, now):
            z1, z2 = state
            y = b0 * now + z1
            return (b1 * now - a1 * y + z2, b2 * now - a2 * y), y

        zeros = jnp.zeros_like(signal[0])
        return jax.lax.scan(step, (zeros, zeros), signal)[1]

    signal = x.T
    for k in range(sos.shape[0]):
        signal = section(signal, sos[k])
    return signal.T


def pytorch(x, sos):
    """Loop over time."""
    import torch

    signal = x.T
    for b0, b1, b2, _, a1, a2 in sos:
        z1 = z2 = torch.zeros_like(signal[0])
        filtered = []
        for now in signal:
            y = b0 * now + z1
            z1, z2 = b1 * now - a1 * y + z2, b2 * now - a2 * y
            filtered.append(y)
        signal = torch.stack(filtered)
    return signal.T

"""Filter signals by a module that has weights of its own, in the type that PyTorch gives them."""


def arrays(rng, n: int = 16):
    return {"x": rng.standard_normal((n, 3, 50))}


def jax(x):
    import jax.numpy as jnp
    from jax import lax

    weights = jnp.linspace(-1, 1, 60, dtype=x.dtype).reshape(4, 3, 5)
    return lax.conv_general_dilated(x, weights, (1,), "VALID")


def pytorch(x):
    import torch

    layer = torch.nn.Conv1d(3, 4, 5, bias=False)
    layer.weight.copy_(torch.linspace(-1, 1, 60).reshape(4, 3, 5))
    return layer(x)

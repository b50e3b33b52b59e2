"""Draw from a categorical distribution by each framework's generator: Gumbel noise in JAX, multinomial in PyTorch.

Outputs are random; their moments are compared.
"""

measure = {"random": "moments", "unit": "draw", "units": 5000}


def arrays(rng, categories: int = 64, draws: int = 5000):
    """Draw logits and a seed."""
    return {"logits": rng.standard_normal(categories), "seed": rng.integers(1000)}


def jax(logits, seed, draws):
    """Draw from the logits."""
    import jax

    return jax.random.categorical(jax.random.key(seed), logits, shape=(draws,))


def pytorch(logits, seed, draws):
    """Draw from the probabilities, with replacement."""
    import torch

    return torch.multinomial(torch.softmax(logits, dim=0), draws, replacement=True)

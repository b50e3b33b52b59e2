"""Generate tokens one by one with a cache of keys and values, always taking the most likely one.

One layer of attention with one head. JAX has a cache of full length and masks what is not there yet; PyTorch writes
into its cache in place and reads the part that is filled. Outputs: the tokens and the logits.
"""


def arrays(rng, batch: int = 4, steps: int = 24, width: int = 64, vocabulary: int = 256):
    """Draw the first tokens and the weights."""
    scale = width**-0.5
    return {
        "first": rng.integers(0, vocabulary, batch),
        "embedding": rng.standard_normal((vocabulary, width)),
        "place": 0.3 * rng.standard_normal((steps, width)),
        "wq": scale * rng.standard_normal((width, width)),
        "wk": scale * rng.standard_normal((width, width)),
        "wv": scale * rng.standard_normal((width, width)),
        "wo": scale * rng.standard_normal((width, width)),
        "head": scale * rng.standard_normal((width, vocabulary)),
    }


def jax(first, embedding, place, wq, wk, wv, wo, head, steps):
    """Scan over the positions."""
    import jax
    import jax.numpy as jnp

    batch, width = first.shape[0], embedding.shape[1]

    def step(carry, position):
        token, keys, values = carry
        x = embedding[token] + place[position]
        keys = jax.lax.dynamic_update_slice(keys, (x @ wk)[:, None], (0, position, 0))
        values = jax.lax.dynamic_update_slice(values, (x @ wv)[:, None], (0, position, 0))
        scores = jnp.einsum("bd,btd->bt", x @ wq, keys) / width**0.5
        scores = jnp.where(jnp.arange(steps) <= position, scores, -jnp.inf)
        mixed = jnp.einsum("bt,btd->bd", jax.nn.softmax(scores, axis=-1), values)
        logits = (x + mixed @ wo) @ head
        token = jnp.argmax(logits, axis=-1).astype(token.dtype)
        return (token, keys, values), (token, logits)

    cache = jnp.zeros((batch, steps, width), embedding.dtype)
    _, (tokens, logits) = jax.lax.scan(step, (first, cache, cache), jnp.arange(steps))
    return {"tokens": tokens, "logits": logits}


def pytorch(first, embedding, place, wq, wk, wv, wo, head, steps):
    """Loop over the positions."""
    import torch

    batch, width = first.shape[0], embedding.shape[1]
    keys = embedding.new_zeros((batch, steps, width))
    values = torch.zeros_like(keys)
    token, tokens, every = first, [], []
    for position in range(steps):
        x = embedding[token] + place[position]
        keys[:, position] = x @ wk
        values[:, position] = x @ wv
        scores = torch.einsum("bd,btd->bt", x @ wq, keys[:, : position + 1]) / width**0.5
        mixed = torch.einsum("bt,btd->bd", torch.softmax(scores, dim=-1), values[:, : position + 1])
        logits = (x + mixed @ wo) @ head
        token = logits.argmax(dim=-1)
        tokens.append(token)
        every.append(logits)
    return {"tokens": torch.stack(tokens), "logits": torch.stack(every)}

"""Compute a layer of graph attention: a softmax over the edges that enter a node, then the weighted sum of senders.

Outputs: the attention of every edge and head, and the new features. Some nodes may have no edge: theirs are 0.
"""


def arrays(rng, nodes: int = 1000, edges: int = 8000, heads: int = 4, width: int = 16):
    """Draw edges, features and the two parts of the scores."""
    return {
        "senders": rng.integers(0, nodes, edges),
        "receivers": rng.integers(0, nodes, edges),
        "features": rng.standard_normal((nodes, heads, width)),
        "a_sender": rng.standard_normal((heads, width)) / width**0.5,
        "a_receiver": rng.standard_normal((heads, width)) / width**0.5,
    }


def jax(senders, receivers, features, a_sender, a_receiver, nodes):
    """Use segment_max and segment_sum."""
    import jax
    import jax.numpy as jnp

    from_sender = (features * a_sender).sum(-1)
    from_receiver = (features * a_receiver).sum(-1)
    scores = jax.nn.leaky_relu(from_sender[senders] + from_receiver[receivers], 0.2)
    top = jax.ops.segment_max(scores, receivers, num_segments=nodes)
    weights = jnp.exp(scores - top[receivers])
    total = jax.ops.segment_sum(weights, receivers, num_segments=nodes)
    attention = weights / total[receivers]
    mixed = jax.ops.segment_sum(attention[..., None] * features[senders], receivers, num_segments=nodes)
    return {"attention": attention, "features": mixed}


def pytorch(senders, receivers, features, a_sender, a_receiver, nodes):
    """Use scatter_reduce and index_add."""
    import torch
    import torch.nn.functional as F

    from_sender = (features * a_sender).sum(-1)
    from_receiver = (features * a_receiver).sum(-1)
    scores = F.leaky_relu(from_sender[senders] + from_receiver[receivers], 0.2)
    top = torch.full_like(from_sender, -torch.inf)
    top = top.scatter_reduce(0, receivers[:, None].expand_as(scores), scores, "amax")
    weights = torch.exp(scores - top[receivers])
    total = torch.zeros_like(from_sender).index_add(0, receivers, weights)
    attention = weights / total[receivers]
    mixed = torch.zeros_like(features).index_add(0, receivers, attention[..., None] * features[senders])
    return {"attention": attention, "features": mixed}

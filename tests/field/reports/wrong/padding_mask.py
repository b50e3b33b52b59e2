"""Attend to keys of padded sequences: written out, and by scaled_dot_product_attention. Two programs of PyTorch.

The second lets one padded key of each sequence through (<= instead of <). Sequences of full length are right.
"""


def arrays(rng, batch: int = 8, heads: int = 4, length: int = 64, width: int = 32):
    """Draw queries, keys, values and lengths; half of the sequences are full."""
    shape = (batch, heads, length, width)
    lengths = rng.integers(length // 2, length, batch)
    lengths[: batch // 2] = length
    return {
        "q": rng.standard_normal(shape),
        "k": rng.standard_normal(shape),
        "v": rng.standard_normal(shape),
        "lengths": lengths,
    }


def pytorch(q, k, v, lengths):
    """Write attention out."""
    import torch

    there = torch.arange(k.shape[-2], device=k.device) < lengths[:, None]
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~there[:, None, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def pytorch_sdpa(q, k, v, lengths):
    """Use PyTorch's function; True in the mask is a key that takes part."""
    import torch
    import torch.nn.functional as F

    there = torch.arange(k.shape[-2], device=k.device) <= lengths[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None, :])

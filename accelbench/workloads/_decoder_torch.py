"""Implement the decoder of `_decoder` with torch.nn and torch.optim."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from accelbench.workloads import _decoder as decoder
from accelbench.workloads import _transformer as transformer


class Block(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Apply causal attention, then a perceptron, each after layer normalisation and added to its input."""

    def __init__(self, sizes: decoder.Sizes) -> None:
        """Create the layers; the function `build` sets their weights."""
        super().__init__()
        width, hidden = sizes.width, transformer.HIDDEN_RATIO * sizes.width
        self.heads = sizes.heads
        self.gain1 = nn.LayerNorm(width, eps=transformer.EPSILON, bias=False)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.project = nn.Linear(width, width, bias=False)
        self.gain2 = nn.LayerNorm(width, eps=transformer.EPSILON, bias=False)
        self.expand = nn.Linear(width, hidden, bias=False)
        self.contract = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Any) -> Any:
        """Apply the block to x (batch, sequence, width)."""
        batch, sequence, _ = x.shape
        normalised = self.gain1(x)
        q, k, v = (
            linear(normalised).view(batch, sequence, self.heads, -1).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(x.shape))
        return x + self.contract(functional.gelu(self.expand(self.gain2(x))))


class Decoder(nn.Module):  # type: ignore[misc]
    """Map tokens to the logits of the next word: embedding, positions, blocks, layer normalisation, head.

    `recomputed`: only the input of each block is kept, and the rest is recomputed in the backward pass.
    """

    def __init__(self, sizes: decoder.Sizes, *, recomputed: bool) -> None:
        """Create the layers; the function `build` sets their weights."""
        super().__init__()
        self.recomputed = recomputed
        self.embed = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.sequence, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.gain = nn.LayerNorm(sizes.width, eps=transformer.EPSILON, bias=False)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def forward(self, tokens: Any) -> Any:
        """Return logits (batch, sequence, words) from tokens (batch, sequence).

        If `recomputed`, the backward pass computes activations again, which saves memory.
        """
        x = self.embed(tokens) + self.positions.weight
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputed else block(x)
        return self.head(self.gain(x))


def build(sizes: decoder.Sizes, arrays: Mapping[str, Any], put: Callable[[Any], Any], *, recomputed: bool) -> Decoder:
    """Build the decoder with `arrays` as weights, named as in `decoder.shapes`; `put` places arrays on the device."""
    decoder.reject_float16(str(put(arrays["gain"]).dtype))
    # The device `meta` draws no random weights: they would be overwritten.
    with torch.device("meta"):
        model = Decoder(sizes, recomputed=recomputed)
    for name in decoder.IN_BLOCKS:
        for layer, block in enumerate(model.blocks):
            _set_weights(getattr(block, name), put(arrays[name][layer]))
    for name in decoder.OUTSIDE:
        if name in arrays:
            _set_weights(getattr(model, name), put(arrays[name]))
    if sizes.tied:
        model.head.weight = model.embed.weight
    return model


def adamw(model: Decoder, learning_rate: float, *, fused: bool | None) -> torch.optim.AdamW:
    """Create torch.optim.AdamW for all weights of the model; `fused` None is PyTorch's default for the device."""
    betas = (decoder.BETA1, decoder.BETA2)
    return torch.optim.AdamW(
        model.parameters(), lr=learning_rate, betas=betas, eps=decoder.EPSILON, weight_decay=decoder.DECAY, fused=fused
    )


def loss_of(model: Decoder, batch: Any) -> Any:
    """Return the mean cross-entropy of predicting each token's next token; `targets` are (batch, sequence)."""
    return functional.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["targets"].flatten())


def weights_by_name(model: Decoder, *, tied: bool) -> dict[str, Any]:
    """Return the model's weights, named as in `decoder.shapes`, with those of all blocks stacked."""
    weights = {}
    for name in decoder.OUTSIDE:
        if not (tied and name == "head"):  # a tied head uses the embedding's weights
            weights[name] = _get_weights(getattr(model, name))
    for name in decoder.IN_BLOCKS:
        weights[name] = torch.stack([_get_weights(getattr(block, name)) for block in model.blocks])
    return weights


def _set_weights(module: Any, weights: Any) -> None:
    """Set the module's weights; those of a linear layer are given as (in, out), and PyTorch stores (out, in)."""
    module.weight = nn.Parameter(weights.T.contiguous() if isinstance(module, nn.Linear) else weights)


def _get_weights(module: Any) -> Any:
    """Return the module's weights; those of a linear layer as (in, out), although PyTorch stores (out, in)."""
    weights = module.weight.detach()
    return weights.T if isinstance(module, nn.Linear) else weights

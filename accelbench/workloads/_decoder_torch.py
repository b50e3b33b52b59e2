"""The decoder of `_decoder` with torch.nn and torch.optim."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from accelbench.workloads import _decoder as decoder
from accelbench.workloads import _transformer as transformer


class Block(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Causal attention, then a perceptron, each after layer normalisation and added to what it was given."""

    def __init__(self, sizes: decoder.Sizes) -> None:
        super().__init__()
        width, hidden = sizes.width, transformer.WIDER * sizes.width
        self.heads = sizes.heads
        self.gain1 = nn.LayerNorm(width, eps=transformer.EPSILON, bias=False)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.project = nn.Linear(width, width, bias=False)
        self.gain2 = nn.LayerNorm(width, eps=transformer.EPSILON, bias=False)
        self.expand = nn.Linear(width, hidden, bias=False)
        self.contract = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Any) -> Any:
        """x: (batch, sequence, width)."""
        batch, sequence, _ = x.shape
        first = self.gain1(x)
        q, k, v = (
            part(first).view(batch, sequence, self.heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(x.shape))
        return x + self.contract(functional.gelu(self.expand(self.gain2(x))))


class Decoder(nn.Module):  # type: ignore[misc]
    """Words and positions, blocks, layer normalisation, and how likely each word is next.

    `recomputed`: of each block what it was given is kept, and the rest is computed again on the way back.
    """

    def __init__(self, sizes: decoder.Sizes, *, recomputed: bool) -> None:
        super().__init__()
        self.recomputed = recomputed
        self.embed = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.sequence, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.gain = nn.LayerNorm(sizes.width, eps=transformer.EPSILON, bias=False)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def forward(self, tokens: Any) -> Any:
        """Logits (batch, sequence, words) from tokens (batch, sequence)."""
        x = self.embed(tokens) + self.positions.weight
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputed else block(x)
        return self.head(self.gain(x))


def build(sizes: decoder.Sizes, arrays: Mapping[str, Any], put: Callable[[Any], Any], *, recomputed: bool) -> Decoder:
    """The decoder with weights from arrays by the names of `decoder.shapes`; a linear layer has (out, in)."""
    decoder.check_type(str(put(arrays["gain"]).dtype))
    with torch.device("meta"):  # nothing is drawn that is overwritten
        model = Decoder(sizes, recomputed=recomputed)
    for name in decoder.IN_BLOCKS:
        for layer, block in enumerate(model.blocks):
            _set(getattr(block, name), put(arrays[name][layer]))
    for name in decoder.OUTSIDE:
        if name in arrays:
            _set(getattr(model, name), put(arrays[name]))
    if sizes.tied:
        model.head.weight = model.embed.weight
    return model


def adamw(model: Decoder, learning_rate: float) -> torch.optim.AdamW:
    """torch.optim.AdamW, each operation on all weights at once where PyTorch chooses so."""
    betas = (decoder.BETA1, decoder.BETA2)
    return torch.optim.AdamW(
        model.parameters(), lr=learning_rate, betas=betas, eps=decoder.EPSILON, weight_decay=decoder.DECAY
    )


def loss_of(model: Decoder, batch: Any) -> Any:
    """Of the next words, the mean over all of them."""
    return functional.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["targets"].flatten())


def named(model: Decoder, *, tied: bool) -> dict[str, Any]:
    """Weights by the names of `decoder.shapes`."""
    outside = {name: _given(getattr(model, name)) for name in decoder.OUTSIDE if not (tied and name == "head")}
    inside = {name: torch.stack([_given(getattr(block, name)) for block in model.blocks]) for name in decoder.IN_BLOCKS}
    return {**outside, **inside}


def _set(module: Any, weights: Any) -> None:
    module.weight = nn.Parameter(weights.T.contiguous() if isinstance(module, nn.Linear) else weights)


def _given(module: Any) -> Any:
    weights = module.weight.detach()
    return weights.T if isinstance(module, nn.Linear) else weights

"""Generate text with torch.nn: decoders that differ in how they keep their keys and values."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from accelbench.workload import Arrays, Program, Tools
from accelbench.workloads import _transformer as transformer
from accelbench.workloads.text_generation import TextGeneration, split_blocks


class Cache(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Hold room for a block's keys and values, (batch, heads, context, features of a head).

    Buffers of a module stay where they are, so that CUDA graphs can write into them.
    """

    def __init__(self, keys: Any, values: Any) -> None:
        """Register both as buffers."""
        super().__init__()
        self.register_buffer("keys", keys)
        self.register_buffer("values", values)


class Decoder(nn.Module):  # type: ignore[misc]
    """Map tokens to the logits of the next token: embedding, positions, blocks, layer normalisation, head."""

    def __init__(self, weights: Any, heads: int) -> None:
        """Create the layers from a list of weights: those outside the blocks, then those of each block."""
        super().__init__()
        outside, *blocks = weights
        self.heads = heads
        self.embed = nn.Embedding.from_pretrained(outside["embed"])
        self.positions = nn.Parameter(outside["positions"])
        self.blocks = nn.ModuleList(transformer.torch_block(block, heads) for block in blocks)
        self.gain = transformer.torch_normalisation(outside["gain"], outside["gain_bias"])
        self.head = transformer.torch_linear(outside["head"])

    def places(self, start: int, length: int) -> Any:
        """Return an index of `length` places of the text from `start` on."""
        return slice(start, start + length)

    def begin(self, buffers: Any) -> Any:
        """Return the cache of each block at the beginning of a text; `buffers` has the room for it."""
        return buffers

    def remember(self, cache: Any, k: Any, v: Any, places: Any) -> tuple[Any, Any, Any]:
        """Keep a block's keys and values of new tokens; return what a token attends to, and a mask or None."""
        raise NotImplementedError

    def forward(self, tokens: Any, caches: Any, places: Any) -> Any:
        """Return the last logits of tokens (batch, length) at these places.

        Several tokens are a prompt, which attends to itself alone. One token attends to the cache.
        """
        batch, length = tokens.shape
        x = self.embed(tokens) + self.positions[places]
        for block, cache in zip(self.blocks, caches, strict=True):
            qkv = block.attend(block.gain1(x)).chunk(3, -1)
            q, k, v = (tensor.view(batch, length, self.heads, -1).transpose(1, 2) for tensor in qkv)
            keys, values, mask = self.remember(cache, k, v, places)
            if length > 1:
                attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                attended = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            x = x + block.project(attended.transpose(1, 2).reshape(x.shape))
            x = x + block.contract(functional.gelu(block.expand(block.gain2(x))))
        return self.head(self.gain(x[:, -1]))


class MaskedDecoder(Decoder):
    """Attend to whole buffers under a mask: the shapes are the same for every token, as a compiler needs them."""

    def __init__(self, weights: Any, heads: int) -> None:
        """Create the layers, and a tensor of all places, whose slices are passed to the compiled functions.

        With a start as an integer, they would be compiled again for each start.
        """
        super().__init__(weights, heads)
        self.register_buffer("all_places", torch.arange(len(self.positions), device=self.positions.device))

    def places(self, start: int, length: int) -> Any:
        """Return the `length` places of the text from `start` on, as a tensor of integers."""
        return self.all_places[start : start + length]

    def remember(self, cache: Any, k: Any, v: Any, places: Any) -> tuple[Any, Any, Any]:
        """Write into the buffers; return them, and a mask (new tokens, context) of what is written."""
        cache.keys.index_copy_(2, places, k)
        cache.values.index_copy_(2, places, v)
        return cache.keys, cache.values, self.all_places <= places[:, None]


class SlicedDecoder(Decoder):
    """Attend to the written part of the buffers, which needs no mask."""

    def remember(self, cache: Any, k: Any, v: Any, places: Any) -> tuple[Any, Any, Any]:
        """Write into the buffers; return views of what is written."""
        cache.keys[:, :, places], cache.values[:, :, places] = k, v
        return cache.keys[:, :, : places.stop], cache.values[:, :, : places.stop], None


class GrowingDecoder(Decoder):
    """Append keys and values to those of earlier tokens, in new memory: the default cache of Hugging Face's library."""

    def begin(self, buffers: Any) -> Any:
        """Return an empty cache for each block; the buffers are not used."""
        return [[] for _ in buffers]

    def remember(self, cache: Any, k: Any, v: Any, places: Any) -> tuple[Any, Any, Any]:  # noqa: ARG002 - at the end
        """Append the new keys and values; return all so far, which need no mask."""
        keys, values = (torch.cat([old, new], 2) for old, new in zip(cache, (k, v), strict=True)) if cache else (k, v)
        cache[:] = keys, values
        return keys, values, None


def program(decoder: type[Decoder], p: TextGeneration.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program that generates a text in a Python loop; prompt and token run in the variant's mode."""
    weights = split_blocks(arrays.batches[0], p.layers)
    state = tools.put(arrays.state)
    buffers = nn.ModuleList(Cache(*of_block) for of_block in zip(state["keys"], state["values"], strict=True))
    prompt = tools.in_mode(read_prompt, one_program=True)
    token = tools.in_mode(read_token, one_program=True)

    def step(state: Any, model: Any) -> tuple[Any, Any]:
        """Generate a text; return the state, and scores and last logits.

        In the state, the text is rotated by one token, so that the next call does not repeat this one.
        """
        text, caches = state["text"], model.begin(state["buffers"])
        choices, scores, logits = prompt(model, caches, text[:, : p.prompt], model.places(0, p.prompt))
        all_scores = [scores]
        for position in range(p.prompt, p.context):
            given = text[:, position : position + 1]
            choices, scores, logits = token(model, caches, choices, given, model.places(position, 1))
            all_scores.append(scores)
        rotated = {"text": text.roll(1, 1), "buffers": state["buffers"]}
        return rotated, {"scores": torch.cat(all_scores, 1), "logits": logits}

    return Program(
        state={"text": state["text"], "buffers": buffers},
        step=step,
        batches=(decoder(tools.put(weights), p.heads),),
        placed=True,
        export=lambda _state, out: out,
    )


def read_prompt(model: Any, caches: Any, tokens: Any, places: Any) -> tuple[Any, Any, Any]:
    """Apply the decoder to the prompt; return the chosen tokens (batch, 1), their logits, and all last logits."""
    logits = model(tokens, caches, places)
    scores, choices = logits.max(-1, keepdim=True)
    return choices, scores, logits


def read_token(model: Any, caches: Any, choices: Any, given: Any, places: Any) -> tuple[Any, Any, Any]:
    """Feed back one token, the text's or, where that is below 0, the chosen one; return as `read_prompt`."""
    return read_prompt(model, caches, torch.where(given < 0, choices, given), places)

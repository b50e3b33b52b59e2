"""Generate text in JAX: a decoder that keeps its keys and values in buffers of fixed size.

Weights are a list of dictionaries: first those outside the blocks, then those of each block. A cache is a pair: the
keys of each block, and the values of each block, (batch, heads, context, features of a head).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from accelbench.workload import Arrays, Program, Tools
from accelbench.workloads import _transformer as transformer
from accelbench.workloads.text_generation import TextGeneration, split_blocks


def scanned(p: TextGeneration.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose step is a whole generation, with a scan over the tokens."""

    def step(state: Any, weights: Any) -> tuple[Any, Any]:
        """Generate a text; return the next state, in which the text is rotated, and scores and last logits."""
        text = state["text"]
        carry, _ = lax.scan(
            lambda carry, _: (read_token(carry, text, weights, p), None),
            read_prompt(state["cache"], text, weights, p),
            length=p.tokens - 1,
        )
        return _result(carry, text)

    return _program(p, arrays, tools, step)


def step_by_step(p: TextGeneration.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program that calls a compiled function for the prompt, and one for each token."""
    prompt = jax.jit(lambda cache, text, weights: read_prompt(cache, text, weights, p), donate_argnums=0)
    token = jax.jit(lambda carry, text, weights: read_token(carry, text, weights, p), donate_argnums=0)

    def step(state: Any, weights: Any) -> tuple[Any, Any]:
        """Generate a text; return the next state, in which the text is rotated, and scores and last logits."""
        text = state["text"]
        carry = prompt(state["cache"], text, weights)
        for _ in range(p.tokens - 1):
            carry = token(carry, text, weights)
        return _result(carry, text)

    return _program(p, arrays, tools, step, placed=True)


def _program(p: TextGeneration.Parameters, arrays: Arrays, tools: Tools, step: Any, *, placed: bool = False) -> Program:
    """Return a program with a state of the text and of the cache, which each call may overwrite."""
    cache = tuple(list(arrays.state[name]) for name in ("keys", "values"))
    return Program(
        state=tools.put({"text": arrays.state["text"], "cache": cache}),
        step=step,
        batches=(tools.put(split_blocks(arrays.batches[0], p.layers)),),
        placed=placed,
        donate=True,
        export=lambda _state, out: out,
    )


def _result(carry: Any, text: Any) -> tuple[Any, Any]:
    """Return the next state, with the text rotated so that no call repeats another, and what is compared."""
    state = {"text": jnp.roll(text, 1, 1), "cache": carry["cache"]}
    return state, {"scores": carry["scores"], "logits": carry["logits"]}


def read_prompt(cache: Any, text: Any, weights: Any, p: TextGeneration.Parameters) -> dict[str, Any]:
    """Apply the decoder to the prompt, and choose the first token; return what `read_token` continues with."""
    cache, logits = apply(weights, cache, text[:, : p.prompt], 0, p.heads)
    choices, scores = choose(logits)
    return {
        "cache": cache,
        "position": jnp.asarray(p.prompt),
        "choices": choices,
        "logits": logits,
        "scores": write(jnp.zeros((p.batch, p.tokens), scores.dtype), scores, 0, axis=1),
    }


def read_token(carry: dict[str, Any], text: Any, weights: Any, p: TextGeneration.Parameters) -> dict[str, Any]:
    """Feed back one token, the text's or, where that is below 0, the chosen one; then choose the next token."""
    position = carry["position"]
    given = lax.dynamic_slice_in_dim(text, position, 1, 1)
    tokens = jnp.where(given < 0, carry["choices"], given)
    cache, logits = apply(weights, carry["cache"], tokens, position, p.heads)
    choices, scores = choose(logits)
    return {
        "cache": cache,
        "position": position + 1,
        "choices": choices,
        "logits": logits,
        "scores": write(carry["scores"], scores, position + 1 - p.prompt, axis=1),
    }


def choose(logits: Any) -> tuple[Any, Any]:
    """Return the token with the highest logit, and this logit, both (batch, 1)."""
    choices = logits.argmax(-1, keepdims=True)
    return choices, jnp.take_along_axis(logits, choices, -1)


def apply(weights: Any, cache: Any, tokens: Any, start: Any, heads: int) -> tuple[Any, Any]:
    """Apply the decoder to tokens (batch, length) at the position `start`; return the cache and the last logits.

    Several tokens are a prompt, which attends to itself alone. One token attends to the cache up to its own position.
    """
    outside, *blocks = weights
    batch, length = tokens.shape
    x = outside["embed"][tokens] + lax.dynamic_slice_in_dim(outside["positions"], start, length)
    keys, values = [], []
    for w, buffer_of_keys, buffer_of_values in zip(blocks, *cache, strict=True):
        qkv = transformer.jax_normalise(x, w["gain1"], w["gain1_bias"]) @ w["attend"] + w["attend_bias"]
        q, k, v = (array.reshape(batch, length, heads, -1).swapaxes(1, 2) for array in jnp.split(qkv, 3, -1))
        keys.append(write(buffer_of_keys, k, start, axis=2))
        values.append(write(buffer_of_values, v, start, axis=2))
        if length > 1:
            attended = attend(q, k, v, jnp.tri(length, dtype=bool))
        else:
            attended = attend(q, keys[-1], values[-1], jnp.arange(keys[-1].shape[2]) <= start)
        x = x + attended.swapaxes(1, 2).reshape(x.shape) @ w["project"] + w["project_bias"]
        hidden = transformer.jax_normalise(x, w["gain2"], w["gain2_bias"]) @ w["expand"] + w["expand_bias"]
        x = x + jax.nn.gelu(hidden, approximate=False) @ w["contract"] + w["contract_bias"]
    last = transformer.jax_normalise(x[:, -1], outside["gain"], outside["gain_bias"])
    return (keys, values), last @ outside["head"]


def write(buffer: Any, new: Any, start: Any, *, axis: int) -> Any:
    """Return the buffer with new numbers from `start` on along an axis; XLA writes them into donated memory."""
    return lax.dynamic_update_slice_in_dim(buffer, new, start, axis)


def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Apply attention to q, k and v (batch, heads, length, features); a query attends to keys where `mask` is True.

    For jax.nn.dot_product_attention, which has the heads after the length, XLA transposes the whole cache on a CPU.
    """
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)), v)

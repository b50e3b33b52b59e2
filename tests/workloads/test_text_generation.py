"""A text is the same with a cache of keys and values and without, in NumPy; and what is chosen is fed back."""

import math
from typing import Any

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench.workload import Array, Arrays, NamedArrays
from accelbench.workloads import _transformer as transformer
from accelbench.workloads.text_generation import TextGeneration, split_blocks, uncached_logits
from launch.inside import inside

SIZES: dict[str, Any] = {"layers": 2, "width": 16, "heads": 2, "vocabulary": 24, "batch": 3, "prompt": 5, "tokens": 6}
GREEDY = """
import numpy as np
found = {}
for use in USES:
    adapter, program, work = prepare("text-generation", use, SIZES, precision="float64")
    state = work.fresh()
    state["text"] = adapter.put(np.array(TEXT))
    _, out = work.call(state, work.batches)
    exported = adapter.to_numpy(program.export(None, work.last_out(out)))
    found[use] = {name: array.tolist() for name, array in exported.items()}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def drawn() -> tuple[TextGeneration.Parameters, Arrays]:
    parameters = TextGeneration.Parameters(**SIZES)
    return parameters, inputs.generate(TextGeneration(), parameters, seed=0)


def attend(query: Array, keys: Array, values: Array) -> Array:
    """Return what one head's query attends to."""
    shares = np.exp(keys @ query / math.sqrt(len(query)))
    return shares @ values / shares.sum()


def decode_with_a_cache(text: Array, w: NamedArrays, p: TextGeneration.Parameters) -> Array:
    """Return the logits after each token of one text, (tokens of the text, vocabulary), token by token."""
    outside, *blocks = split_blocks(w, p.layers)
    cache: list[list[tuple[Array, Array]]] = [[] for _ in blocks]
    found = []
    for place, token in enumerate(text):
        x = w["embed"][token] + w["positions"][place]
        for block, remembered in zip(blocks, cache, strict=True):
            normalised, _ = transformer.normalise_vjp(x, block["gain1"], block["gain1_bias"])
            q, k, v = (
                part.reshape(p.heads, -1) for part in np.split(normalised @ block["attend"] + block["attend_bias"], 3)
            )
            remembered.append((k, v))
            keys, values = (np.array(array) for array in zip(*remembered, strict=True))
            attended = [attend(q[head], keys[:, head], values[:, head]) for head in range(p.heads)]
            x = x + np.concatenate(attended) @ block["project"] + block["project_bias"]
            normalised, _ = transformer.normalise_vjp(x, block["gain2"], block["gain2_bias"])
            hidden = normalised @ block["expand"] + block["expand_bias"]
            gelu = np.array([z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in hidden])
            x = x + gelu @ block["contract"] + block["contract_bias"]
        normalised, _ = transformer.normalise_vjp(x, outside["gain"], outside["gain_bias"])
        found.append(normalised @ outside["head"])
    return np.array(found)


def test_logits_with_a_cache_are_those_without(drawn: tuple[TextGeneration.Parameters, Arrays]) -> None:
    parameters, arrays = drawn
    outputs = TextGeneration().reference(parameters, arrays, units=1)
    for example, text in enumerate(arrays.state["text"]):
        cached = decode_with_a_cache(text, arrays.batches[0], parameters)[parameters.prompt - 1 :]
        assert outputs["scores"][example] == pytest.approx(cached.max(-1), abs=1e-13)
        assert outputs["logits"][example] == pytest.approx(cached[-1], abs=1e-13)


def test_the_second_text_begins_with_the_last_token_of_the_first(
    drawn: tuple[TextGeneration.Parameters, Arrays],
) -> None:
    parameters, arrays = drawn
    text = arrays.state["text"]
    rotated = np.concatenate([text[:, -1:], text[:, :-1]], 1)
    once = TextGeneration().reference(parameters, Arrays({**arrays.state, "text": rotated}, arrays.batches), units=1)
    twice = TextGeneration().reference(parameters, arrays, units=2)
    assert twice["scores"] == pytest.approx(once["scores"])


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["jax", "pytorch"])
def test_where_the_text_has_no_token_what_was_chosen_is_fed_back(
    framework: str, drawn: tuple[TextGeneration.Parameters, Arrays]
) -> None:
    """Every variant then writes the text that is chosen without a cache, token by token."""
    parameters, arrays = drawn
    weights, chosen = arrays.batches[0], arrays.state["text"].copy()
    for place in range(parameters.prompt, parameters.context):
        logits = uncached_logits(chosen, weights, parameters)
        chosen[:, place] = logits[:, place - parameters.prompt].argmax(-1)
    logits = uncached_logits(chosen, weights, parameters)
    text = arrays.state["text"].copy()
    text[:, parameters.prompt :] = -1
    uses = [
        use
        for use, kind in catalogue.find("text-generation").variants().items()
        if kind.framework == framework and kind.adapter_mode != "compile"
    ]
    code = GREEDY.replace("USES", repr(uses)).replace("SIZES", repr(SIZES)).replace("TEXT", repr(text.tolist()))
    found = inside(framework, code)
    assert found.keys() == set(uses)
    for use, outputs in found.items():
        assert np.array(outputs["scores"]) == pytest.approx(logits.max(-1), abs=1e-12), use
        assert np.array(outputs["logits"]) == pytest.approx(logits[:, -1], abs=1e-12), use

"""Each side as its community writes it: what can be counted of that."""

from typing import Any

import pytest

from accelbench import catalogue
from launch.inside import inside

pytestmark = pytest.mark.slow

TRAIN = {"work": "train", "layers": 2, "width": 16, "heads": 2, "image": 8, "patch": 4, "classes": 10}
DEEP = {"layers": 5, "width": 16, "batch": 8}
DECODER = {"model": "decoder", "layers": 2, "width": 64, "heads": 4, "vocabulary": 32, "context": 64}
GIVING_AWAY: list[tuple[str, str, dict[str, Any]]] = [
    ("mlp", "jax/jit", {}),
    ("cifar-cnn", "jax/jit", {"batch": 8, "channels": 4, "size": 8}),
    ("vit", "jax/jit", TRAIN),
    ("vit", "jax/jit-scanned", TRAIN),
    ("freeze-layers", "jax/jit", {**DEEP, "frozen": 2}),
    ("freeze-layers", "jax/jit-trained-only", {**DEEP, "frozen": 2}),
    ("activation-checkpointing", "jax/jit", DEEP),
    ("activation-checkpointing", "jax/jit-checkpoint", DEEP),
    ("activation-checkpointing", "jax/jit-scanned", DEEP),
    ("activation-checkpointing", "jax/jit-checkpoint-scanned", DEEP),
    ("mixed-precision", "jax/jit", DEEP),
    ("mixed-precision", "jax/jit-full", DEEP),
    ("heat-equation", "jax_set/jit", {"size": 16}),
    ("inference-latency", "jax/jit", DECODER),
]
GIVEN_AWAY = """
import jax
found = []
for workload, use, parameters in ASKED:
    adapter, program, work = prepare(workload, use, parameters)
    adapter.compile_ahead(work)
    state = sum(leaf.nbytes for leaf in jax.tree.leaves(work.fresh()))
    size = adapter.accounting.executable_size()
    found.append([state, size.aliased_bytes, size.temporary_bytes])
print(json.dumps(found))
"""
PRODUCTS = """
found = {}
for use in ("jax/jit-scanned", "jax/jit-checkpoint-scanned"):
    adapter, program, work = prepare("activation-checkpointing", use, {"layers": 8, "width": 16, "batch": 512})
    adapter.compile_ahead(work)
    size = adapter.accounting.executable_size()
    found[use] = [adapter.accounting.operations(work).operations.products, size.temporary_bytes]
print(json.dumps(found))
"""
BLOCKS = """
from torch._dynamo.utils import counters
adapter, program, work = prepare(WORKLOAD, USE, {})
work.call(work.fresh(), work.batches)
first, in_place = counters["stats"]["unique_graphs"], []
for _ in range(3):
    given = state = work.fresh()
    for _ in range(2):
        state, out = work.call(state, work.batches)
    in_place.append(all(state[name].data_ptr() == given[name].data_ptr() for name in given))
print(json.dumps([first, counters["stats"]["unique_graphs"] - first, in_place]))
"""


@pytest.fixture(scope="module")
def sizes() -> list[list[int]]:
    """For each program that gives its state away: the bytes of the state, those reused, and the temporary bytes."""
    found: list[list[int]] = inside("jax", GIVEN_AWAY.replace("ASKED", repr(GIVING_AWAY)))
    return found


def test_a_step_in_jax_reuses_the_memory_of_a_state_that_is_given_away(sizes: list[list[int]]) -> None:
    for (state, aliased, _temporary), asked in zip(sizes, GIVING_AWAY, strict=True):
        assert aliased == state, asked


def test_a_decoder_in_jax_copies_neither_its_weights_nor_its_cache(sizes: list[list[int]]) -> None:
    [(cache, _aliased, temporary)] = [
        size for size, asked in zip(sizes, GIVING_AWAY, strict=True) if asked[2] is DECODER
    ]
    assert temporary < cache / 4


def test_a_checkpoint_in_a_scan_recomputes_and_takes_less_memory() -> None:
    found = inside("jax", PRODUCTS)
    (kept, kept_bytes), (again, again_bytes) = found["jax/jit-scanned"], found["jax/jit-checkpoint-scanned"]
    # In a scan every layer passes a gradient on, the first one too.
    assert kept == 8 + 8 + 8
    assert again >= kept + 8
    assert again_bytes < kept_bytes


@pytest.mark.parametrize(
    ("workload", "use", "graphs"),
    [
        ("mlp", "pytorch/compile-step", 2),
        pytest.param("linear-regression", "pytorch/compile-whole", 1, marks=pytest.mark.nightly),
        pytest.param("mlp", "pytorch/compile-whole", 1, marks=pytest.mark.nightly),
    ],
)
def test_a_compiled_step_is_compiled_once_for_all_blocks(workload: str, use: str, graphs: int) -> None:
    """And works in place: the whole of it in one graph, or loss and optimiser in two."""
    code = BLOCKS.replace("WORKLOAD", repr(workload)).replace("USE", repr(use))
    made, again, in_place = inside("pytorch", code)
    assert (made, again) == (graphs, 0)
    assert in_place == [True] * 3


def test_an_optimizer_step_uses_more_memory_than_caches_hold() -> None:
    workload = catalogue.find("optimizer-step")
    assert workload.cost(workload.Parameters(), 4).bytes > 4 * 2**26

"""The analytic cost of a workload is what compilers count, at sizes small enough to be unrolled."""

from typing import Any

import pytest

from accelbench import catalogue
from launch.inside import inside

pytestmark = pytest.mark.slow

WITHIN = 0.05
BY_XLA: list[tuple[str, str, dict[str, Any]]] = [
    ("matmul-chain", "jax/jit", {"size": 64}),
    ("elementwise-fusion", "jax/jit", {"size": 1000}),
    ("elementwise-fusion", "jax/jit", {"size": 1000, "form": "chain"}),
    ("dispatch-overhead", "jax/jit", {"size": 1000}),
    ("mlp", "jax/jit", {}),
    ("mlp", "jax/jit", {"work": "predict", "outputs": 3}),
    ("linear-regression", "jax/jit", {"samples": 1000}),
    ("layer-norm", "jax/jit", {"rows": 8, "features": 64}),
    ("maxsim", "jax/jit", {"documents": 16}),
    ("loop-unrolling", "jax/jit", {"length": 40}),
    ("loop-unrolling", "jax/jit", {"length": 40, "body": "sine"}),
    ("inplace-update", "jax/jit", {"size": 1000}),
    ("inplace-update", "jax/jit", {"size": 1000, "updates": 3, "update": "sine"}),
    ("inplace-update", "jax/jit", {"size": 2560, "updates": 3, "update": "row"}),
    ("optimizer-step", "jax/jit", {"size": 1000}),
    ("cifar-cnn", "jax/jit", {"batch": 8, "channels": 16, "size": 16}),
    ("resnet", "jax/jit", {"depth": 14, "width": 16, "image": 64, "batch": 2}),
    ("freeze-layers", "jax/jit-trained-only", {"width": 64}),
    ("activation-checkpointing", "jax/jit", {"width": 64, "batch": 64}),
    ("mixed-precision", "jax/jit", {"width": 64, "batch": 64}),
    ("heat-equation", "jax/jit", {"size": 64}),
    ("lennard-jones", "jax/jit", {"cells": 3}),
    ("cartpole-rollout", "jax/op-by-op", {"environments": 64, "steps": 1}),
    ("neural-ode", "jax/jit", {"steps": 1}),
    ("neural-ode", "jax/jit", {"steps": 1, "work": "train", "batch": 64, "hidden": 64}),
    ("export", "jax/jit", {"width": 64}),
    ("inference-latency", "jax/jit", {}),
    ("inference-latency", "jax/jit", {"model": "decoder"}),
    ("quantized-linear", "jax/jit", {"batch": 8}),
    ("per-example-gradients", "jax/jit-by-hand", {"width": 64}),
    ("vmap", "jax/jit", {"rows": 100}),
    ("vmap", "jax/jit", {"rows": 100, "function": "square"}),
    ("hessian", "jax/jit-by-hand", {"size": 64}),
    ("hessian", "jax/jit-by-hand", {"size": 64, "of": "product"}),
    ("joint-gradient", "jax/jit", {"width": 64, "batch": 64}),
    ("vit", "jax/jit", {"layers": 2, "width": 256, "heads": 4, "image": 64}),
    ("vit", "jax/jit", {"layers": 2, "width": 256, "heads": 4, "image": 64, "work": "train"}),
    ("transformer-lm", "jax/jit", {"layers": 2, "width": 256}),
    ("text-generation", "jax/jit", {"layers": 2, "width": 512, "tokens": 2}),
]
"""Each operation counts as one, a sine or a root too. """
NOT_BY_XLA = {
    "xor": "of nine numbers nearly all is overhead",
    "variable-length": "what it declares is the mean over its lengths; its blocks are those of vit",
    "checkpoint": "it computes nothing",
    "keras-mlp": "its cost is that of mlp",
    "dlpack": "it computes nothing",
    "composed-gradients": "what it declares is the closed form, which no variant computes",
    "photometric-stereo": "its cost is that of the closed form; a fit takes as much more as its optimiser needs",
}
BY_TORCH: list[tuple[str, str, dict[str, Any]]] = [
    ("matmul-chain", "pytorch/eager", {"size": 64}),
    ("maxsim", "pytorch/eager", {"documents": 16}),
    ("mlp", "pytorch/eager", {"inputs": 128, "hidden": 256, "outputs": 64, "batch": 64}),
    ("freeze-layers", "pytorch/eager", {"width": 256, "batch": 256}),
    ("activation-checkpointing", "pytorch/eager", {"width": 256, "batch": 256}),
    ("mixed-precision", "pytorch/eager", {"width": 256, "batch": 256}),
    ("export", "pytorch/eager", {}),
    ("quantized-linear", "pytorch/eager", {"batch": 8}),
    ("joint-gradient", "pytorch/eager", {}),
    ("vit", "pytorch/eager", {"layers": 2, "width": 256, "heads": 4, "image": 64}),
    ("vit", "pytorch/eager", {"layers": 2, "width": 512, "heads": 4, "image": 64, "work": "train"}),
    ("transformer-lm", "pytorch/eager", {"layers": 2, "width": 256}),
    ("text-generation", "pytorch/eager", {"layers": 2, "width": 256}),
]
"""FlopCounterMode counts products alone: of workloads, or at sizes, that are little else."""
NOT_BY_TORCH = NOT_BY_XLA | {
    "cifar-cnn": "it counts what a convolution would multiply at the padding's zeros, a sixth of all; XLA does not",
    "resnet": "the same, in its convolutions of 3 x 3",
    "inference-latency": "the same, and a decoder's products are of a single row",
    "elementwise-fusion": "no products",
    "dispatch-overhead": "no products",
    "linear-regression": "its products are of a matrix and a vector, which are not counted",
    "layer-norm": "no products",
    "loop-unrolling": "no products",
    "inplace-update": "no products",
    "optimizer-step": "no products",
    "per-example-gradients": "a fifth of it is outer products, which are written as multiplications",
    "vmap": "no products",
    "hessian": "half of its products are of a matrix and a vector, which are not counted",
    "heat-equation": "no products",
    "lennard-jones": "no products",
    "cartpole-rollout": "no products",
    "neural-ode": "a pendulum takes no products, and a small network half of its operations",
}
XLA = """
import jax
counted = []
for workload, use, parameters in ASKED:
    _, program, _ = prepare(workload, use, parameters)
    cost = jax.jit(program.step).lower(program.state, program.batches[0]).cost_analysis()
    counted.append(cost["flops"] + cost.get("transcendentals", 0))
print(json.dumps(counted))
"""
TORCH = """
from torch.utils.flop_counter import FlopCounterMode
counted = []
for workload, use, parameters in ASKED:
    _, program, _ = prepare(workload, use, parameters)
    with FlopCounterMode(display=False) as counter:
        program.step(program.state, program.batches[0])
    counted.append(counter.get_total_flops())
print(json.dumps(counted))
"""


def declared(asked: list[tuple[str, str, dict[str, Any]]]) -> list[float]:
    workloads = [(catalogue.find(name), parameters) for name, _, parameters in asked]
    return [workload.cost(catalogue.parse_parameters(workload, given), 4).flops for workload, given in workloads]


def test_every_declared_cost_is_compared_with_both_frameworks() -> None:
    timed = {
        name
        for name in catalogue.names()
        if catalogue.find(name).measure(catalogue.find(name).Parameters()).protocol != "observe"
    }
    assert {name for name, _, _ in BY_XLA} == timed - NOT_BY_XLA.keys()
    assert {name for name, _, _ in BY_TORCH} == timed - NOT_BY_TORCH.keys()


def test_analytic_operations_are_those_that_xla_counts() -> None:
    counted = inside("jax", XLA.replace("ASKED", repr(BY_XLA)))
    assert counted == pytest.approx(declared(BY_XLA), rel=WITHIN)


def test_analytic_operations_are_those_that_torch_counts() -> None:
    counted = inside("pytorch", TORCH.replace("ASKED", repr(BY_TORCH)))
    assert counted == pytest.approx(declared(BY_TORCH), rel=WITHIN)

"""The behaviour of JAX and PyTorch, by variant: the observations behind claims."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accelbench import catalogue
from accelbench.catalogue.observations import Scalar, names
from accelbench_runner.launch.observe import check_names
from observe.observing import Asked, to_json

ONCE = {"compilationsByCall": "1, 0, 0, 0", "raised": "nothing"}
NEVER = {"compilations": 0, "raised": "nothing"}
RESUME = (("size", 100), ("asks", "resume"))
SHARING = (("asks", "sharing"), ("size", 1000))
DERIVATIVES = {"first": "7, 1, 3, 4", "second": "2, 2, 2, 2", "raised": "nothing"}
CURVE = (("epochs", 3),)
SIGNALS = (("epochs", 3), ("data", "mnist1d"))
SAME = (("layers", 2), ("width", 16), ("batch", 8), ("asks", "same"))
LENGTHS = (("shortening", 8), ("width", 16), ("asks", "compilations"))
EXPECTED: list[tuple[Asked, dict[str, Scalar]]] = [
    (Asked("selu", "jax/jit"), {"calls": 5, "compilationsByCall": "1, 0, 1, 0, 1", "values": "1.2957, 5.9619"}),
    (Asked("selu", "pytorch/compile"), {"compilationsByCall": "1, 0, 1, 0, 1", "values": "1.2957, 5.9619"}),
    (Asked("selu", "jax/op-by-op"), {"values": "1.2957, 5.9619"}),
    (Asked("selu", "pytorch/eager"), NEVER | {"values": "1.2957, 5.9619"}),
    (Asked("selu", "jax/jit-built-in"), {"compilationsByCall": "1, 0, 1, 0, 1", "values": "1.29657, 5.96588"}),
    (Asked("selu", "pytorch/built-in"), NEVER | {"values": "1.29657, 5.96588"}),
    (
        Asked("data-dependent-branch", "jax/jit"),
        {
            "compilations": 0,
            "raised": "TracerBoolConversionError",
            "raisedCalls": 4,
            "message": "Attempted boolean conversion of traced array with shape bool[].",
            "sums": "-, -, -, -",
        },
    ),
    (Asked("data-dependent-branch", "jax/op-by-op"), {"raised": "nothing", "sums": "2, 1, 2, 1"}),
    (Asked("data-dependent-branch", "jax/jit-cond"), ONCE | {"sums": "2, 1, 2, 1"}),
    (Asked("data-dependent-branch", "jax/jit-where"), ONCE | {"sums": "2, 1, 2, 1"}),
    (Asked("data-dependent-branch", "pytorch/compile-cond"), ONCE | {"sums": "2, 1, 2, 1"}),
    (Asked("data-dependent-branch", "pytorch/compile-where"), ONCE | {"sums": "2, 1, 2, 1"}),
    (Asked("data-dependent-branch", "pytorch/eager"), NEVER | {"sums": "2, 1, 2, 1"}),
    (
        Asked("data-dependent-branch", "pytorch/compile"),
        {"compilationsByCall": "2, 1, 0, 0", "raised": "nothing", "sums": "2, 1, 2, 1"},
    ),
    (
        Asked("data-dependent-branch", "pytorch/compile", options=(("fullgraph", True),)),
        {"raisedCalls": 4, "sums": "-, -, -, -"},
    ),
    (Asked("retrace-traps", "jax/jit"), ONCE | {"sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "jax/op-by-op"), {"sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "jax/jit-fresh-lambda"), {"compilationsByCall": "1, 1, 1, 1", "sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "jax/jit-fixed-size"), ONCE | {"sums": "1, 2, 3, 4"}),
    (
        Asked("retrace-traps", "jax/jit-boolean-mask"),
        {"compilations": 0, "raised": "NonConcreteBooleanIndexError", "raisedCalls": 4},
    ),
    (Asked("retrace-traps", "jax/jit-mask-outside"), {"compilationsByCall": "1, 1, 1, 1", "sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "jax/jit-mask-outside-sum"), {"compilationsByCall": "1, 1, 1, 1", "sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "pytorch/eager"), NEVER | {"sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "pytorch/compile"), ONCE | {"sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "pytorch/compile-fresh-lambda"), ONCE | {"sums": "1, 2, 3, 4"}),
    (Asked("retrace-traps", "pytorch/compile-boolean-mask"), {"raised": "nothing", "sums": "1, 2, 3, 4"}),
    (Asked("captured-global", "jax/jit"), {"values": "11, 11", "compilationsByCall": "1, 0"}),
    (Asked("captured-global", "jax/op-by-op"), {"values": "11, 101"}),
    (Asked("captured-global", "pytorch/eager"), NEVER | {"values": "11, 101"}),
    (Asked("captured-global", "pytorch/compile"), {"values": "11, 101", "compilationsByCall": "1, 1"}),
    (Asked("side-effects", "jax/jit"), ONCE | {"sideEffects": 1}),
    (Asked("side-effects", "jax/op-by-op"), {"sideEffects": 4}),
    (Asked("side-effects", "pytorch/eager"), NEVER | {"sideEffects": 4}),
    (Asked("side-effects", "pytorch/compile"), {"sideEffects": 4, "raised": "nothing"}),
    (Asked("rng", "jax/jit-reused-key"), ONCE | {"distinctMasks": 1, "masksAlike": True}),
    (Asked("rng", "jax/jit-split-key"), {"raised": "nothing", "distinctMasks": 4, "masksAlike": False}),
    (Asked("rng", "jax/jit-reused-key-checked"), {"raised": "KeyReuseError", "raisedCalls": 3, "distinctMasks": 1}),
    (Asked("rng", "pytorch/eager"), NEVER | {"distinctMasks": 4}),
    (Asked("rng", "pytorch/compile"), ONCE | {"distinctMasks": 4}),
    (Asked("rng", "pytorch/threads"), {"raised": "nothing", "masksAlike": False}),
    (Asked("rng", "pytorch/threads-own-generator"), {"raised": "nothing", "masksAlike": True}),
    (Asked("rng", "jax/threads"), {"raised": "nothing", "masksAlike": True}),
    (Asked("checkpoint", "jax/orbax", RESUME), {"raised": "nothing", "bitwiseResumes": 4, "largestDifference": 0}),
    (Asked("checkpoint", "jax/orbax-parameters-only", RESUME), {"raised": "nothing", "bitwiseResumes": 1}),
    (Asked("checkpoint", "pytorch/save", RESUME), {"raised": "nothing", "bitwiseResumes": 4, "largestDifference": 0}),
    (Asked("checkpoint", "pytorch/save-parameters-only", RESUME), {"raised": "nothing", "bitwiseResumes": 1}),
    (Asked("checkpoint", "pytorch/distributed", RESUME), {"raised": "nothing", "bitwiseResumes": 4}),
    (
        Asked("export", "jax/export", SAME),
        {"raised": "nothing", "bitwiseEqual": True, "otherBatch": True, "platforms": "cpu, cuda, tpu"},
    ),
    (
        Asked("export", "pytorch/export", SAME),
        {"raised": "nothing", "bitwiseEqual": True, "otherBatch": True, "platforms": "any"},
    ),
    (
        Asked("variable-length", "jax/jit", LENGTHS),
        {"compilationsByCall": "1, 1, 1, 1, 0, 0, 0, 0", "shapes": 4, "paddingShare": 0},
    ),
    (Asked("variable-length", "jax/jit-padded", LENGTHS), {"compilations": 1, "shapes": 1}),
    (Asked("variable-length", "jax/jit-bucketed", LENGTHS), {"compilations": 3, "shapes": 3}),
    (Asked("variable-length", "pytorch/eager", LENGTHS), NEVER),
    (Asked("variable-length", "pytorch/compile", LENGTHS), {"compilationsByCall": "1, 1, 0, 0, 0, 0, 0, 0"}),
    (
        Asked("variable-length", "pytorch/compile", LENGTHS, (("dynamic", "false"),)),
        {"compilationsByCall": "1, 1, 1, 1, 0, 0, 0, 0"},
    ),
    (Asked("training-curve", "jax/jit", CURVE), {"compilationsByCall": "3, 0, 0", "raised": "nothing"}),
    (Asked("training-curve", "jax/scan", CURVE), {"compilationsByCall": "2, 0, 0", "raised": "nothing"}),
    (Asked("training-curve", "pytorch/eager", CURVE), NEVER),
    (Asked("training-curve", "pytorch/compile", CURVE), {"compilationsByCall": "1, 0, 0", "raised": "nothing"}),
    (Asked("training-curve", "jax/scan", SIGNALS), {"raised": "nothing"}),
    (Asked("training-curve", "pytorch/eager", SIGNALS), NEVER),
    (Asked("any-platform", "jax/product"), {"raised": "nothing", "lowered": "yes, yes, yes"}),
    (Asked("any-platform", "jax/eigenvalues"), {"raised": "NotImplementedError", "lowered": "yes, yes, -"}),
    (Asked("any-platform", "jax/schur"), {"raised": "NotImplementedError", "lowered": "yes, -, -"}),
    (Asked("composed-transforms", "jax/jit"), DERIVATIVES | {"compilations": 1}),
    (Asked("composed-transforms", "jax/op-by-op"), DERIVATIVES),
    (Asked("composed-transforms", "pytorch/eager"), DERIVATIVES | NEVER),
    (Asked("composed-transforms", "pytorch/compile"), DERIVATIVES | {"compilations": 1}),
    (Asked("composed-transforms", "pytorch/create-graph"), DERIVATIVES | NEVER),
    (Asked("adversarial-gradient", "jax/jit"), {"raised": "nothing", "gradientOf": "data, data"}),
    (Asked("adversarial-gradient", "jax/jit-forgotten"), {"raised": "nothing", "gradientOf": "weights, weights"}),
    (Asked("adversarial-gradient", "jax/jit-labels-first"), {"raised": "TypeError", "raisedCalls": 2}),
    (Asked("adversarial-gradient", "pytorch/eager"), NEVER | {"gradientOf": "data, data"}),
    (Asked("adversarial-gradient", "pytorch/forgotten"), {"raised": "RuntimeError", "raisedCalls": 2}),
    (Asked("adversarial-gradient", "pytorch/func"), NEVER | {"gradientOf": "data, data"}),
    (Asked("adversarial-gradient", "pytorch/func-forgotten"), NEVER | {"gradientOf": "weights, weights"}),
    (
        Asked("dlpack", "jax/from-torch", SHARING),
        {
            "memory": "same, same, copied, same, same, copied, -",
            "types": "float32, bfloat16, int32, bool, float32, float32, -",
            "zeros": "seen, seen, unseen, seen, seen, unseen, -",
            "raised": "BufferError",
        },
    ),
    (
        Asked("dlpack", "jax/copied-from-torch", SHARING),
        {"memory": "copied, -, copied, copied, copied, copied, -", "raised": "TypeError"},
    ),
    (
        Asked("dlpack", "pytorch/from-jax", SHARING),
        {
            "memory": "same, same, same, same",
            "types": "float32, bfloat16, int32, bool",
            "zeros": "seen, seen, seen, seen",
        },
    ),
    (Asked("dlpack", "pytorch/copied-from-jax", SHARING), {"memory": "copied, -, copied, copied"}),
    (Asked("dlpack", "pytorch/from-jax-as-published", SHARING), {"raised": "AttributeError", "raisedCalls": 4}),
    (
        Asked("static-argument-recompile", "jax/jit-static"),
        {"compilationsByCall": "1, 1, 1, 1, 0, 0, 0, 0", "lengths": "10, 20, 30, 40, 10, 20, 30, 40"},
    ),
    (Asked("static-argument-recompile", "jax/jit"), {"compilations": 0, "raised": "IndexError", "raisedCalls": 8}),
    (
        Asked("static-argument-recompile", "pytorch/eager"),
        NEVER | {"lengths": "10, 20, 30, 40, 10, 20, 30, 40"},
    ),
    (
        Asked("static-argument-recompile", "pytorch/compile"),
        {"compilationsByCall": "1, 1, 0, 0, 0, 0, 0, 0", "lengths": "10, 20, 30, 40, 10, 20, 30, 40"},
    ),
]
WRONG = {
    "Elu": (Asked("selu", "jax/jit"), "values"),
    "BranchesExchanged": (Asked("data-dependent-branch", "jax/jit-where"), "sums"),
    "FilledWithTheFirst": (Asked("retrace-traps", "jax/jit-fixed-size"), "sums"),
    "GivenAsAnArgument": (Asked("captured-global", "jax/jit"), "values"),
    "NotedByTheCaller": (Asked("side-effects", "jax/jit"), "sideEffects"),
    "KeyNotCarried": (Asked("rng", "jax/jit-split-key"), "distinctMasks"),
    "OneTooFew": (Asked("static-argument-recompile", "jax/jit-static"), "lengths"),
    "PlatformForgotten": (Asked("any-platform", "jax/eigenvalues"), "lowered"),
    "DifferentiatedTwice": (Asked("composed-transforms", "jax/jit"), "first"),
    "ByTheFirstArgument": (Asked("adversarial-gradient", "jax/jit"), "gradientOf"),
    "WrongOrderOfUnits": (Asked("training-curve", "pytorch/eager", CURVE), "largestRelativeDifference"),
    "OtherRate": (Asked("training-curve", "jax/scan", CURVE), "largestRelativeDifference"),
    "OtherMiniBatches": (Asked("training-curve", "jax/jit", CURVE), "largestRelativeDifference"),
}
ALIKE = 1e-4
"""How far losses may lie from those in float64, as a share: what float32 leaves after three epochs is below 1e-5."""
MUTANTS = {mutant: replace(right, workload=f"observe.mutants:{mutant}") for mutant, (right, _) in WRONG.items()}
OBSERVED = [
    name
    for name in catalogue.names()
    if catalogue.find(name).measure(catalogue.find(name).Parameters()).protocol == "observe"
]
Observe = Callable[[Asked], dict[str, Any]]


@pytest.fixture(scope="session")
def observe() -> Observe:
    """What one framework does: observed when first asked for, in one process that imports no other."""
    found: dict[str, dict[Asked, dict[str, Any]]] = {}

    def observe(asked: Asked) -> dict[str, Any]:
        if asked.framework not in found:
            found[asked.framework] = {}  # should the process fail, it is not started for every row again
            everything = [*(each for each, _ in EXPECTED), *MUTANTS.values()]
            questions = [each for each in everything if each.framework == asked.framework]
            done = subprocess.run(
                [sys.executable, "-m", "observe.observing"],
                input=to_json(questions),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
                },
            )
            found[asked.framework] = dict(zip(questions, json.loads(done.stdout), strict=True))
        return found[asked.framework][asked]

    return observe


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "expected"), EXPECTED, ids=str)
def test_a_variant_shows_the_expected_observations(asked: Asked, expected: dict[str, Scalar], observe: Observe) -> None:
    found = observe(asked)
    assert {name: found.get(name) for name in expected} == expected
    assert found.keys() <= set(names(catalogue.find(asked.workload)))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [asked for asked, _ in EXPECTED if asked.workload == "training-curve"], ids=str)
def test_training_on_real_data_learns_alike_in_all_variants(asked: Asked, observe: Observe) -> None:
    found = observe(asked)
    losses = [float(loss) for loss in found["losses"].split(", ")]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) == 3
    assert found["testAccuracy"] > (0.85 if asked.parameters == CURVE else 0.2)
    assert found["largestRelativeDifference"] < ALIKE


@pytest.mark.slow
@pytest.mark.parametrize("mutant", WRONG)
def test_a_wrong_program_is_observed_to_be_wrong(mutant: str, observe: Observe) -> None:
    right, observation = WRONG[mutant]
    found, wanted = observe(MUTANTS[mutant])[observation], observe(right)[observation]
    tolerance = ALIKE if observation == "largestRelativeDifference" else 0
    assert found != pytest.approx(wanted, abs=tolerance)


def test_every_observed_workload_has_a_mutant() -> None:
    assert {right.workload for right, _ in WRONG.values()} == set(OBSERVED)


@pytest.mark.parametrize("name", OBSERVED)
def test_every_variant_of_an_observed_workload_is_tested(name: str) -> None:
    assert {asked.use for asked, _ in EXPECTED if asked.workload == name} == catalogue.find(name).variants().keys()


@pytest.mark.parametrize("name", OBSERVED)
def test_what_a_workload_observes_has_names_that_a_result_can_hold(name: str) -> None:
    check_names(catalogue.find(name).observes)


def test_observed_workloads_are_found() -> None:
    assert {"selu", "retrace-traps", "data-dependent-branch"} <= set(OBSERVED)

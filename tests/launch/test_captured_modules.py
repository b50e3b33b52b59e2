"""Modules and optimizers that functions capture: their type, their state, and whose gradients are whose."""

from typing import Any

import numpy as np
import pytest

from launch.inside import inside

pytestmark = pytest.mark.slow

BLOCKS = """
import numpy as np
from accelbench.frameworks import Options
from accelbench.workload import Program

X = np.random.default_rng(0).standard_normal((16, 4))

def blocks(function, mode, precision="float32", calls=2, differentiates=False, rounded=None):
    "Return what the last call of each of two blocks returned, and the type of that."
    adapter = Adapter(AdapterSettings(mode, Options(), "cpu", precision, 1, differentiates, rounded=rounded))
    adapter.initialise()
    program = Program(state={}, step=lambda state, batch: (state, function(**batch)), batches=[adapter.put({"x": X})])
    work = adapter.prepare(adapter.convert_captured(program))
    results = []
    for _ in range(2):
        state = work.fresh()
        for _ in range(calls):
            state, out = work.call(state, work.batches)
        results.append(adapter.to_numpy({"y": out})["y"].tolist())
    return results, str(out.dtype), adapter.changed_captured()
"""

PYTORCH = """
import copy, torch
torch.manual_seed(0)
layer = torch.nn.Linear(4, 2)
same_layer = copy.deepcopy(layer)
net = torch.nn.Sequential(torch.nn.Linear(4, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
fresh = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

def seeded(x):
    torch.manual_seed(0)
    return torch.nn.functional.dropout(torch.nn.Linear(4, 2)(x))

def train(net, optimizer, x):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    return torch.cat([net[0].weight.flatten(), net[1].running_mean])

def slope(x):
    x.requires_grad_()
    x.square().sum().backward()
    return x.grad

found = {
    "narrow": blocks(lambda x: layer(x), "eager", "bfloat16"),
    "wide": blocks(lambda x: same_layer(x), "eager", "float64", rounded="bfloat16"),
    "trained": blocks(lambda x: train(net, optimizer, x), "eager", differentiates=True, calls=2),
    "slope": blocks(slope, "eager", differentiates=True, calls=3),
}
found["seeded"] = [blocks(seeded, "eager", "float32"), blocks(seeded, "eager", "float64", rounded="float32")]
torch.set_grad_enabled(True)
torch.set_default_dtype(torch.float32)
optimizer = torch.optim.Adam(fresh.parameters(), lr=0.1)
x = torch.tensor(X, dtype=torch.float32)
found["by hand"] = [train(fresh, optimizer, x).tolist() for _ in range(2)][-1]
print(json.dumps(found))
"""

JAX = """
import jax, jax.numpy as jnp, optax
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        self.first, self.norm = nnx.Linear(4, 8, use_bias=False, rngs=rngs), nnx.BatchNorm(8, rngs=rngs)
        self.last = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.norm(self.first(x)))

def train(net, optimizer, x):
    slopes = nnx.grad(lambda net: jnp.mean(net(x) ** 2))(net)
    optimizer.update(net, slopes)
    return jnp.concatenate([net.first.kernel.get_value().ravel(), net.norm.mean.get_value()])

def made():
    net = Net(nnx.Rngs(0))
    return net, nnx.Optimizer(net, optax.adam(0.1), wrt=nnx.Param)

def trained(mode):
    net, optimizer = made()
    return blocks(lambda x: train(net, optimizer, x), mode)

layer, weights = nnx.Linear(4, 2, rngs=nnx.Rngs(0)), {"w": jnp.ones((4, 2), jnp.float32)}
found = {
    "narrow": blocks(lambda x: layer(x), "jit", "bfloat16"),
    "narrow array": blocks(lambda x: x @ weights["w"], "jit", "bfloat16"),
    "jit": trained("jit"),
    "op-by-op": trained("op-by-op"),
}
net, optimizer = made()
x = jnp.asarray(X, jnp.float32)
found["by hand"] = [train(net, optimizer, x).tolist() for _ in range(2)][-1]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def pytorch() -> dict[str, Any]:
    found: dict[str, Any] = inside("pytorch", BLOCKS + PYTORCH)
    return found


@pytest.fixture(scope="module")
def jax() -> dict[str, Any]:
    found: dict[str, Any] = inside("jax", BLOCKS + JAX)
    return found


def test_a_module_of_pytorch_has_the_policys_type_and_in_float64_the_weights_that_launches_have(
    pytorch: dict[str, Any],
) -> None:
    (narrow, _), narrow_type, _ = pytorch["narrow"]
    (wide, _), wide_type, _ = pytorch["wide"]
    assert (narrow_type, wide_type) == ("torch.bfloat16", "torch.float64")
    # Not exactly, because x is rounded in one of them.
    np.testing.assert_allclose(narrow, wide, rtol=0.03, atol=0.03)


def test_the_same_seed_draws_the_same_numbers_in_float64(pytorch: dict[str, Any]) -> None:
    ((narrow, _), narrow_type, _), ((wide, _), wide_type, _) = pytorch["seeded"]
    assert (narrow_type, wide_type) == ("torch.float32", "torch.float64")
    np.testing.assert_allclose(narrow, wide, rtol=1e-5, atol=1e-6)


def test_every_block_starts_with_the_module_and_the_optimizer_as_they_were(pytorch: dict[str, Any]) -> None:
    (first, second), _, changed = pytorch["trained"]
    assert first == second == pytorch["by hand"]
    assert {"net.0.weight", "net.1.running_mean"} <= set(changed)


def test_gradients_of_inputs_do_not_add_up_from_call_to_call(pytorch: dict[str, Any]) -> None:
    (first, second), _, _ = pytorch["slope"]
    x = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    np.testing.assert_array_equal(first, 2 * x)
    np.testing.assert_array_equal(second, 2 * x)


@pytest.mark.parametrize("captured", ["narrow", "narrow array"])
def test_arrays_that_jax_captures_have_the_policys_type(jax: dict[str, Any], captured: str) -> None:
    _, found_type, _ = jax[captured]
    assert found_type == "bfloat16"


@pytest.mark.parametrize("mode", ["jit", "op-by-op"])
def test_modules_of_nnx_are_state(jax: dict[str, Any], mode: str) -> None:
    (first, second), _, _ = jax[mode]
    assert first == second
    np.testing.assert_allclose(first, jax["by hand"], rtol=1e-5, atol=1e-6)

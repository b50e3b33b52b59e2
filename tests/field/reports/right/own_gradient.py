"""Ask for the latency of a small function and its gradient, where the gradient is written by hand.

The function is the sum of sin(x) y. In JAX with custom_vjp and without, in PyTorch with autograd.Function.
"""

import jax
import jax.numpy as jnp
import torch

import accelbench


@jax.custom_vjp
def sin_times(x, y):
    return jnp.sin(x) * y


def forward(x, y):
    return sin_times(x, y), (jnp.cos(x), jnp.sin(x), y)


def backward(saved, g):
    cos_x, sin_x, y = saved
    return cos_x * g * y, sin_x * g


sin_times.defvjp(forward, backward)


class SinTimes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.sin(x) * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return torch.cos(x) * g * y, torch.sin(x) * g


def with_custom_vjp(x, y):
    value, gradients = jax.value_and_grad(lambda x, y: sin_times(x, y).sum(), argnums=(0, 1))(x, y)
    return value, *gradients


def without(x, y):
    value, gradients = jax.value_and_grad(lambda x, y: (jnp.sin(x) * y).sum(), argnums=(0, 1))(x, y)
    return value, *gradients


def with_function(x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    value = SinTimes.apply(x, y).sum()
    value.backward()
    return value, x.grad, y.grad


if __name__ == "__main__":
    accelbench.compare(
        jax=with_custom_vjp,
        jax_plain=without,
        pytorch=with_function,
        arrays=lambda rng: {"x": rng.standard_normal(4000), "y": rng.standard_normal(4000)},
        measure={"protocol": "latency"},
        name="own-gradient",
    )

"""Run the same LSTM as a torch.nn.LSTM and as a flax cell with the converted weights.

PyTorch has two biases per gate and flax one: the flax cell gets their sum. Outputs: the hidden states of all steps and
the last cell state.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy
import torch

import accelbench

FEATURES, HIDDEN = 32, 64

torch.manual_seed(0)
lstm = torch.nn.LSTM(FEATURES, HIDDEN, batch_first=True)
cell = nn.OptimizedLSTMCell(HIDDEN)


def converted(lstm):
    """Convert the weights: PyTorch stacks the gates i, f, g, o along the first axis."""
    w_i = numpy.split(lstm.weight_ih_l0.detach().numpy(), 4)
    w_h = numpy.split(lstm.weight_hh_l0.detach().numpy(), 4)
    bias = numpy.split((lstm.bias_ih_l0 + lstm.bias_hh_l0).detach().numpy(), 4)
    params = {}
    for k, gate in enumerate("ifgo"):
        params["i" + gate] = {"kernel": jnp.asarray(w_i[k].T)}
        params["h" + gate] = {"kernel": jnp.asarray(w_h[k].T), "bias": jnp.asarray(bias[k])}
    return params


params = converted(lstm)


def flax_lstm(x):
    zeros = jnp.zeros((x.shape[0], HIDDEN), x.dtype)

    def step(carry, x_t):
        return cell.apply({"params": params}, carry, x_t)

    (c, h), hidden = jax.lax.scan(step, (zeros, zeros), x.swapaxes(0, 1))
    return {"hidden": hidden.swapaxes(0, 1), "cell": c}


def torch_lstm(x):
    hidden, (h, c) = lstm(x)
    return {"hidden": hidden, "cell": c[0]}


if __name__ == "__main__":
    found = accelbench.compare(
        jax=flax_lstm,
        pytorch=torch_lstm,
        arrays={"x": numpy.random.default_rng(0).standard_normal((16, 50, FEATURES))},
        variants=["pytorch/eager", "jax/jit"],
        name="lstm-port",
    )
    print(found)

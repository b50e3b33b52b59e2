"""Compute the loss of a variational autoencoder, as modules of PyTorch and of flax.

A notebook cell. Both models are made once, hold their own weights, and are used by the two functions; the noise of
the reparametrisation is an input.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from flax import nnx
from torch import nn

import accelbench

PIXELS, HIDDEN, LATENT = 784, 128, 16


class TorchVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(PIXELS, HIDDEN)
        self.mean = nn.Linear(HIDDEN, LATENT)
        self.log_variance = nn.Linear(HIDDEN, LATENT)
        self.fc2 = nn.Linear(LATENT, HIDDEN)
        self.fc3 = nn.Linear(HIDDEN, PIXELS)

    def forward(self, x, noise):
        h = torch.relu(self.fc1(x))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.exp(0.5 * log_variance) * noise
        return self.fc3(torch.relu(self.fc2(z))), mean, log_variance


class FlaxVae(nnx.Module):
    def __init__(self, rngs):
        self.fc1 = nnx.Linear(PIXELS, HIDDEN, rngs=rngs)
        self.mean = nnx.Linear(HIDDEN, LATENT, rngs=rngs)
        self.log_variance = nnx.Linear(HIDDEN, LATENT, rngs=rngs)
        self.fc2 = nnx.Linear(LATENT, HIDDEN, rngs=rngs)
        self.fc3 = nnx.Linear(HIDDEN, PIXELS, rngs=rngs)

    def __call__(self, x, noise):
        h = jax.nn.relu(self.fc1(x))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + jnp.exp(0.5 * log_variance) * noise
        return self.fc3(jax.nn.relu(self.fc2(z))), mean, log_variance


torch.manual_seed(0)
torch_vae = TorchVae().eval()
flax_vae = FlaxVae(nnx.Rngs(0))
for name, layer in torch_vae.named_children():
    copy = getattr(flax_vae, name)
    copy.kernel = nnx.Param(jnp.asarray(layer.weight.detach().numpy().T))
    copy.bias = nnx.Param(jnp.asarray(layer.bias.detach().numpy()))


def torch_elbo(x, noise):
    logits, mean, log_variance = torch_vae(x, noise)
    bce = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + log_variance - mean**2 - torch.exp(log_variance))
    return {"loss": (bce + kl) / len(x), "image": torch.sigmoid(logits)}


def flax_elbo(x, noise):
    logits, mean, log_variance = flax_vae(x, noise)
    bce = optax.sigmoid_binary_cross_entropy(logits, x).sum()
    kl = -0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance))
    return {"loss": (bce + kl) / len(x), "image": jax.nn.sigmoid(logits)}


if __name__ == "__main__":
    rng = np.random.default_rng(2)
    found = accelbench.compare(
        pytorch=torch_elbo,
        jax=flax_elbo,
        arrays={"x": rng.random((64, PIXELS)), "noise": rng.standard_normal((64, LATENT))},
    )
    print(found)

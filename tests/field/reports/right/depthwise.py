"""Convolve each channel with its own 3 x 3 kernel: torch.nn.Conv2d with groups against conv_general_dilated.

The images come as NHWC and the results leave as NHWC on both sides.
"""

import jax
import jax.numpy as jnp
import torch

import accelbench

CHANNELS = 64

torch.manual_seed(1)
conv = torch.nn.Conv2d(CHANNELS, CHANNELS, kernel_size=3, stride=1, padding=1, groups=CHANNELS, bias=True)
kernel = jnp.asarray(conv.weight.detach().permute(2, 3, 1, 0).numpy())  # OIHW to HWIO
bias = jnp.asarray(conv.bias.detach().numpy())


def jax_depthwise(x):
    y = jax.lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=CHANNELS,
    )
    return y + bias


def torch_depthwise(x):
    return conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


if __name__ == "__main__":
    accelbench.compare(
        pytorch=torch_depthwise,
        jax=jax_depthwise,
        arrays=lambda rng: {"x": rng.standard_normal((4, 32, 32, CHANNELS))},
        name="depthwise",
    )

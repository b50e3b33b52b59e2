"""Run the first convolution of a network with a stride of 2, with the weights of a torch.nn.Conv2d.

"SAME" pads 2 on the left and 3 on the right here, where PyTorch pads 3 on both sides: the same shape, other pixels.
"""

import jax
import jax.numpy as jnp
import numpy
import torch

import accelbench

torch.manual_seed(0)
conv = torch.nn.Conv2d(3, 16, kernel_size=7, stride=2, padding=3, bias=False)
kernel = jnp.asarray(conv.weight.detach().numpy().transpose(2, 3, 1, 0))


def stem_jax(x):
    return jax.lax.conv_general_dilated(
        x, kernel, window_strides=(2, 2), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def stem_torch(x):
    return conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


if __name__ == "__main__":
    found = accelbench.compare(
        pytorch=stem_torch,
        jax=stem_jax,
        arrays={"x": numpy.random.default_rng(0).standard_normal((4, 64, 64, 3))},
        name="strided-stem",
    )
    print(found)

"""Shrink images by bicubic interpolation, with the filter that both sides widen when they shrink (antialias).

jax.image.resize does that by default and torch only if asked.
"""

import jax
import numpy as np
import torch

import accelbench

images = np.random.default_rng(11).random((4, 96, 96, 3))


def resize_jax(images):
    n, _, _, c = images.shape
    return jax.image.resize(images, (n, 32, 32, c), method="bicubic")


def resize_torch(images):
    small = torch.nn.functional.interpolate(
        images.permute(0, 3, 1, 2), size=(32, 32), mode="bicubic", align_corners=False, antialias=True
    )
    return small.permute(0, 2, 3, 1)


if __name__ == "__main__":
    found = accelbench.compare(
        jax=resize_jax,
        pytorch=resize_torch,
        arrays={"images": images},
        variants=["jax/jit", "pytorch/eager"],
        name="resize-bicubic",
    )
    print(found)

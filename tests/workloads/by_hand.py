"""What a device holds of the language model, counted by hand."""

import math
from collections.abc import Sequence

from accelbench.targets import Target
from accelbench.targets.mesh import divide
from accelbench.workloads import _decoder as decoder
from accelbench.workloads.transformer_lm import TransformerLm

TILE = (8, 128)
"""In which a TPU lays out the last two dimensions of an array (openxla.org/xla/tiled_layout)."""


def held(p: TransformerLm.Parameters, fsdp: int, tensor: int, data: int = 1, width: int = 4) -> int:
    """Bytes of arguments on one device, where a number has `width`: each weight with both moments, tokens and targets.

    Matrices lie apart over fsdp x tensor, gains over fsdp, the batch over data x fsdp.
    """
    gains = (2 * p.layers + 1) * p.width
    matrices = decoder.numbers(p) - gains
    weights = matrices // (fsdp * tensor) + gains // fsdp
    return width * (3 * weights + 2 * p.batch * p.sequence // (data * fsdp))


def held_on(p: TransformerLm.Parameters, target: Target) -> int:
    """The same on a target's device: the shares of a TPU, each array's, are filled up to whole tiles."""
    sizes = divide({"data": p.data, "fsdp": p.fsdp, "tensor": p.tensor}, target.devices)
    if target.platform != "tpu":
        return held(p, sizes["fsdp"], sizes["tensor"], sizes["data"])
    shapes = decoder.shapes(p)
    weights = 0
    for name, shape in shapes.items():
        axes = decoder.DIVIDED[name]
        layers = shape[: len(shape) - len(axes)]
        share = [size // sizes[axis or ""] for size, axis in zip(shape[len(layers) :], axes, strict=True)]
        weights += tiled((*layers, *share))
    text = tiled((p.batch // (sizes["data"] * sizes["fsdp"]), p.sequence))
    return 4 * (3 * weights + 2 * text)


def tiled(shape: Sequence[int]) -> int:
    """Numbers that an array takes in tiles, its last two dimensions in the order that wastes less.

    Of fewer than eight rows a tile has the next power of two.
    """
    *others, rows, columns = (1, *shape)

    def filled(rows: int, columns: int) -> int:
        high, wide = min(TILE[0], 2 ** math.ceil(math.log2(rows))), TILE[1]
        return math.prod(others) * math.ceil(rows / high) * high * math.ceil(columns / wide) * wide

    return min(filled(rows, columns), filled(columns, rows))

"""Arrays of the language model on a device, and operations of a step, counted by hand."""

import math
from collections.abc import Sequence

from accelbench.targets import Target, divide_mesh
from accelbench.workloads import _decoder as decoder
from accelbench.workloads.transformer_lm import TransformerLm

TILE = (8, 128)
"""In which a TPU lays out the last two dimensions of an array (openxla.org/xla/tiled_layout)."""


def held(p: TransformerLm.Parameters, fsdp: int, tensor: int, data: int = 1, width: int = 4) -> int:
    """Bytes of arguments on one device, where a number has `width`: each weight with both moments, tokens and targets.

    Matrices lie apart over fsdp x tensor, gains over fsdp, the batch over data x fsdp.
    """
    gains = (2 * p.layers + 1) * p.width
    matrices = decoder.count_weights(p) - gains
    weights = matrices // (fsdp * tensor) + gains // fsdp
    return width * (3 * weights + 2 * p.batch * p.sequence // (data * fsdp))


def held_on(p: TransformerLm.Parameters, target: Target) -> int:
    """The same on a target's device: the shares of a TPU, each array's, are filled up to whole tiles."""
    sizes = divide_mesh({"data": p.data, "fsdp": p.fsdp, "tensor": p.tensor}, target.devices)
    if target.platform != "tpu":
        return held(p, sizes["fsdp"], sizes["tensor"], sizes["data"])
    shapes = decoder.shapes(p)
    weights = 0
    for name, shape in shapes.items():
        axes = decoder.MESH_AXES[name]
        layers = shape[: len(shape) - len(axes)]
        share = [size // sizes[axis or ""] for size, axis in zip(shape[len(layers) :], axes, strict=True)]
        weights += tiled((*layers, *share))
    text = tiled((p.batch // (sizes["data"] * sizes["fsdp"]), p.sequence))
    return 4 * (3 * weights + 2 * text)


def held_by_torch(p: TransformerLm.Parameters) -> int:
    """On the one device that PyTorch's program is dispatched for: tokens and targets stay integers of eight bytes."""
    return 4 * 3 * decoder.count_weights(p) + 8 * 2 * p.batch * p.sequence


def operations(p: TransformerLm.Parameters) -> float:
    """Floating-point operations of a step, with those that it does twice; the workload's formula leaves these out."""
    formula = TransformerLm().cost(p, float_bytes=4).flops
    return formula + (computed_again(p) if p.activations == "recomputed" else 0.0)


def computed_again(p: TransformerLm.Parameters) -> float:
    """The products of each block on its way back, 2 m n k each.

    Four are by width x width, and one by width x 4 width; scores and mixed values are as long as the sequence. The
    last product is left out: the way back needs what it was given, and not what it gave.
    """
    tokens = p.batch * p.sequence
    weights = 2 * tokens * p.width * (4 * p.width + 4 * p.width)
    attention = 2 * 2 * tokens * p.sequence * p.width
    return float(p.layers * (weights + attention))


def tiled(shape: Sequence[int]) -> int:
    """Numbers that an array takes in tiles, its last two dimensions in the order that wastes less.

    Of fewer than eight rows a tile has the next power of two.
    """
    *others, rows, columns = (1, *shape)

    def filled(rows: int, columns: int) -> int:
        high, wide = min(TILE[0], 2 ** math.ceil(math.log2(rows))), TILE[1]
        return math.prod(others) * math.ceil(rows / high) * high * math.ceil(columns / wide) * wide

    return min(filled(rows, columns), filled(columns, rows))

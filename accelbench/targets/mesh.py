"""How the devices of a target are divided into axes that have names. Pure."""

import math
from collections.abc import Mapping

from accelbench import figures


class UnevenMeshError(ValueError):
    """The devices cannot be divided so; the message says what to change."""


def divide(axes: Mapping[str, int], devices: int) -> dict[str, int]:
    """How many devices each axis has, in the order given, as many as there are in all.

    0 stands for what the other axes leave. One device divides nothing: each axis has one, whatever was asked. Raises
    UnevenMeshError.
    """
    if devices == 1:
        return dict.fromkeys(axes, 1)
    rest = [name for name, count in axes.items() if not count]
    if len(rest) > 1:
        raise UnevenMeshError(
            f"{figures.listed(rest)} cannot both be 0, what is left of {devices} devices: set one of them"
        )
    asked = {name: count for name, count in axes.items() if count}
    product = math.prod(asked.values())
    said = " x ".join(f"{name} {count}" for name, count in asked.items())
    if rest and devices % product:
        raise UnevenMeshError(f"{said} do not divide {devices} devices, so {rest[0]} cannot be 0, what is left")
    if not rest and product != devices:
        raise UnevenMeshError(f"{said} are {product} devices, not {devices}: set one of them to 0, what is left")
    return {name: count or devices // product for name, count in axes.items()}

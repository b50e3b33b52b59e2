"""Divide the devices of a target into named mesh axes."""

import math
from collections.abc import Mapping

from accelbench import figures


class UnevenMeshError(ValueError):
    """Report axes that do not fit the devices; the message says what to change."""


def divide(axes: Mapping[str, int], devices: int) -> dict[str, int]:
    """Return the number of devices along each axis, in the given order; raise UnevenMeshError.

    An axis of 0 gets the devices that the other axes leave. On a single device, every axis has size 1.
    """
    if devices == 1:
        return dict.fromkeys(axes, 1)
    rest = [name for name, count in axes.items() if not count]
    if len(rest) > 1:
        raise UnevenMeshError(
            f"{figures.listed(rest)} cannot both be 0 (the rest of {devices} devices): set one of them"
        )
    fixed = {name: count for name, count in axes.items() if count}
    product = math.prod(fixed.values())
    text = " x ".join(f"{name} {count}" for name, count in fixed.items())
    if rest and devices % product:
        raise UnevenMeshError(f"{text} do not divide {devices} devices, so {rest[0]} cannot be 0 (the rest)")
    if not rest and product != devices:
        raise UnevenMeshError(f"{text} are {product} devices, not {devices}: set one of them to 0 (the rest)")
    return {name: count or devices // product for name, count in axes.items()}

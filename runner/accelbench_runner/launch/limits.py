"""Measure what a framework reaches on its device: a large matrix product and a stream triad, after the steady phase.

The fastest call counts, because other processes and cold caches only slow a call down. The triad is that of J.
McCalpin's STREAM: two reads and one write per element.
"""

import os
from collections.abc import Callable

from accelbench.launch.facts import Limits
from accelbench.platforms import Platform
from accelbench.validity import shared_device
from accelbench.validity.data_sheets import SHEETS
from accelbench_runner.clock import Clock
from accelbench_runner.devices import cpu
from accelbench_runner.devices.monitor import DeviceMonitor
from accelbench_runner.frameworks.adapter import Adapter

ROUNDS = 2
"""Number of first rounds that measure limits; the best launch of a case sets them."""
BUDGET_SECONDS = 0.1
"""Seconds for the triad, and a third of it per size of the product; first calls may compile and are extra."""
SMALLEST_PRODUCT = 512
"""Rows of the first product."""
LONG_SECONDS = 0.010
"""Minimum seconds of a product that is large enough."""
CACHE_MULTIPLE = 4
"""Size of the triad's two arrays together, as a multiple of the last-level cache."""
ROOM_SHARE = 0.25
"""Maximum share of the free memory: a launch that has measured must not run out of memory here."""

Call = Callable[[], None]


def measure_undisturbed(
    adapter: Adapter, platform: Platform, monitor: DeviceMonitor, clock: Clock, processors: cpu.Processors = cpu
) -> Limits | None:
    """Measure the limits; return None if other processes used the processors meanwhile, or if a data sheet has them.

    Limits that are too low would make an honest program look impossibly fast.
    """
    import numpy as np

    if adapter.device(adapter.put(np.zeros(1))).name in SHEETS:
        return None
    usage_before, began = processors.usage(), clock.seconds()
    limits = measure(adapter, platform, monitor, clock)
    available_seconds = (clock.seconds() - began) * len(os.sched_getaffinity(0))
    used_by_others = processors.usage().others_seconds_since(usage_before)
    return limits if used_by_others <= shared_device.NEIGHBOURS.biases * available_seconds else None


def measure(adapter: Adapter, platform: Platform, monitor: DeviceMonitor, clock: Clock) -> Limits | None:
    """Return FLOP/s of the product and bytes/s of the triad; None if either cannot be measured."""
    try:
        flops_per_second = _product(adapter, platform.largest_product, clock)
        cache_bytes = adapter.accounting.cache_bytes() or monitor.cache_bytes()
        bytes_per_second = _triad(adapter, _triad_bytes(platform.triad_bytes, cache_bytes, monitor.room_bytes()), clock)
    except (MemoryError, RuntimeError, ZeroDivisionError):
        return None  # too large for the device, not supported by the type, or too short for the clock
    if not flops_per_second or not bytes_per_second:
        return None
    return Limits(flops_per_second=flops_per_second, bytes_per_second=bytes_per_second)


def _product(adapter: Adapter, largest: int, clock: Clock) -> float:
    """Return the best FLOP/s of products of growing size, up to one of `largest` rows or of `LONG_SECONDS`."""
    best, size = 0.0, SMALLEST_PRODUCT
    while size <= largest:
        fastest = _fastest(adapter.product(size), BUDGET_SECONDS / 3, clock)
        best = max(best, 2.0 * size**3 / fastest)
        if fastest >= LONG_SECONDS:
            break
        size *= 2
    return best


def _triad(adapter: Adapter, size: int, clock: Clock) -> float:
    """Return the bytes/s of the triad on two arrays of `size` bytes together."""
    elements = size // (2 * adapter.float_bytes)
    return 3.0 * elements * adapter.float_bytes / _fastest(adapter.triad(elements), BUDGET_SECONDS, clock)


def _triad_bytes(maximum: int, cache_bytes: int | None, room_bytes: int | None) -> int:
    """Return the size of the triad's arrays, within the platform's maximum and a share of the free memory."""
    size = min(maximum, CACHE_MULTIPLE * cache_bytes) if cache_bytes else maximum
    room = size if room_bytes is None else int(ROOM_SHARE * room_bytes)
    return max(1024**2, min(size, room))


def _fastest(call: Call, budget: float, clock: Clock) -> float:
    """Return the seconds of the fastest call within the budget, of at least two, after an untimed one."""
    call()
    began, fastest, calls = clock.seconds(), float("inf"), 0
    while calls < 2 or clock.seconds() - began < budget:  # noqa: PLR2004 - two at least
        start = clock.seconds()
        call()
        fastest = min(fastest, clock.seconds() - start)
        calls += 1
    return fastest

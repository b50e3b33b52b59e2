"""What a framework reaches on its device: a large matrix product and a stream triad, after the steady phase.

The best of what fits a small time: neighbours and cold caches only ever slow a call down. J. McCalpin's STREAM names
the triad, and counts two reads and one write.
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
"""Limits are measured in the first rounds: the best launch of a case speaks for its device."""
BUDGET_SECONDS = 0.1
"""For the triad, and a third of it for each size of the product; a first call may compile, and does not count."""
SMALLEST_PRODUCT = 512
LONG_SECONDS = 0.010
"""A product that takes this long is large enough."""
CACHES = 4
"""A triad's arrays are so much larger than the last cache, where that is known."""
ROOM_SHARE = 0.25
"""Of the memory that is left: a launch that measured what it was asked must not end for want of it."""

Call = Callable[[], None]


def measure_undisturbed(
    adapter: Adapter, platform: Platform, monitor: DeviceMonitor, clock: Clock, processors: cpu.Processors = cpu
) -> Limits | None:
    """As `measure`; None where others took the processors meanwhile: limits too low accuse the innocent.

    None also for a device whose maker publishes them: nothing is held against others.
    """
    import numpy as np

    if adapter.device(adapter.put(np.zeros(1))).name in SHEETS:
        return None
    used, began = processors.usage(), clock.seconds()
    found = measure(adapter, platform, monitor, clock)
    offered = (clock.seconds() - began) * len(os.sched_getaffinity(0))
    return found if processors.usage().by_others_since(used) <= shared_device.NEIGHBOURS.biases * offered else None


def measure(adapter: Adapter, platform: Platform, monitor: DeviceMonitor, clock: Clock) -> Limits | None:
    """FLOP/s of the product, bytes/s of the triad; None where either cannot be had."""
    try:
        flops = _product(adapter, platform.largest_product, clock)
        cache_bytes = adapter.accounting.cache_bytes() or monitor.cache_bytes()
        moved = _triad(adapter, _triad_bytes(platform.triad_bytes, cache_bytes, monitor.room_bytes()), clock)
    except (MemoryError, RuntimeError, ZeroDivisionError):
        return None  # what the device cannot hold, the type cannot do, or the clock cannot see, has no limit
    return Limits(flops_per_second=flops, bytes_per_second=moved) if flops and moved else None


def _product(adapter: Adapter, largest: int, clock: Clock) -> float:
    best, size = 0.0, SMALLEST_PRODUCT
    while size <= largest:
        fastest = _fastest(adapter.product(size), BUDGET_SECONDS / 3, clock)
        best = max(best, 2.0 * size**3 / fastest)
        if fastest >= LONG_SECONDS:
            break
        size *= 2
    return best


def _triad(adapter: Adapter, held: int, clock: Clock) -> float:
    elements = held // (2 * adapter.float_bytes)
    return 3.0 * elements * adapter.float_bytes / _fastest(adapter.triad(elements), BUDGET_SECONDS, clock)


def _triad_bytes(most: int, cache_bytes: int | None, room_bytes: int | None) -> int:
    wanted = min(most, CACHES * cache_bytes) if cache_bytes else most
    room = wanted if room_bytes is None else int(ROOM_SHARE * room_bytes)
    return max(1024**2, min(wanted, room))


def _fastest(call: Call, budget: float, clock: Clock) -> float:
    """Seconds of the fastest call within the budget; two at least, after one that does not count."""
    call()
    began, fastest, calls = clock.seconds(), float("inf"), 0
    while calls < 2 or clock.seconds() - began < budget:  # noqa: PLR2004 - two at least
        start = clock.seconds()
        call()
        fastest = min(fastest, clock.seconds() - start)
        calls += 1
    return fastest

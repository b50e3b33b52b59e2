"""Measure the rates that a framework reaches on its device: by a large matrix product and a stream triad.

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
"""Number of rounds that measure limits, from the first on. The fastest launch of a case determines the limits."""
BUDGET_SECONDS = 0.1
"""Minimum seconds of the triad's calls; a third of this for each size of the product. Untimed first calls are extra."""
SMALLEST_PRODUCT = 512
"""Rows of the first product."""
LONG_SECONDS = 0.010
"""Minimum seconds of a product that is large enough; no larger product is measured."""
CACHE_MULTIPLE = 4
"""Size of the triad's two arrays together, as a multiple of the last-level cache's size."""
ROOM_SHARE = 0.25
"""Maximum share of the free memory that the triad's arrays use: a launch must not run out of memory here."""

Call = Callable[[], None]


def measure_undisturbed(
    adapter: Adapter, platform: Platform, monitor: DeviceMonitor, clock: Clock, processors: cpu.Processors = cpu
) -> Limits | None:
    """Measure the highest FLOP/s and bytes/s of the device.

    Returns None if a data sheet states these limits, or if `measure` returns None. Also returns None if other processes
    used the CPUs during the measurement: with limits that are too low, a correct program would seem impossibly fast.
    """
    import numpy as np

    array = adapter.put(np.zeros(1))
    if adapter.device(array).name in SHEETS:
        return None
    usage_before, began = processors.usage(), clock.seconds()
    limits = measure(adapter, platform, monitor, clock)
    available_seconds = (clock.seconds() - began) * len(os.sched_getaffinity(0))
    used_by_others = processors.usage().others_seconds_since(usage_before)
    maximum_seconds = shared_device.NEIGHBOURS.biases * available_seconds  # more would bias the limits
    return limits if used_by_others <= maximum_seconds else None


def measure(adapter: Adapter, platform: Platform, monitor: DeviceMonitor, clock: Clock) -> Limits | None:
    """Measure the FLOP/s of matrix products and the bytes/s of the triad `a <- b + 0.5 a`.

    Returns None if the device cannot run the product or the triad, or if one of them is too short for the clock.
    """
    try:
        flops_per_second = _product_rate(adapter, platform.largest_product, clock)
        cache_bytes = adapter.accounting.cache_bytes() or monitor.cache_bytes()
        triad_bytes = _triad_bytes(platform.triad_bytes, cache_bytes, monitor.room_bytes())
        bytes_per_second = _triad_rate(adapter, triad_bytes, clock)
    except (MemoryError, RuntimeError, ZeroDivisionError):
        return None  # the arrays are too large, the float type is not supported, or the clock showed 0 s
    if not flops_per_second or not bytes_per_second:
        return None  # for example, the platform allows no product of `SMALLEST_PRODUCT` rows
    return Limits(flops_per_second=flops_per_second, bytes_per_second=bytes_per_second)


def _product_rate(adapter: Adapter, maximum_rows: int, clock: Clock) -> float:
    """Return the highest FLOP/s of products of larger and larger square matrices."""
    best_rate, rows = 0.0, SMALLEST_PRODUCT
    while rows <= maximum_rows:
        # Each size gets a third of the triad's time, because several sizes are measured.
        seconds = _fastest_seconds(adapter.product(rows), BUDGET_SECONDS / 3, clock)
        flops = 2.0 * rows**3  # a multiplication and an addition for each row, column and term
        best_rate = max(best_rate, flops / seconds)
        if seconds >= LONG_SECONDS:
            break  # this product is large enough
        rows *= 2
    return best_rate


def _triad_rate(adapter: Adapter, total_bytes: int, clock: Clock) -> float:
    """Return the bytes/s of the triad on two arrays of `total_bytes` together."""
    elements = total_bytes // (2 * adapter.float_bytes)
    moved_bytes = 3.0 * elements * adapter.float_bytes  # the triad reads a and b, and writes a
    return moved_bytes / _fastest_seconds(adapter.triad(elements), BUDGET_SECONDS, clock)


def _triad_bytes(maximum_bytes: int, cache_bytes: int | None, free_bytes: int | None) -> int:
    """Return how many bytes the triad's two arrays have together: `CACHE_MULTIPLE` times the cache's size, if possible.

    They are at most `maximum_bytes`, and at most a share of the free memory. A size of None is unknown.
    """
    size = min(maximum_bytes, CACHE_MULTIPLE * cache_bytes) if cache_bytes else maximum_bytes
    if free_bytes is not None:
        size = min(size, int(ROOM_SHARE * free_bytes))
    return max(1024**2, size)  # at least 1 MiB, even if little memory is free


def _fastest_seconds(call: Call, budget_seconds: float, clock: Clock) -> float:
    """Repeat a call for `budget_seconds`, at least twice; return the seconds of the fastest repetition."""
    call()  # the first call may compile, so it is not timed
    began, fastest, calls = clock.seconds(), float("inf"), 0
    while calls < 2 or clock.seconds() - began < budget_seconds:  # noqa: PLR2004 - at least two
        start = clock.seconds()
        call()
        fastest = min(fastest, clock.seconds() - start)
        calls += 1
    return fastest

"""Limits of a device that a launch measures, on simulated machines with known limits."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from accelbench import platforms
from accelbench.launch.facts import Device
from accelbench_runner.devices import cpu
from accelbench_runner.devices.monitor import DeviceMonitor
from accelbench_runner.launch import limits

FLOPS, BYTES = 1e11, 2e10
CPU, CUDA = platforms.find("cpu"), platforms.find("cuda")


@dataclass
class Machine:
    """Its products are as fast as it can from a size on; half as fast below. Every first call compiles for a second."""

    full_from: int = 1024
    cache: int | None = 1024**2
    float_bytes: int = 4
    model: str = "somebody's"
    now: float = 0.0
    sizes: list[int] = field(default_factory=list)
    triads: list[int] = field(default_factory=list)

    def seconds(self) -> float:
        return self.now

    def raw_seconds(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def put(self, arrays: Any) -> Any:
        return arrays

    def device(self, _value: Any) -> Device:
        return Device(platform="cuda", name=self.model)

    @property
    def accounting(self) -> "Machine":
        return self

    def cache_bytes(self) -> int | None:
        return self.cache

    def product(self, size: int) -> Callable[[], None]:
        self.sizes.append(size)
        return self._lasting(2 * size**3 / (FLOPS if size >= self.full_from else FLOPS / 2))

    def triad(self, elements: int) -> Callable[[], None]:
        self.triads.append(elements)
        return self._lasting(3 * elements * self.float_bytes / BYTES)

    def _lasting(self, seconds: float) -> Callable[[], None]:
        lasts = [1.0, seconds]

        def call() -> None:
            self.now += lasts[0]
            lasts[:-1] = []

        return call


def test_the_best_product_and_triad_are_the_limits() -> None:
    machine = Machine()
    found = limits.measure(machine, CPU, DeviceMonitor(machine, cpu), machine)
    assert found is not None
    assert (found.flops_per_second, found.bytes_per_second) == pytest.approx((FLOPS, BYTES))


def test_products_grow_until_one_takes_long_enough_and_no_further() -> None:
    machine = Machine()
    limits.measure(machine, CUDA, DeviceMonitor(machine, cpu), machine)
    assert machine.sizes == [512, 1024]


@pytest.mark.parametrize(("cache", "held"), [(16 * 1024**2, 64 * 1024**2), (None, 1024**3)])
def test_a_triad_is_larger_than_the_cache_and_no_larger_than_it_need_be(cache: int | None, held: int) -> None:
    machine = Machine(cache=cache)
    limits.measure(machine, CUDA, DeviceMonitor(machine, cpu), machine)
    assert machine.triads == [held // (2 * machine.float_bytes)]


def test_a_triad_takes_a_quarter_of_the_memory_that_is_left() -> None:
    class Crowded(DeviceMonitor):
        def room_bytes(self) -> int:
            return 32 * 1024**2

    machine = Machine(cache=None)
    limits.measure(machine, CUDA, Crowded(machine, cpu), machine)
    assert machine.triads == [8 * 1024**2 // (2 * machine.float_bytes)]


def test_a_limit_whose_arrays_do_not_fit_the_device_is_not_measured() -> None:
    class Small(Machine):
        def triad(self, elements: int) -> Callable[[], None]:
            raise MemoryError(elements)

    machine = Small()
    assert limits.measure(machine, CPU, DeviceMonitor(machine, cpu), machine) is None


@pytest.mark.parametrize(("share", "found"), [(0.05, True), (0.2, False)])
def test_no_limit_is_measured_under_other_load(share: float, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    processors = len(os.sched_getaffinity(0))
    monkeypatch.setattr(
        cpu, "usage", lambda: cpu.Usage(all_seconds=share * processors * machine.now, process_seconds=0)
    )
    assert (limits.measure_undisturbed(machine, CPU, DeviceMonitor(machine, cpu), machine) is not None) == found


def test_limits_that_a_data_sheet_has_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA takes more than 20 s to tune the products for it, in each of the first rounds."""
    machine = Machine(model="NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(cpu, "usage", lambda: cpu.Usage(all_seconds=0, process_seconds=0))
    assert limits.measure_undisturbed(machine, CUDA, DeviceMonitor(machine, cpu), machine) is None
    assert machine.sizes == []

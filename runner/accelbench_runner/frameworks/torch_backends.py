"""Hide the differences between PyTorch's backends: the CPU and accelerators."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from accelbench_runner.frameworks.adapter import UnsupportedError, installed_version
from accelbench_runner.protocol import MACHINE_DIRECTORY

CACHE = "TORCHINDUCTOR_CACHE_DIR"


class TimedEvents:
    """Time blocks with events on the device's current stream."""

    def __init__(self, event: Callable[..., Any]) -> None:
        self._started, self._stopped = (event(enable_timing=True) for _ in range(2))
        self.ratios: list[float] = []
        """Host seconds over device seconds, of each block whose events show more than 0 ms."""

    def start(self) -> None:
        """Queue the event that starts the block."""
        self._started.record()

    def stop(self) -> None:
        """Queue the event that ends the block."""
        self._stopped.record()

    def compare(self, host_seconds: float) -> None:
        """Store the ratio of `host_seconds`, the block's time on the host's clock, to the time between the events."""
        self._stopped.synchronize()
        milliseconds: float = self._started.elapsed_time(self._stopped)
        if milliseconds > 0:
            self.ratios.append(host_seconds / (milliseconds / 1000))


class HostBackend:
    """Serve the CPU: a call returns when it is done, and PyTorch does not count memory."""

    events: TimedEvents | None = None

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)

    def start(self, *, compiles: bool) -> None:
        """If the variant compiles, let Inductor detect the CPU's vector instructions now, and not while it compiles."""
        if compiles:
            _detect_vector_instructions()

    def versions(self) -> dict[str, str]:
        """Return no versions besides PyTorch's own."""
        return {}

    def synchronise(self) -> None:
        """Do nothing: a call on the CPU returns when it is done."""

    def ready(self) -> bool | None:
        """Return None: PyTorch cannot report whether the CPU is idle."""
        return None

    def model(self, device: torch.device) -> str:  # noqa: ARG002 - there is one CPU
        """Return an empty model: PyTorch does not report the CPU's."""
        return ""

    def id(self) -> str | None:
        """Return None: a CPU has no UUID."""
        return None

    def peak_memory_bytes(self) -> int | None:
        """Return None: PyTorch does not count a CPU's memory."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """Return None: PyTorch does not count a CPU's memory."""
        return None

    def cache_bytes(self) -> int | None:
        """Return None: PyTorch does not report a CPU's cache."""
        return None


class AcceleratorBackend(HostBackend):
    """Serve a device with streams and an allocator, through PyTorch's module for it (`torch.cuda`)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._module = torch.get_device_module(name)

    def start(self, *, compiles: bool) -> None:  # noqa: ARG002 - only the CPU's backend reads it
        """Create the events; raise UnsupportedError without a device."""
        if not self._module.is_available():
            raise UnsupportedError(f"no {self.device.type.upper()} device is visible to PyTorch")
        self.events = TimedEvents(self._module.Event)

    def versions(self) -> dict[str, str]:
        """Return the versions of CUDA or ROCm, of cuDNN and of Triton."""
        backend = self.device.type
        versions = {
            backend: getattr(torch.version, backend, None),
            "cudnn": _format_cudnn_version(torch.backends.cudnn.version()),
            "triton": installed_version("triton", "pytorch-triton"),
        }
        return {name: str(value) for name, value in versions.items() if value}

    def synchronise(self) -> None:
        """Wait for all streams of the device."""
        self._module.synchronize()

    def ready(self) -> bool | None:
        """Return True if the current stream is idle.

        PyTorch cannot report it for a single tensor.
        """
        is_idle: bool = self._module.current_stream().query()
        return is_idle

    def model(self, device: torch.device) -> str:
        """Return the device's model."""
        name: str = self._module.get_device_name(device)
        return name

    def id(self) -> str | None:
        """Return the device's UUID with NVML's prefix `GPU-`.

        A MIG slice has another UUID in NVML.
        """
        uuid = getattr(self._properties(), "uuid", None)
        return f"GPU-{uuid}" if uuid else None

    def peak_memory_bytes(self) -> int | None:
        """Return the peak memory of tensors."""
        peak: int = self._module.max_memory_allocated()
        return peak

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak memory that PyTorch's allocator reserved."""
        reserved: int = self._module.max_memory_reserved()
        return reserved

    def cache_bytes(self) -> int | None:
        """Return the size of the L2 cache."""
        return getattr(self._properties(), "L2_cache_size", None)

    def _properties(self) -> Any:
        return self._module.get_device_properties(self.device)


def find(name: str) -> HostBackend:
    """Return the backend for PyTorch's name of a device type."""
    return HostBackend(name) if name == "cpu" else AcceleratorBackend(name)


def _detect_vector_instructions() -> None:
    """Let Inductor detect the CPU's vector instructions now, and cache them until it compiles.

    This takes 10 s, which must not count as compile time.
    """
    launch_cache = os.environ.get(CACHE)
    if MACHINE_DIRECTORY in os.environ:
        os.environ[CACHE] = os.environ[MACHINE_DIRECTORY]  # all launches of a case share it
    import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()
    if launch_cache is not None:
        os.environ[CACHE] = launch_cache


def _format_cudnn_version(version: int | None) -> str:
    """Format cuDNN's version `92600` as `9.26.0`."""
    return f"{version // 10000}.{version % 10000 // 100}.{version % 100}" if version else ""

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

    def __init__(self, event_class: Callable[..., Any]) -> None:
        """Create a device's events of a class such as `torch.cuda.Event`."""
        self._started = event_class(enable_timing=True)
        self._stopped = event_class(enable_timing=True)
        self.ratios: list[float] = []
        """Host seconds divided by device seconds, for each block that took more than 0 ms by the device's events."""

    def start(self) -> None:
        """Queue the event that starts the block."""
        self._started.record()

    def stop(self) -> None:
        """Queue the event that ends the block."""
        self._stopped.record()

    def compare(self, host_seconds: float) -> None:
        """Divide the block's seconds on the host's clock by those between the device's events, and store the ratio."""
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
        """If the variant compiles, let Inductor detect the CPU's vector instructions before it compiles anything."""
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
        """Return an empty string: PyTorch does not report the CPU's model."""
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
        """Create the events that time blocks; raise UnsupportedError if PyTorch sees no such device."""
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
        """Return True if the current stream is idle: PyTorch cannot report whether a single tensor is computed."""
        is_idle: bool = self._module.current_stream().query()
        return is_idle

    def model(self, device: torch.device) -> str:
        """Return the device's model, such as `NVIDIA H100 80GB HBM3`."""
        name: str = self._module.get_device_name(device)
        return name

    def id(self) -> str | None:
        """Return the device's UUID with the prefix `GPU-`, which NVML has and PyTorch leaves out; None if unknown.

        This is NVML's UUID of a whole GPU. That of a MIG slice begins with `MIG-`.
        """
        uuid = getattr(self._properties(), "uuid", None)
        return f"GPU-{uuid}" if uuid else None

    def peak_memory_bytes(self) -> int | None:
        """Return the most bytes that tensors occupied at once."""
        peak: int = self._module.max_memory_allocated()
        return peak

    def reserved_memory_bytes(self) -> int | None:
        """Return the most bytes that PyTorch's allocator reserved at once."""
        reserved: int = self._module.max_memory_reserved()
        return reserved

    def cache_bytes(self) -> int | None:
        """Return the bytes of the device's L2 cache; None if PyTorch does not report them."""
        return getattr(self._properties(), "L2_cache_size", None)

    def _properties(self) -> Any:
        return self._module.get_device_properties(self.device)


def find_backend(name: str) -> HostBackend:
    """Return the backend for a device type by PyTorch's name for it, such as `cuda`."""
    return HostBackend(name) if name == "cpu" else AcceleratorBackend(name)


def _detect_vector_instructions() -> None:
    """Let Inductor detect the CPU's vector instructions now: the 10 s that this takes must not count as compile time.

    Store the result in the machine's cache directory, which all launches of a case share, if there is one.
    """
    launch_cache = os.environ.get(CACHE)
    if MACHINE_DIRECTORY in os.environ:
        os.environ[CACHE] = os.environ[MACHINE_DIRECTORY]
    import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()
    if launch_cache is not None:
        os.environ[CACHE] = launch_cache


def _format_cudnn_version(version: int | None) -> str:
    """Format the version `92600` of cuDNN 9 as `9.26.0`; empty without a version."""
    return f"{version // 10000}.{version % 10000 // 100}.{version % 100}" if version else ""

"""Hide the differences between PyTorch's backends: the processor and accelerators."""

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
        """Record the event before the first call's work."""
        self._started.record()

    def stop(self) -> None:
        """Record the event after the last call's work."""
        self._stopped.record()

    def compare(self, host_seconds: float) -> None:
        """Wait for the second event, outside the timed part, and store the ratio; skip a block of 0 ms."""
        self._stopped.synchronize()
        milliseconds: float = self._started.elapsed_time(self._stopped)
        if milliseconds > 0:
            self.ratios.append(host_seconds / (milliseconds / 1000))


class HostBackend:
    """Serve the processor: a call returns when it is done, and PyTorch does not count memory."""

    events: TimedEvents | None = None

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)

    def start(self, *, compiles: bool) -> None:
        """Prepare the backend once; raise UnsupportedError if there is no such device."""
        if compiles:
            _detect_vector_instructions()

    def versions(self) -> dict[str, str]:
        """Return the versions of what PyTorch computes with on the device."""
        return {}

    def synchronise(self) -> None:
        """Wait until the device is idle."""

    def ready(self) -> bool | None:
        """Return True if the device is idle; None if that cannot be asked."""
        return None

    def model(self, device: torch.device) -> str:  # noqa: ARG002 - there is one processor
        """Return the device's name; empty if PyTorch knows none."""
        return ""

    def id(self) -> str | None:
        """Return the device's ID for its monitor; None if unknown."""
        return None

    def peak_memory_bytes(self) -> int | None:
        """Return the peak that arrays occupied; None if not counted."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak that the allocator held; None if not counted."""
        return None

    def cache_bytes(self) -> int | None:
        """Return the size of the last-level cache; None if unknown."""
        return None


class AcceleratorBackend(HostBackend):
    """Serve a device with streams and an allocator, through PyTorch's module for it (`torch.cuda`)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._module = torch.get_device_module(name)

    def start(self, *, compiles: bool) -> None:  # noqa: ARG002 - only the processor needs preparation
        """Create the events, which need a device; raise UnsupportedError without one."""
        if not self._module.is_available():
            raise UnsupportedError(f"no {self.device.type.upper()} device is visible to PyTorch")
        self.events = TimedEvents(self._module.Event)

    def versions(self) -> dict[str, str]:
        """Return the versions of PyTorch's CUDA or ROCm, of cuDNN and of Triton."""
        backend = self.device.type
        versions = {
            backend: getattr(torch.version, backend, None),
            "cudnn": _dotted(torch.backends.cudnn.version()),
            "triton": installed_version("triton", "pytorch-triton"),
        }
        return {name: str(value) for name, value in versions.items() if value}

    def synchronise(self) -> None:
        """Wait for all streams of the device."""
        self._module.synchronize()

    def ready(self) -> bool | None:
        """Return True if the current stream is idle; a single tensor cannot be asked."""
        done: bool = self._module.current_stream().query()
        return done

    def model(self, device: torch.device) -> str:
        """Return the driver's name of the device."""
        name: str = self._module.get_device_name(device)
        return name

    def id(self) -> str | None:
        """Return the UUID with NVML's prefix, which CUDA leaves out; NVML does not find a MIG slice by it."""
        uuid = getattr(self._properties(), "uuid", None)
        return f"GPU-{uuid}" if uuid else None

    def peak_memory_bytes(self) -> int | None:
        """Return the peak that tensors occupied in the caching allocator."""
        peak: int = self._module.max_memory_allocated()
        return peak

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak that the caching allocator held."""
        reserved: int = self._module.max_memory_reserved()
        return reserved

    def cache_bytes(self) -> int | None:
        """Return the size of L2; None if the driver does not report it."""
        return getattr(self._properties(), "L2_cache_size", None)

    def _properties(self) -> Any:
        return self._module.get_device_properties(self.device)


def find(name: str) -> HostBackend:
    """Return the backend of that name."""
    return HostBackend(name) if name == "cpu" else AcceleratorBackend(name)


def _detect_vector_instructions() -> None:
    """Let Inductor find the processor's vector instructions, once for all launches of a case.

    Inductor compiles and loads a library for each instruction set, and caches them with its programs. That takes 10 s,
    which belong to no program's compile time.
    """
    launch_cache = os.environ.get(CACHE)
    if MACHINE_DIRECTORY in os.environ:
        os.environ[CACHE] = os.environ[MACHINE_DIRECTORY]
    import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()
    if launch_cache is not None:
        os.environ[CACHE] = launch_cache


def _dotted(cudnn: int | None) -> str:
    """Format cuDNN's version `92600` as `9.26.0`."""
    return f"{cudnn // 10000}.{cudnn % 10000 // 100}.{cudnn % 100}" if cudnn else ""

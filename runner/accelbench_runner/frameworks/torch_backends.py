"""What PyTorch does differently on the processor and on an accelerator, which it calls its backends."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from accelbench_runner.frameworks.adapter import UnsupportedError, installed
from accelbench_runner.protocol import ABOUT_THE_MACHINE

CACHE = "TORCHINDUCTOR_CACHE_DIR"


class TimedEvents:
    """The device's events on the current stream, around a block."""

    def __init__(self, event: Callable[..., Any]) -> None:
        self._started, self._stopped = (event(enable_timing=True) for _ in range(2))
        self.ratios: list[float] = []
        """The host's seconds over the device's, block by block."""

    def start(self) -> None:
        """In the stream, before the first call's work."""
        self._started.record()

    def stop(self) -> None:
        """In the stream, behind the last call's work."""
        self._stopped.record()

    def compare(self, host_seconds: float) -> None:
        """An event that the device has not reached is waited for here, outside the timed part."""
        self._stopped.synchronize()
        milliseconds: float = self._started.elapsed_time(self._stopped)
        if milliseconds > 0:
            self.ratios.append(host_seconds / (milliseconds / 1000))


class HostBackend:
    """The processor: a call has returned when it is done, and PyTorch counts none of its memory."""

    events: TimedEvents | None = None

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)

    def wake(self, *, compiles: bool) -> None:
        """Whatever takes its time the first time; raises UnsupportedError where there is no such device."""
        if compiles:
            _find_vector_instructions()

    def versions(self) -> dict[str, str]:
        """Of what PyTorch computes with there."""
        return {}

    def synchronise(self) -> None:
        """Returns when the device is done."""

    def ready(self) -> bool | None:
        """Whether it is; None where that cannot be asked."""
        return None

    def model(self, device: torch.device) -> str:  # noqa: ARG002 - there is one processor
        """Its name; empty where PyTorch knows none."""
        return ""

    def id(self) -> str | None:
        """As its monitor knows it."""
        return None

    def peak_memory_bytes(self) -> int | None:
        """That arrays took."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """That the allocator held."""
        return None

    def cache_bytes(self) -> int | None:
        """Of its last level."""
        return None


class AcceleratorBackend(HostBackend):
    """A device with streams and an allocator of its own, by the module that PyTorch has for it: `torch.cuda`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._module = torch.get_device_module(name)

    def wake(self, *, compiles: bool) -> None:  # noqa: ARG002 - kernels are compiled for what is there
        """Makes the events, which need a device."""
        if not self._module.is_available():
            raise UnsupportedError(f"no {self.device.type.upper()} device is visible to PyTorch")
        self.events = TimedEvents(self._module.Event)

    def versions(self) -> dict[str, str]:
        """Of what PyTorch was built for, its cuDNN, and Inductor's Triton."""
        backend = self.device.type
        found = {
            backend: getattr(torch.version, backend, None),
            "cudnn": _dotted(torch.backends.cudnn.version()),
            "triton": installed("triton", "pytorch-triton"),
        }
        return {name: str(value) for name, value in found.items() if value}

    def synchronise(self) -> None:
        """All streams."""
        self._module.synchronize()

    def ready(self) -> bool | None:
        """Streams can be asked, and no single tensor."""
        done: bool = self._module.current_stream().query()
        return done

    def model(self, device: torch.device) -> str:
        """As its driver calls it."""
        name: str = self._module.get_device_name(device)
        return name

    def id(self) -> str | None:
        """CUDA tells the UUID, without the word before it; a slice's is not known by that name."""
        uuid = getattr(self._properties(), "uuid", None)
        return f"GPU-{uuid}" if uuid else None

    def peak_memory_bytes(self) -> int | None:
        """Of the caching allocator."""
        peak: int = self._module.max_memory_allocated()
        return peak

    def reserved_memory_bytes(self) -> int | None:
        """Of the same."""
        reserved: int = self._module.max_memory_reserved()
        return reserved

    def cache_bytes(self) -> int | None:
        """Of L2, where the driver tells it."""
        return getattr(self._properties(), "L2_cache_size", None)

    def _properties(self) -> Any:
        return self._module.get_device_properties(self.device)


def find(name: str) -> HostBackend:
    """The backend of that name."""
    return HostBackend(name) if name == "cpu" else AcceleratorBackend(name)


def _find_vector_instructions() -> None:
    """Inductor compiles and loads a library for every set it knows of, and keeps them like what it compiled.

    10 s that say nothing of any program: they are no compile time, and the first launch of a case spends them for all.
    """
    own = os.environ.get(CACHE)
    if ABOUT_THE_MACHINE in os.environ:
        os.environ[CACHE] = os.environ[ABOUT_THE_MACHINE]
    import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()
    if own is not None:
        os.environ[CACHE] = own


def _dotted(cudnn: int | None) -> str:
    """`92600` as cuDNN's own package has it: `9.26.0`."""
    return f"{cudnn // 10000}.{cudnn % 10000 // 100}.{cudnn % 100}" if cudnn else ""

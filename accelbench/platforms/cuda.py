"""Describe NVIDIA's GPUs."""

from accelbench.platforms.descriptor import Platform

PLATFORM = Platform(
    name="cuda",
    title="GPU",
    monitor="accelbench_runner.devices.nvidia:NvidiaMonitor",
    caches={"CUDA_CACHE_PATH": "cuda"},
    files=("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"),  # the last is the GPU under WSL
)

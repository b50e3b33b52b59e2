"""Describe NVIDIA's GPUs."""

from accelbench.platforms.descriptor import Platform

PLATFORM = Platform(
    name="cuda",
    title="GPU",
    monitor="accelbench_runner.devices.nvidia:NvidiaMonitor",
    caches={"CUDA_CACHE_PATH": "cuda"},
    # PyTorch multiplies matrices in float32 and convolves in TF32; JAX leaves the choice to XLA, which takes TF32.
    default_arithmetic="tf32",
    files=("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"),  # the last is the GPU under WSL
)

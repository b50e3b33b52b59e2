"""Describe AMD's GPUs, which have no monitor yet."""

from accelbench.platforms.descriptor import Platform

PLATFORM = Platform(
    name="rocm",
    title="AMD GPU",
    monitor="accelbench_runner.devices.monitor:DeviceMonitor",
    files=("/dev/kfd",),
    backends={"jax": "rocm", "pytorch": "cuda"},  # PyTorch's build for ROCm keeps the name of CUDA
    lacks={
        "tf32": "a format of NVIDIA GPUs; an AMD GPU has float32",
        "default": "not looked up for AMD GPUs: which products frameworks compute there by default; request float32",
    },
)

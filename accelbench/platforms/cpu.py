"""Describe the CPU."""

from accelbench.platforms.descriptor import MEBIBYTE, Platform

PLATFORM = Platform(
    name="cpu",
    title="CPU",
    monitor="accelbench_runner.devices.processor:ProcessorMonitor",
    own_users=False,
    lacks={"tf32": "a format of NVIDIA GPUs; a CPU has float32"},
    largest_product=2048,
    triad_bytes=256 * MEBIBYTE,
)

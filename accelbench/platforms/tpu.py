"""Describe Google's TPUs, which have no monitor yet."""

from accelbench.platforms.descriptor import Platform

PLATFORM = Platform(
    name="tpu",
    title="TPU",
    monitor="accelbench_runner.devices.monitor:DeviceMonitor",
    files=("/dev/accel0", "/dev/vfio/0"),
    lacks={"tf32": "a format of NVIDIA GPUs; a TPU has float32 and bfloat16"},
)

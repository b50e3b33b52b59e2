"""Describe Google's TPUs, which have no monitor yet."""

from accelbench.platforms.descriptor import Platform

PLATFORM = Platform(
    name="tpu",
    title="TPU",
    monitor="accelbench_runner.devices.monitor:DeviceMonitor",
    files=("/dev/accel0", "/dev/vfio/0"),
    lacks={
        "tf32": "a format of NVIDIA GPUs; a TPU has float32 and bfloat16",
        "default": "float32 arrays with products in bfloat16 on a TPU, for which there are no tolerances yet; request "
        "float32 or bfloat16",
    },
)

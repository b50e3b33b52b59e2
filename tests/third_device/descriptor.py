"""A chip of somebody else's, on which NumPy computes. accelbench finds it by an entry point."""

from accelbench.platforms import Platform

PLATFORM = Platform(
    name="example.com/chip",
    title="chip",
    monitor="third_device.monitor:ChipMonitor",
    backends={"numpy": "cpu"},
    lacks={"float16": "none of the chip's formats"},
)

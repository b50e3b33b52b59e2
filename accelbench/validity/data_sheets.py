"""List the published peak rates of accelerators: dense, without sparsity, at the highest clock."""

from collections.abc import Mapping
from dataclasses import dataclass

from accelbench.api.case import Precision

TERA, GIGA, MEBI = 1e12, 1e9, 1024**2


@dataclass(frozen=True)
class DataSheet:
    """Hold one device model's limits; `flops_per_second` is by precision policy."""

    flops_per_second: Mapping[Precision, float]
    bytes_per_second: float
    cache_bytes: int
    """Size of the last cache before memory."""


def _sheet(
    float64: float,
    float32: float,
    tf32: float | None,
    bfloat16: float | None,
    float16: float,
    memory: float,
    cache: int,
) -> DataSheet:
    """Return a data sheet from TFLOP/s by type, the memory's GB/s and the last cache's MiB.

    A type's TFLOP/s are those of the matrix units or, if the matrix units do not support the type, of other units; None
    if no unit supports it.
    """
    teraflops: dict[Precision, float | None] = {
        "float64": float64,
        "float32": float32,
        "tf32": tf32,
        "bfloat16": bfloat16,
        "float16": float16,
    }
    flops: dict[Precision, float] = {name: value * TERA for name, value in teraflops.items() if value is not None}
    return DataSheet(flops_per_second=flops, bytes_per_second=memory * GIGA, cache_bytes=cache * MEBI)


# Sources, all by NVIDIA; figures "with sparsity" are halved: the data sheets of H200 (SXM), H100 (SXM,
# PCIe), A100 80GB, A100 40GB, L40S, L4, A10, V100 and T4, the product brief of H100 NVL. L2 caches: the white papers of
# the architectures (Hopper, Ampere, Ada, Turing, Volta).
_H100_SXM = (67, 67, 494.7, 989.4, 989.4)
SHEETS: Mapping[str, DataSheet] = {
    "NVIDIA H200": _sheet(*_H100_SXM, memory=4800, cache=50),
    "NVIDIA H100 80GB HBM3": _sheet(*_H100_SXM, memory=3350, cache=50),
    "NVIDIA H100 NVL": _sheet(60, 60, 417.5, 835.5, 835.5, memory=3900, cache=50),
    "NVIDIA H100 PCIe": _sheet(51, 51, 378, 756, 756, memory=2000, cache=50),
    "NVIDIA A100-SXM4-80GB": _sheet(19.5, 19.5, 156, 312, 312, memory=2039, cache=40),
    "NVIDIA A100 80GB PCIe": _sheet(19.5, 19.5, 156, 312, 312, memory=1935, cache=40),
    "NVIDIA A100-SXM4-40GB": _sheet(19.5, 19.5, 156, 312, 312, memory=1555, cache=40),
    "NVIDIA A100-PCIE-40GB": _sheet(19.5, 19.5, 156, 312, 312, memory=1555, cache=40),
    "NVIDIA L40S": _sheet(1.43, 91.6, 183, 362.05, 362.05, memory=864, cache=96),
    "NVIDIA L4": _sheet(0.47, 30.3, 60, 121, 121, memory=300, cache=48),
    "NVIDIA A10": _sheet(0.98, 31.2, 62.5, 125, 125, memory=600, cache=6),
    "Tesla V100-SXM2-16GB": _sheet(7.8, 15.7, None, None, 125, memory=900, cache=6),
    "Tesla V100-SXM2-32GB": _sheet(7.8, 15.7, None, None, 125, memory=900, cache=6),
    "Tesla T4": _sheet(0.25, 8.1, None, None, 65, memory=320, cache=4),
}
"""Data sheets by the device name of CUDA and NVML. MIG slices have other names and are not listed."""

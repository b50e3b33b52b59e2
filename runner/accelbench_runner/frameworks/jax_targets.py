"""Devices that are not there, for JAX to compile for: XLA's compilers for GPUs and TPUs need none.

GPUs: the specification that a driver would give is written out (`accelbench.targets`). TPUs: libtpu knows its slices.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils, topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from accelbench.targets import Specification, Target
from accelbench.targets.mesh import UnevenMeshError, divide
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import UnsupportedError

LIBTPU = {
    "TPU_SKIP_MDS_QUERY": "1",  # no machine's metadata: this is no machine of Google's
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # else a lock file lets one process at a time compile
    "TPU_MIN_LOG_LEVEL": "3",
}
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"


def mesh(target: Target, axes: Mapping[str, int]) -> Mesh:
    """The target's devices, so many along each axis.

    Raises UnsupportedError where what compiles for them is missing, and where the axes do not come to their number.
    """
    if target.missing:
        raise UnsupportedError(target.missing)
    try:
        sizes = divide(axes, target.devices)
    except UnevenMeshError as error:
        raise UnsupportedError(f"{target.name}: {error}") from None
    devices = _devices(target)
    if target.platform != "tpu" or target.devices == 1:
        return Mesh(np.array(devices).reshape(*sizes.values()), tuple(sizes))
    # Neighbours beside each other, as a run on that slice would have them.
    laid = mesh_utils.create_device_mesh(tuple(sizes.values()), devices, allow_split_physical_axes=True)
    return Mesh(laid, tuple(sizes))


def _devices(target: Target) -> Sequence[Any]:
    match target.platform:
        case "tpu":
            os.environ.update({name: value for name, value in LIBTPU.items() if name not in os.environ})
            bounds = {"chips_per_host_bounds": (1, 1, 1)} if target.devices == 1 else {}
            topology = topologies.get_topology_desc(
                platform="tpu", topology_name=f"{target.chip.name}:{target.topology}", **bounds
            )
        case "cuda":
            specification = target.chip.specification
            assert specification is not None  # noqa: S101 - the table has one for every GPU
            topology = topologies.get_topology_desc(
                platform="cuda",
                topology_name=target.chip.name,
                target_config=described(specification, target.chip.memory_bytes or 0),
                topology=target.topology,
            )
        case _:
            return list(jax.devices()[:1])
    devices: Sequence[Any] = topology.devices
    return devices


def described(chip: Specification, memory_bytes: int) -> str:
    """The GPU as XLA reads it, GpuTargetConfigProto in text format.

    Threads, blocks and registers are those of every GPU since Volta.
    """
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: {chip.shared_memory_per_block}
  shared_memory_per_core: {chip.shared_memory_per_core}
  core_count: {chip.cores} fpus_per_core: {chip.fpus_per_core}
  memory_bandwidth: {chip.memory_bytes_per_second} l2_cache_size: {chip.l2_cache_bytes}
  clock_rate_ghz: {chip.clock_gigahertz} device_memory_size: {memory_bytes}
  cuda_compute_capability {{ major: {chip.major} minor: {chip.minor} feature_extension: {chip.features} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
device_description_str: "{chip.name}"
"""


def placements(tree: Any, devices: Mesh, divided: Any = ()) -> Any:
    """Where each array lies: whole on each device, or split as `divided` says, axis by axis.

    `divided` has the axes of each array (`("data", None)`), or stands for all arrays below where it ends.
    Raises UnsupportedError where an array's dimension cannot be split evenly.
    """
    if _is_axes(divided):
        return jax.tree.map_with_path(lambda path, leaf: _placement(path, leaf, devices, divided), tree)
    return jax.tree.map(lambda axes, below: placements(below, devices, axes), divided, tree, is_leaf=_is_axes)


def _is_axes(value: Any) -> bool:
    return isinstance(value, PartitionSpec) or (
        isinstance(value, tuple) and all(each is None or isinstance(each, str) for each in value)
    )


def _placement(path: Any, leaf: Any, devices: Mesh, axes: Sequence[Any]) -> NamedSharding:
    shape = np.shape(leaf)
    for size, named in zip(shape, axes, strict=False):
        over = (named,) if isinstance(named, str) else tuple(named or ())
        if size % (count := math.prod(devices.shape[axis] for axis in over)):
            where = f" of {jax.tree_util.keystr(path, simple=True, separator='.')}" if path else ""
            raise UnsupportedError(
                f"a dimension of {size}{where} cannot be divided evenly over {count} devices ({' x '.join(over)}): "
                f"use other parameters"
            )
    return NamedSharding(devices, PartitionSpec(*axes[: len(shape)]))


def abstract(tree: Any, placed: Any) -> Any:
    """Shapes and types of arrays, and where they lie."""
    return jax.tree.map(
        lambda leaf, placement: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype, sharding=placement), tree, placed
    )


def in_place(call: Any, program: Program, state_placed: Any) -> Any:
    """A compiled call whose next state lies where its state does: else a compiler may put it elsewhere."""
    donated = (0,) if program.donate else ()
    return jax.jit(call.__wrapped__, donate_argnums=donated, out_shardings=(state_placed, None))


def planned(plan: Any, platform: str) -> dict[str, int]:
    """What a call holds on a device, by XLA's plan; a backend that plans no peak holds all of it at once.

    For processors XLA says a peak that leaves temporary bytes out.
    """
    whole = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes + plan.temp_size_in_bytes
    peak = 0 if platform == "cpu" else plan.peak_memory_in_bytes
    return {
        "argument_bytes": plan.argument_size_in_bytes,
        "output_bytes": plan.output_size_in_bytes,
        "peak_bytes": peak or whole,
    }

"""Compile JAX programs for absent devices: XLA's compilers for GPUs and TPUs need no device.

For a GPU, XLA gets the specification that a driver would report (`accelbench.targets`). For a TPU, libtpu contains the
specification of each slice.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils, topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from accelbench.document import shorten
from accelbench.launch.facts import CompiledFor, ExecutableSize
from accelbench.machine import memory
from accelbench.targets import Specification, Target, UnevenMeshError, divide_mesh
from accelbench.workload import Divided, Program
from accelbench_runner.frameworks import xla_programs
from accelbench_runner.frameworks.adapter import Targets, UnsupportedError
from accelbench_runner.frameworks.jax_accounting import CompiledCall, JaxAccounting, try_call
from accelbench_runner.frameworks.work import Work
from accelbench_runner.frameworks.xla_operations import count_stablehlo

LIBTPU = {
    "TPU_SKIP_MDS_QUERY": "1",  # do not query Google Cloud's metadata server
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # otherwise a lock file lets one process at a time compile
    "TPU_MIN_LOG_LEVEL": "3",
}
"""Environment variables with which libtpu compiles on a machine without TPUs."""
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
MAXIMUM_REFUSAL_CHARACTERS = 1000


class JaxTargets(Targets):
    """Compile the prepared call with XLA's compiler for the target."""

    abstract = False
    """True while `put` returns traced shapes."""

    def __init__(self, compiled: CompiledCall, accounting: JaxAccounting) -> None:
        self._compiled, self._accounting = compiled, accounting

    def build_abstract(self, build: Callable[[], tuple[Program, Work]]) -> tuple[Program, Work]:
        """Run `build` under JAX's tracing; return its program and work with shapes in place of arrays."""
        results: list[tuple[Program, Work]] = []  # what `build` returned: a traced function can return only arrays

        def build_and_return_arrays() -> Any:
            """Run `build`, store its results, and return their arrays, of which `jax.eval_shape` makes shapes."""
            program, work = build()
            results.append((program, work))
            return program.state, program.batches, work.batches

        self.abstract = True
        try:
            state, program_batches, work_batches = jax.eval_shape(build_and_return_arrays)
        finally:
            self.abstract = False
        [(program, work)] = results
        return (
            replace(program, state=state, batches=program_batches),
            replace(work, fresh=lambda: state, batches=work_batches),
        )

    def compile(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Compile `work.call` for the target, from shapes and types; return whether it fits, and the program's sizes.

        Raises UnsupportedError if the call is not jitted as a whole.
        """
        if not hasattr(work.call, "trace"):
            raise UnsupportedError(
                "this variant runs operation by operation or part by part, so there is no whole program to compile: "
                "use jax/jit"
            )
        self._lower(program, work, target)
        program_size = try_call(lambda: count_stablehlo(self._compiled.lowered.compiler_ir().operation))
        facts = CompiledFor(
            fits=1,  # unless the compiler refuses the program, or its peak is larger than the memory
            device_memory_bytes=target.chip.memory_bytes or memory.available_bytes(),
            divided=program.divided is not None and target.devices > 1,
        )
        try:
            executable = self._compiled.executable = self._compiled.lowered.compile()
        except jax.errors.JaxRuntimeError as error:
            if OUT_OF_MEMORY not in str(error):
                raise
            refusal = shorten(" ".join(str(error).split()), MAXIMUM_REFUSAL_CHARACTERS)
            return facts.model_copy(update={"fits": 0, "refused": refusal}), ExecutableSize(program_size=program_size)
        size = self._accounting.executable_size() or ExecutableSize()
        contents = xla_programs.inspect_program(executable.as_text())
        size = size.model_copy(update=memory_plan(executable.memory_analysis(), target.platform))
        if contents is None:  # the backend gives no HLO text: `fits` stays 1
            return facts, size
        # The compiler for TPUs refuses a program that does not fit. The one for GPUs does not: compare the peak.
        memory_bytes = facts.device_memory_bytes or math.inf
        fits = target.platform == "tpu" or (size.peak_bytes or 0) <= memory_bytes
        facts = facts.model_copy(update={"fits": int(fits), "fused": list(contents.fused)})
        return facts, size.model_copy(update=contents.size_fields())

    def _lower(self, program: Program, work: Work, target: Target) -> None:
        """Trace `work.call` and lower it to StableHLO for the target's devices.

        Arrays are split over the devices as `program.divided` declares, or else replicated.
        """
        declared = program.divided or Divided()
        mesh = make_mesh(target, declared.mesh)
        state = work.fresh()
        call: Any = work.call
        state_shardings = shardings_of(state, mesh, declared.state)
        batch_shardings = shardings_of(work.batches, mesh, declared.batches)
        with jax.set_mesh(mesh) if target.devices > 1 else nullcontext():
            if program.divided is not None and target.devices > 1:
                call = pin_state_sharding(call, program, state_shardings)
            abstract_state = shape_structs(state, state_shardings)
            abstract_batches = shape_structs(work.batches, batch_shardings)
            self._compiled.traced = call.trace(abstract_state, abstract_batches)
            self._compiled.lowered = self._compiled.traced.lower()


def make_mesh(target: Target, axes: Mapping[str, int]) -> Mesh:
    """Arrange the target's devices in a mesh; `axes` has the size of each axis by name, or 0 to use all devices left.

    Raises UnsupportedError if the sizes do not match the number of devices, or if the target's compiler is missing.
    """
    if target.missing_message:
        raise UnsupportedError(target.missing_message)
    try:
        sizes = divide_mesh(axes, target.devices)
    except UnevenMeshError as error:
        raise UnsupportedError(f"{target.name}: {error}") from None
    devices = _devices(target)
    if target.platform != "tpu" or target.devices == 1:
        return Mesh(np.array(devices).reshape(*sizes.values()), tuple(sizes))
    # Put devices that are adjacent in the TPU slice next to each other in the mesh, as in a run on that slice.
    arranged = mesh_utils.create_device_mesh(tuple(sizes.values()), devices, allow_split_physical_axes=True)
    return Mesh(arranged, tuple(sizes))


def _devices(target: Target) -> Sequence[Any]:
    """Return XLA's descriptions of the target's devices."""
    match target.platform:
        case "tpu":
            for variable, value in LIBTPU.items():
                os.environ.setdefault(variable, value)
            # By default libtpu describes hosts with several chips, but a single device needs a host with one chip.
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
                target_config=gpu_target_config(specification, target.chip.memory_bytes or 0),
                topology=target.topology,
            )
        case _:  # the CPU of this machine
            return list(jax.devices()[:1])
    devices: Sequence[Any] = topology.devices
    return devices


def gpu_target_config(chip: Specification, memory_bytes: int) -> str:
    """Describe the GPU to XLA, as a GpuTargetConfigProto in text format.

    The literal limits hold for every GPU since Volta. The version of cuDNN is assumed to be 9.10.
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


def shardings_of(tree: Any, mesh: Mesh, divided: Any = ()) -> Any:
    """Return a tree with the sharding of each array in `tree`.

    `divided` is a tuple of mesh axes for all arrays, or a tree of such tuples for subtrees. `("data", None)` splits an
    array's first dimension over the mesh axis `data`; `()` splits nothing.
    """
    if _is_axes(divided):
        return jax.tree.map_with_path(lambda path, leaf: _array_sharding(path, leaf, mesh, divided), tree)
    return jax.tree.map(lambda axes, subtree: shardings_of(subtree, mesh, axes), divided, tree, is_leaf=_is_axes)


def _is_axes(value: Any) -> bool:
    """Return True for a tuple of mesh axes, one for each dimension of an array, such as `("data", None)`."""
    if isinstance(value, PartitionSpec):
        return True
    return isinstance(value, tuple) and all(axis is None or isinstance(axis, str) for axis in value)


def _array_sharding(path: Any, array: Any, mesh: Mesh, axes: Sequence[Any]) -> NamedSharding:
    """Return the sharding of an array; for each dimension, `axes` has a mesh axis, a tuple of them, or None.

    Raises UnsupportedError, with the array's `path` in its tree, for a dimension that cannot be divided evenly.
    """
    shape = np.shape(array)
    # There can be more axes than dimensions, because arrays of different rank may share the axes of a subtree.
    for size, axis_names in zip(shape, axes, strict=False):
        mesh_axes = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names or ())
        count = math.prod(mesh.shape[axis] for axis in mesh_axes)
        if size % count:
            where = f" of {jax.tree_util.keystr(path, simple=True, separator='.')}" if path else ""
            raise UnsupportedError(
                f"a dimension of {size}{where} cannot be divided evenly over {count} devices "
                f"({' x '.join(mesh_axes)}): use other parameters"
            )
    return NamedSharding(mesh, PartitionSpec(*axes[: len(shape)]))


def shape_structs(tree: Any, shardings: Any) -> Any:
    """Replace each array of a tree by its shape, type and sharding, from which JAX can compile."""

    def describe(array: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(np.shape(array), array.dtype, sharding=sharding)

    return jax.tree.map(describe, tree, shardings)


def pin_state_sharding(call: Any, program: Program, state_sharding: Any) -> Any:
    """Jit the call again, so that the state that it returns is sharded like the state that it takes.

    Otherwise XLA could choose another sharding for the returned state.
    """
    donated = (0,) if program.donate else ()  # position of the state among the arguments
    function = call.__wrapped__  # the function inside `jax.jit`
    out_shardings = (state_sharding, None)  # None lets XLA choose the sharding of the step's output
    return jax.jit(function, donate_argnums=donated, out_shardings=out_shardings)


def memory_plan(plan: Any, platform: str) -> dict[str, int]:
    """Return the bytes of arguments, outputs and peak from XLA's memory analysis, as fields of `ExecutableSize`."""
    total = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes + plan.temp_size_in_bytes
    # The total is used where XLA reports no peak (0), and for a CPU, where XLA's own peak leaves out temporary buffers.
    planned_peak = 0 if platform == "cpu" else plan.peak_memory_in_bytes
    return {
        "argument_bytes": plan.argument_size_in_bytes,
        "output_bytes": plan.output_size_in_bytes,
        "peak_bytes": planned_peak or total,
    }

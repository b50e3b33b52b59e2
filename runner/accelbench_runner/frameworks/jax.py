"""Run JAX programs: jit, op-by-op and scan, on CPU, GPU or TPU."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from accelbench.catalogue.workload_checks import check_step
from accelbench.launch.facts import Device, GradMode, Precision
from accelbench.workload import Array, Program
from accelbench_runner.frameworks.adapter import (
    NOT_PLACED,
    Adapter,
    AdapterSettings,
    UnsupportedError,
    cast_complex,
    installed_version,
    last_out,
    step_loop,
)
from accelbench_runner.frameworks.jax_accounting import CompiledCall, JaxAccounting
from accelbench_runner.frameworks.jax_targets import JaxTargets
from accelbench_runner.frameworks.work import Work

DTYPES = {
    "float64": jnp.float64,
    "float32": jnp.float32,
    "tf32": jnp.float32,
    "bfloat16": jnp.bfloat16,
    "float16": jnp.float16,
}
MATMUL_PRECISION = {"tf32": "tensorfloat32"}
"""Precision of float32 products; every other policy uses the type's full precision."""
LIBRARIES = {"cuda": {"cudnn": ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")}}
"""Libraries of a backend whose versions JAX does not report, and the distributions that contain them."""
PRODUCT_OPTIONS = {"cuda": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}}
"""Compiler options for `product`, by backend: they select cuBLAS without autotuning, which takes more than 20 s on an
H100 for all sizes by which a device's limits are measured."""
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "YNNPACK operation failed: error")
"""Messages of XLA on every platform, and of its CPU library when a kernel's workspace cannot be allocated."""


class Jax(Adapter):
    """Adapt JAX; a process creates one instance."""

    accounting: JaxAccounting
    targets: JaxTargets

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        self._dtype = DTYPES[settings.precision]
        self.compiled = CompiledCall()
        self.accounting = JaxAccounting(self.compiled)
        self.targets = JaxTargets(self.compiled, self.accounting)
        self.float_bytes = jnp.dtype(self._dtype).itemsize

    def versions(self) -> dict[str, str]:
        """Return the versions of JAX, of jaxlib (XLA), of the device's runtime, and of cuDNN on a GPU."""
        reported = {
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "runtime": jax.devices()[0].client.platform_version.strip().replace("\n", " "),
        }
        libraries = LIBRARIES.get(self._settings.backend, {})
        versions = {name: installed_version(*packages) for name, packages in libraries.items()}
        return reported | {name: ".".join(version.split(".")[:3]) for name, version in versions.items() if version}

    def initialise(self) -> None:
        """Select the backend, so that JAX looks for no other, and start it with a first array."""
        backend = self._settings.backend
        jax.config.update("jax_platforms", backend)
        jax.config.update("jax_enable_x64", self._settings.precision == "float64")
        jax.config.update("jax_default_matmul_precision", MATMUL_PRECISION.get(self._settings.precision, "highest"))
        self.accounting.listen()
        try:
            jax.devices()
        except (RuntimeError, AssertionError) as error:  # JAX raises the latter without a plugin for the backend
            why = f": {error}" if str(error) else ""
            raise UnsupportedError(f"no {backend.upper()} device is visible to JAX{why}") from error
        self.put(np.zeros(1)).block_until_ready()

    def put(self, arrays: Any) -> Any:
        """Copy arrays to the default device, which is the first."""
        return jax.tree.map(self._abstract if self.targets.abstract else self._concrete, arrays)

    def _abstract(self, array: Array) -> jax.Array:
        """Return zeros of the shape and type that the array has on the device; traced zeros take no memory."""
        array = cast_complex(np.asarray(array), self._settings.precision)
        floating = np.issubdtype(array.dtype, np.floating)
        return jnp.zeros(array.shape, self._dtype if floating else jax.dtypes.canonicalize_dtype(array.dtype))

    def _concrete(self, array: Array) -> jax.Array:
        """Copy the array to the device; raise UnsupportedError if its integers do not fit JAX's type."""
        array = cast_complex(np.asarray(array), self._settings.precision)
        if np.issubdtype(array.dtype, np.floating):
            return jax.device_put(array.astype(self._dtype))
        converted = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
        if array.dtype.kind in "iu" and not np.array_equal(converted, array):
            raise UnsupportedError(
                f"JAX has no {array.dtype} outside of float64, and the numbers do not fit {converted.dtype}"
            )
        return jax.device_put(converted)

    def prepare(self, program: Program) -> Work:
        """Unroll the steps of a call (jit), keep them in a loop (scan), or dispatch every operation (op-by-op)."""
        batches: Any
        mode = self._settings.mode
        call, batches = step_loop(program)
        last = last_out(program)
        self.compiled.op_by_op = mode == "op-by-op" and not program.placed
        donated = (0,) if program.donate else ()
        if program.placed or mode == "op-by-op":
            pass
        elif mode == "jit":
            call = jax.jit(call, donate_argnums=donated)
        elif mode == "scan":
            call, batches = self._scan(program)
            call = jax.jit(call, donate_argnums=donated)
            last = partial(jax.tree.map, lambda stacked: stacked[-1])  # a scan stacks the outs
        else:
            raise UnsupportedError(f"JAX has no mode {mode}. {NOT_PLACED}")
        return Work(
            # Arrays are immutable, so the same state serves every block, unless a call may reuse its memory.
            fresh=(lambda: jax.tree.map(jnp.copy, program.state)) if program.donate else (lambda: program.state),
            call=call,
            batches=batches,
            # The CPU client runs what one thread dispatches in order, as a GPU's stream does: waiting for the last
            # result is enough.
            synchronise=jax.block_until_ready,
            units=program.inner * program.units,
            last_out=last,
            check=partial(check_step, program.step),
        )

    def _scan(self, program: Program) -> tuple[Any, Any]:
        """Return a function that runs the steps in one lax.scan, and its batches.

        Raises UnsupportedError if batches differ in shape.
        """
        length, period = program.inner, len(program.batches)
        if period == 1:

            def one_batch(state: Any, batch: Any) -> tuple[Any, Any]:
                """Scan without stacking a copy of the batch for each step."""
                final: tuple[Any, Any] = jax.lax.scan(lambda carry, _: program.step(carry, batch), state, length=length)
                return final

            return one_batch, program.batches[0]
        shapes = [jax.tree.map(jnp.shape, batch) for batch in program.batches]
        if any(shape != shapes[0] for shape in shapes):
            raise UnsupportedError("jax/scan needs batches of one shape: a loop's body is compiled once")
        order = np.arange(length) % period
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[order], *program.batches)
        return (lambda state, batches: jax.lax.scan(program.step, state, batches)), stacked

    def compile_ahead(self, work: Work) -> None:
        """Compile through jax.stages; the call that follows reuses the executable."""
        if hasattr(work.call, "trace"):
            self.compiled.traced = work.call.trace(work.fresh(), work.batches)
            self.compiled.lowered = self.compiled.traced.lower()
            self.compiled.executable = self.compiled.lowered.compile()

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert floats to float64, which represents bfloat16 exactly; NumPy has no bfloat16."""
        return {
            name: np.asarray(array).astype(np.float64)
            if jnp.issubdtype(array.dtype, jnp.floating)
            else np.asarray(array)
            for name, array in arrays.items()
        }

    def device(self, value: Any) -> Device:
        """Read the devices from the arrays; JAX calls several backends `gpu`, so the backend's own list decides."""
        devices = {
            device for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array) for device in leaf.devices()
        }
        measured = set(jax.devices(self._settings.backend))
        backends = {self._settings.backend if device in measured else device.platform for device in devices}
        # A kind that only repeats the platform is no model.
        kinds = {"" if device.device_kind == device.platform else device.device_kind for device in devices}
        return self._settings.describe_device(backends, kinds, len(devices))

    def precision(self) -> Precision:
        """Read back the settings, and probe whether denormals are flushed: XLA has no setting to read."""
        smallest_normal = np.finfo(np.float32).tiny
        halved = jax.jit(lambda number: number * 0.5)(jax.device_put(smallest_normal))
        return Precision(
            policy=self._settings.precision,
            dtype=jnp.dtype(self._dtype).name,
            matmul={"jax_default_matmul_precision": jax.config.jax_default_matmul_precision},
            flush_denormal=float(halved) == 0.0,
        )

    def gradients(self) -> GradMode:
        """Return `functional`: JAX differentiates functions and records nothing."""
        return "functional"

    def drain(self) -> None:
        """Wait for side effects, and on each device for a computation that is queued behind all others."""
        jax.effects_barrier()
        for device in jax.local_devices():
            (jax.device_put(np.float32(1), device) + 1).block_until_ready()

    def ready(self, value: Any) -> bool | None:
        """Return True if every array is computed; PRNG keys cannot be asked."""
        return all(leaf.is_ready() for leaf in jax.tree.leaves(value) if hasattr(leaf, "is_ready"))

    def product(self, size: int) -> Callable[[], None]:
        """Return a call of one compiled matrix product."""
        x = self._normal_numbers(size, size)
        multiply = jax.jit(jnp.matmul, compiler_options=PRODUCT_OPTIONS.get(self._settings.backend))
        return lambda: jax.block_until_ready(multiply(x, x))

    def triad(self, elements: int) -> Callable[[], None]:
        """Return a call that updates `a` in place: a new array each time would measure the kernel's page allocation."""
        b, buffer = self._normal_numbers(elements), [self._normal_numbers(elements)]
        add = jax.jit(lambda a, b: b + jnp.asarray(0.5, a.dtype) * a, donate_argnums=0)

        def call() -> None:
            buffer[0] = add(buffer[0], b).block_until_ready()

        return call

    def overwrite(self, size: int) -> Callable[[], None]:
        """Return a call that increments a byte array in place."""
        memory = [jnp.zeros(size, dtype=jnp.uint8)]
        change = jax.jit(lambda buffer: buffer + jnp.uint8(1), donate_argnums=0)
        memory[0] = change(memory[0]).block_until_ready()

        def call() -> None:
            memory[0] = change(memory[0]).block_until_ready()

        return call

    def _normal_numbers(self, *shape: int) -> jax.Array:
        """Return an array of normal numbers: hardware may handle zeros and denormals at another speed."""
        return jnp.full(shape, 0.75, dtype=self._dtype)

    def out_of_memory(self, error: BaseException) -> bool:
        """Return True if the message of XLA's error contains one of `OUT_OF_MEMORY`."""
        return isinstance(error, jax.errors.JaxRuntimeError) and any(text in str(error) for text in OUT_OF_MEMORY)

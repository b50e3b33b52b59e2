"""Run JAX programs: jit, op-by-op and scan, on CPU, GPU or TPU."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from accelbench.catalogue.numbers import NotNumbersError, to_numbers
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
    require_numbers,
    step_loop,
)
from accelbench_runner.frameworks.jax_accounting import CompiledCall, JaxAccounting
from accelbench_runner.frameworks.jax_captured import JaxCaptured
from accelbench_runner.frameworks.jax_profiler import JaxProfiler
from accelbench_runner.frameworks.jax_targets import JaxTargets
from accelbench_runner.frameworks.work import Work

DTYPES = {
    "float64": jnp.float64,
    "float32": jnp.float32,
    "tf32": jnp.float32,
    "default": jnp.float32,
    "bfloat16": jnp.bfloat16,
    "float16": jnp.float16,
}
MATMUL_PRECISION = {"tf32": "tensorfloat32", "default": None}
"""Precision of float32 products, None for JAX's default; every other policy uses the type's full precision."""
LIBRARIES = {"cuda": {"cudnn": ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")}}
"""Libraries of a backend whose versions JAX does not report, and the distributions that contain them."""
PRODUCT_OPTIONS = {"cuda": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}}
"""Compiler options for `product`, by backend: they select cuBLAS without autotuning, which takes more than 20 s on an
H100 for all sizes by which a device's limits are measured."""
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "YNNPACK operation failed: error")
"""Messages of XLA on every platform, and of its CPU library when a kernel's workspace cannot be allocated."""


class Jax(Adapter):
    """Adapt JAX.

    Precision and backend are settings of the whole process (`jax.config`). So once an instance is initialised, earlier
    instances must run no more programs.
    """

    accounting: JaxAccounting
    targets: JaxTargets

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        os.environ["KERAS_BACKEND"] = "jax"  # Keras reads it when a program imports it
        self._dispatches_functions = False
        """True if a program calls functions of `in_mode` that are not jitted."""
        self._dtype = DTYPES[settings.precision]
        self.compiled = CompiledCall()
        self.accounting = JaxAccounting(self.compiled)
        self.targets = JaxTargets(self.compiled, self.accounting)
        self.profiler = JaxProfiler(self.compiled)
        self.float_bytes = jnp.dtype(self._dtype).itemsize
        self._captured = JaxCaptured(self._dtype, DTYPES[settings.rounded or settings.precision])

    def versions(self) -> dict[str, str]:
        """Return the versions of JAX, of its compiler and of the device's libraries."""
        reported = {
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "runtime": jax.devices()[0].client.platform_version.strip().replace("\n", " "),
        }
        for library, distributions in LIBRARIES.get(self._settings.backend, {}).items():
            version = installed_version(*distributions)
            if version:
                reported[library] = ".".join(version.split(".")[:3])  # without the build number
        return reported

    def initialise(self) -> None:
        """Apply the settings, and start the backend with a first array; raises UnsupportedError without a device."""
        backend = self._settings.backend
        jax.config.update("jax_platforms", backend)  # otherwise JAX looks for other backends too
        jax.config.update("jax_enable_x64", self._settings.precision == "float64")
        jax.config.update("jax_default_matmul_precision", MATMUL_PRECISION.get(self._settings.precision, "highest"))
        self.accounting.register_callbacks()
        try:
            jax.devices()
        except (RuntimeError, AssertionError) as error:  # JAX raises the latter without a plugin for the backend
            reason = f": {error}" if str(error) else ""
            raise UnsupportedError(f"no {backend.upper()} device is visible to JAX{reason}") from error
        self.put(np.zeros(1)).block_until_ready()

    def in_float64(self) -> "Jax":
        """Return an initialised adapter for float64 in the same mode; the old one must not be used again."""
        adapter = Jax(replace(self._settings, precision="float64"))
        adapter.initialise()
        return adapter

    def put(self, arrays: Any) -> Any:
        """Copy a pytree of NumPy arrays to the device; for an absent device, return traced arrays without numbers."""
        convert = self._abstract_array if self.targets.abstract else self._device_array
        return jax.tree.map(convert, arrays)

    def _abstract_array(self, array: Array) -> jax.Array:
        """Return zeros with the shape and dtype that `put` would give the array; under tracing, they take no memory."""
        array = cast_complex(require_numbers(array), self._settings.precision)
        is_floating = np.issubdtype(array.dtype, np.floating)
        dtype = self._dtype if is_floating else jax.dtypes.canonicalize_dtype(array.dtype)
        return jnp.zeros(array.shape, dtype)

    def _device_array(self, array: Array) -> jax.Array:
        """Copy the array to the device; floats and complex numbers get the precision policy's type.

        Raises InvalidWorkloadError if it is no array of numbers, and UnsupportedError for 64-bit integers that do not
        fit into 32 bits.
        """
        array = cast_complex(require_numbers(array), self._settings.precision)
        if np.issubdtype(array.dtype, np.floating):
            return jax.device_put(array.astype(self._dtype))
        # Unless the policy is float64, JAX has no integers of 64 bits.
        converted = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
        if array.dtype.kind in "iu" and not np.array_equal(converted, array):
            raise UnsupportedError(
                f"JAX has no {array.dtype} outside of float64, and the numbers do not fit {converted.dtype}"
            )
        return jax.device_put(converted)

    def in_mode(self, function: Callable[..., Any], *, one_program: bool = False) -> Callable[..., Any]:  # noqa: ARG002
        """Return the function, jitted if the variant's mode is `jit`.

        `one_program` has no effect, because jit always makes one program.
        """
        if self._settings.mode == "jit":
            jitted: Callable[..., Any] = jax.jit(function)
            return jitted
        self._dispatches_functions = True
        return function

    def convert_captured(self, program: Program) -> Program:
        """Convert captured floats to the policy's type, and pass captured modules of Flax to a jitted step as state."""
        compiles = self._settings.mode != "op-by-op" and not program.placed  # then `prepare` jits the step
        return self._captured.convert_captured(program, compiles=compiles)

    def restore_captured(self) -> None:
        """Restore the captured modules of Flax (nnx) that calls have changed in place."""
        self._captured.restore()

    def prepare(self, program: Program) -> Work:
        """Return the call to time, of `program.inner` steps, in the variant's mode: jit, op-by-op or scan.

        Raises UnsupportedError for another mode, or if the steps cannot be scanned.
        """
        batches: Any
        mode = self._settings.mode
        call, batches = step_loop(program)
        pick_last_out = last_out(program)
        # The parts of a placed program are jitted, except for functions that `in_mode` has returned as they are.
        has_jitted_parts = program.placed and not self._dispatches_functions
        self.compiled.op_by_op = mode == "op-by-op" and not has_jitted_parts
        donated = (0,) if program.donate else ()  # position of the state among the arguments
        if program.placed or mode == "op-by-op":
            pass  # the call runs as it is written; the author of a placed program has jitted what should be
        elif mode == "jit":
            call = jax.jit(call, donate_argnums=donated)  # unrolls the steps
        elif mode == "scan":
            call, batches = self._scan(program)
            call = jax.jit(call, donate_argnums=donated)
            pick_last_out = partial(jax.tree.map, lambda stacked: stacked[-1])  # a scan stacks the outs of all steps
        else:
            raise UnsupportedError(f"JAX has no mode {mode}. {NOT_PLACED}")

        def fresh_state() -> Any:
            """Return the program's initial state for a block, and restore the captured modules that calls changed."""
            self._captured.restore()
            # Arrays are immutable, so all blocks can share them, unless the call may overwrite its state (`donate`).
            return jax.tree.map(jnp.copy, program.state) if program.donate else program.state

        return Work(
            fresh=fresh_state,
            call=call,
            batches=batches,
            # The CPU client runs what one thread dispatches in order, as a GPU's stream does: waiting for the last
            # result is enough.
            synchronise=jax.block_until_ready,
            units=program.inner * program.units,
            last_out=pick_last_out,
            check=partial(check_step, program.step),
        )

    def _scan(self, program: Program) -> tuple[Any, Any]:
        """Return a function that runs the steps in one `lax.scan`, and the batches to pass to that function.

        Raises UnsupportedError if the batches have different shapes.
        """
        length, batch_count = program.inner, len(program.batches)
        if batch_count == 1:

            def one_batch(state: Any, batch: Any) -> tuple[Any, Any]:
                """Run all steps in a `lax.scan` on the same batch, which is not copied for each step."""
                result: tuple[Any, Any] = jax.lax.scan(
                    lambda carry, _: program.step(carry, batch), state, length=length
                )
                return result

            return one_batch, program.batches[0]
        shapes = [jax.tree.map(jnp.shape, batch) for batch in program.batches]
        if any(shape != shapes[0] for shape in shapes):  # then they cannot be stacked either
            raise UnsupportedError("jax/scan needs batches of one shape: a loop's body is compiled once")
        batch_of_step = np.arange(length) % batch_count  # the scan takes one batch for each step
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[batch_of_step], *program.batches)
        return (lambda state, batches: jax.lax.scan(program.step, state, batches)), stacked

    def compile_ahead(self, work: Work) -> None:
        """Compile `work.call` if it is jitted, and keep the stages for accounting; the first call reuses the result."""
        if hasattr(work.call, "trace"):
            self.compiled.traced = work.call.trace(work.fresh(), work.batches)
            self.compiled.lowered = self.compiled.traced.lower()
            self.compiled.executable = self.compiled.lowered.compile()

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Copy arrays to the host; floats become float64, as NumPy has no bfloat16.

        Raises NotNumbersError for sparse arrays, random keys and other values that are not arrays of numbers.
        """
        return {name: _host_array(array) for name, array in arrays.items()}

    def device(self, value: Any) -> Device:
        """Describe the devices of the arrays in `value`."""
        arrays = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]
        devices = {device for array in arrays for device in array.devices()}
        # JAX calls several backends `gpu`, so ask the configured one for its devices.
        backend_devices = set(jax.devices(self._settings.backend))
        backends = {self._settings.backend if device in backend_devices else device.platform for device in devices}
        # A CPU's `device_kind` only repeats the platform, which is not a model.
        models = {"" if device.device_kind == device.platform else device.device_kind for device in devices}
        return self._settings.describe_device(backends, models, len(devices))

    def precision(self) -> Precision:
        """Read back JAX's settings of precision, and find out whether the device flushes denormals to zero."""
        # XLA has no setting for that, so compute a denormal: half of the smallest normal number.
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
        """Wait for side effects, such as callbacks, and for all queued computations."""
        jax.effects_barrier()
        for device in jax.local_devices():
            # A device runs its queue in order, so a new computation ends after all that were queued before.
            (jax.device_put(np.float32(1), device) + 1).block_until_ready()

    def ready(self, value: Any) -> bool | None:
        """Return True if every array in `value` is computed, else False; JAX knows it of each array."""
        # Leaves without `is_ready`, such as PRNG keys, are left out.
        return all(leaf.is_ready() for leaf in jax.tree.leaves(value) if hasattr(leaf, "is_ready"))

    def product(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two (size, size) matrices and waits for the result."""
        x = self._filled(size, size)
        multiply = jax.jit(jnp.matmul, compiler_options=PRODUCT_OPTIONS.get(self._settings.backend))
        return lambda: jax.block_until_ready(multiply(x, x))

    def triad(self, elements: int) -> Callable[[], None]:
        """Return a function that computes `a <- b + 0.5 a` in the memory of `a` and waits for the result."""
        a, b = self._filled(elements), self._filled(elements)
        # Donate `a`, so that the result is written to its memory. Otherwise each call would also measure how long the
        # operating system takes to allocate pages for a new array.
        scale_and_add = jax.jit(lambda a, b: b + jnp.asarray(0.5, a.dtype) * a, donate_argnums=0)

        def call() -> None:
            nonlocal a
            a = scale_and_add(a, b).block_until_ready()

        return call

    def overwrite(self, size: int) -> Callable[[], None]:
        """Return a function that overwrites `size` bytes of device memory, by adding 1 to each, and waits."""
        increment = jax.jit(lambda array: array + jnp.uint8(1), donate_argnums=0)
        array = increment(jnp.zeros(size, dtype=jnp.uint8)).block_until_ready()  # compiles `increment`

        def call() -> None:
            nonlocal array
            array = increment(array).block_until_ready()

        return call

    def _filled(self, *shape: int) -> jax.Array:
        """Return an array of 0.75: hardware may compute with zeros and denormals at another speed."""
        return jnp.full(shape, 0.75, dtype=self._dtype)

    def out_of_memory(self, error: BaseException) -> bool:
        """Return True if XLA's error means that memory ran out."""
        return isinstance(error, jax.errors.JaxRuntimeError) and any(text in str(error) for text in OUT_OF_MEMORY)


def _host_array(value: Any) -> Array:
    """Copy an array to the host; floats become float64. Raises NotNumbersError if it is not an array of numbers."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        raise NotNumbersError("random keys", "return jax.random.key_data() of them")
    if value.dtype == jax.dtypes.float0:
        raise NotNumbersError("the derivative of integers, which has no numbers (float0)", "leave it out")
    # JAX converts an object with `__jax_array__`, such as a variable of Flax, to an array.
    array = to_numbers(jnp.asarray(value) if hasattr(value, "__jax_array__") else value)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array

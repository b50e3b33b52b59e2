"""JAX: jit, op-by-op and scan, on CPU, GPU or TPU."""

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from accelbench.catalogue.workload_checks import check_step
from accelbench.launch.facts import Arithmetic, CompileCache, CompiledFor, Device, ExecutableSize, GradMode, Precision
from accelbench.machine import memory
from accelbench.targets import Target
from accelbench.workload import Array, Divided, Program
from accelbench_runner.frameworks import arithmetic, jax_targets, xla_programs
from accelbench_runner.frameworks.adapter import (
    NOT_PLACED,
    Adapter,
    AdapterSettings,
    Compilations,
    Counted,
    Span,
    UnsupportedError,
    cached_files,
    installed,
    parts_in,
    seconds_by_part,
    step_loop,
)
from accelbench_runner.frameworks.work import Work
from accelbench_runner.frameworks.xla_operations import count_hlo, count_jaxpr, count_kernels, count_stablehlo

DTYPES = {
    "float64": jnp.float64,
    "float32": jnp.float32,
    "tf32": jnp.float32,
    "bfloat16": jnp.bfloat16,
    "float16": jnp.float16,
}
MATMUL_PRECISION = {"tf32": "tensorfloat32"}
"""Of float32 products; every other policy takes the type's full precision."""
LIBRARIES = {"cuda": {"cudnn": ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")}}
"""What a backend computes with that JAX does not tell the version of, and the packages that bring it."""
RESERVED = ("peak_pool_bytes", "peak_bytes_reserved", "pool_bytes", "bytes_reserved")
"""What allocators call what they hold; the first that one tells."""
PARTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "backend",
}
PROGRAM = "PjitFunction("
"""How the events begin by which JAX tells the profiler that it runs a program."""
OWN_PRODUCTS = {"cuda": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}}
"""Options for our own products, by backend: cuBLAS's, as it comes. To tune one takes XLA seconds, on an H100 more than
20 s for all sizes that a device's limits are looked for with."""
REFUSAL_CHARACTERS = 400
"""Of what a compiler says where it refuses."""
CACHE_EVENTS = {"/jax/compilation_cache/cache_hits": "hits", "/jax/compilation_cache/cache_misses": "misses"}


Told = TypeVar("Told")


class Jax(Adapter):
    """The adapter; one in a process."""

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        self._dtype = DTYPES[settings.precision]
        self._heard: list[tuple[Span, str]] = []
        self._cache = {"hits": 0, "misses": 0}
        self._cached = cached_files("JAX_COMPILATION_CACHE_DIR")
        self._listed = self._scanned = self._placed = self._abstract = False
        self._traced: Any = None
        self._lowered: Any = None
        self.executable: Any = None
        self.float_bytes = jnp.dtype(self._dtype).itemsize

    def versions(self) -> dict[str, str]:
        """Of JAX, of jaxlib, which is XLA's as well, of the device's runtime, and on a GPU of cuDNN."""
        found = {
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "runtime": jax.devices()[0].client.platform_version.strip().replace("\n", " "),
        }
        libraries = LIBRARIES.get(self._settings.backend, {})
        versions = {name: installed(*packages) for name, packages in libraries.items()}
        return found | {name: ".".join(version.split(".")[:3]) for name, version in versions.items() if version}

    def import_compiler(self) -> bool:
        """Nothing: XLA comes with JAX itself."""
        return False

    def initialise(self) -> None:
        """Pins the backend, so that no other is even looked for; the first array makes it start."""
        backend = self._settings.backend
        jax.config.update("jax_platforms", backend)
        jax.config.update("jax_enable_x64", self._settings.precision == "float64")
        jax.config.update("jax_default_matmul_precision", MATMUL_PRECISION.get(self._settings.precision, "highest"))
        jax.monitoring.register_event_time_span_listener(self._listen)
        jax.monitoring.register_event_listener(self._count)
        try:
            jax.devices()
        except (RuntimeError, AssertionError) as error:  # the latter where JAX has no plugin for it at all
            why = f": {error}" if str(error) else ""
            raise UnsupportedError(f"no {backend.upper()} device is visible to JAX{why}") from error
        self.put(np.zeros(1)).block_until_ready()

    def put(self, arrays: Any) -> Any:
        """On the default device, which is the first."""
        return jax.tree.map(self._shape if self._abstract else self._array, arrays)

    def abstractly(self, set_up: Callable[[], tuple[Program, Work]]) -> tuple[Program, Work]:
        """Traced, so that what the author makes of arrays (an optimiser's state) is shapes as well."""
        made: list[tuple[Program, Work]] = []

        def traced() -> Any:
            made.append(set_up())
            ((program, work),) = made
            return program.state, program.batches, work.batches

        self._abstract = True
        try:
            state, batches, given = jax.eval_shape(traced)
        finally:
            self._abstract = False
        ((program, work),) = made
        return replace(program, state=state, batches=batches), replace(work, fresh=lambda: state, batches=given)

    def _shape(self, array: Array) -> jax.Array:
        array = parts_in(np.asarray(array), self._settings.precision)
        floating = np.issubdtype(array.dtype, np.floating)
        return jnp.zeros(array.shape, self._dtype if floating else jax.dtypes.canonicalize_dtype(array.dtype))

    def _array(self, array: Array) -> jax.Array:
        array = parts_in(np.asarray(array), self._settings.precision)
        if np.issubdtype(array.dtype, np.floating):
            return jax.device_put(array.astype(self._dtype))
        kept = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
        if array.dtype.kind in "iu" and not np.array_equal(kept, array):
            raise UnsupportedError(
                f"JAX has no {array.dtype} outside of float64, and the numbers do not fit {kept.dtype}"
            )
        return jax.device_put(kept)

    def prepare(self, program: Program) -> Work:
        """Unrolls the steps of a call (jit), keeps them in a loop (scan), or dispatches every operation (op-by-op)."""
        batches: Any
        mode = self._settings.mode
        dispatched = program.placed or mode == "op-by-op"
        call, batches = step_loop(program)
        self._listed = program.inner > 1
        donated = (0,) if program.donate else ()
        self._placed = program.placed
        if dispatched:
            pass
        elif mode == "jit":
            call = jax.jit(call, donate_argnums=donated)
        elif mode == "scan":
            call, batches = self._scan(program)
            call = jax.jit(call, donate_argnums=donated)
        else:
            raise UnsupportedError(f"JAX has no mode {mode}. {NOT_PLACED}")
        return Work(
            # Arrays cannot change, so the same ones are fresh every time, unless a call may reuse their memory.
            fresh=(lambda: jax.tree.map(jnp.copy, program.state)) if program.donate else (lambda: program.state),
            call=call,
            batches=batches,
            # The CPU client runs what one thread dispatches in order, as a GPU's stream does: the last is enough.
            synchronise=jax.block_until_ready,
            units=program.inner * program.units,
            check=partial(check_step, program.step),
        )

    def _scan(self, program: Program) -> tuple[Any, Any]:
        length, period = program.inner, len(program.batches)
        self._scanned = True
        if period == 1:

            def one_batch(state: Any, batch: Any) -> tuple[Any, Any]:
                last: tuple[Any, Any] = jax.lax.scan(lambda carry, _: program.step(carry, batch), state, length=length)
                return last

            return one_batch, program.batches[0]
        shapes = [jax.tree.map(jnp.shape, batch) for batch in program.batches]
        if any(shape != shapes[0] for shape in shapes):
            raise UnsupportedError("jax/scan needs batches of one shape: a loop's body is compiled once")
        order = np.arange(length) % period
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[order], *program.batches)
        return (lambda state, batches: jax.lax.scan(program.step, state, batches)), stacked

    def compile_ahead(self, work: Work) -> None:
        """Through jax.stages; the call that follows finds the same executable."""
        if hasattr(work.call, "trace"):
            self._traced = work.call.trace(work.fresh(), work.batches)
            self._lowered = self._traced.lower()
            self.executable = self._lowered.compile()

    def compile_for(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Shapes and types alone are given to it; what a target's compiler refuses for want of memory is an answer."""
        if not hasattr(work.call, "trace"):
            raise UnsupportedError(
                "this variant runs operation by operation or part by part, so there is no whole program to compile: "
                "use jax/jit"
            )
        divided = program.divided or Divided()
        devices = jax_targets.mesh(target, divided.mesh)
        state, call = work.fresh(), work.call
        placed = [
            jax_targets.placements(state, devices, divided.state),
            jax_targets.placements(work.batches, devices, divided.batches),
        ]
        with jax.set_mesh(devices) if target.devices > 1 else nullcontext():
            if program.divided is not None and target.devices > 1:
                call = jax_targets.in_place(call, program, placed[0])
            self._traced = call.trace(*map(jax_targets.abstract, (state, work.batches), placed))
            self._lowered = self._traced.lower()
        asked = _answer(lambda: count_stablehlo(self._lowered.compiler_ir().operation))
        compiled = CompiledFor(
            fits=1,
            device_memory_bytes=target.chip.memory_bytes or memory.available(),
            divided=program.divided is not None and target.devices > 1,
        )
        try:
            self.executable = self._lowered.compile()
        except jax.errors.JaxRuntimeError as error:
            if jax_targets.OUT_OF_MEMORY not in str(error):
                raise
            refused = " ".join(str(error).split())[:REFUSAL_CHARACTERS]
            return compiled.model_copy(update={"fits": 0, "refused": refused}), ExecutableSize(program_size=asked)
        size, made = self.executable_size() or ExecutableSize(), xla_programs.look_at(self.executable.as_text())
        plan = jax_targets.planned(self.executable.memory_analysis(), target.platform)
        size = size.model_copy(update=plan)
        if made is None:
            return compiled, size
        # A TPU's compiler has refused what does not fit; a GPU's leaves that to us.
        fits = target.platform == "tpu" or (size.peak_bytes or 0) <= (compiled.device_memory_bytes or math.inf)
        found = {"fits": int(fits), "fused": list(made.fused)}
        return compiled.model_copy(update=found), size.model_copy(update=made.numbers())

    def _listen(self, event: str, began: float, ended: float, **about: Any) -> None:
        if event in PARTS:
            self._heard.append((Span(began, ended, PARTS[event]), str(about.get("fun_name", "a function"))))

    def _count(self, event: str, **_about: Any) -> None:
        if event in CACHE_EVENTS:
            self._cache[CACHE_EVENTS[event]] += 1

    def compile_cache(self) -> CompileCache:
        """Every operation that is dispatched by itself is compiled too."""
        return CompileCache(hits=self._cache["hits"], misses=self._cache["misses"], before=self._cached)

    def compilations(self) -> Compilations:
        """Spans nest: a trace inside a trace, a constant compiled inside one."""
        return Compilations(
            seconds=seconds_by_part(span for span, _ in self._heard),
            causes=[f"{name} was compiled" for span, name in self._heard if span.part == "backend"],
        )

    @contextmanager
    def forbid_compiling(self) -> Iterator[None]:
        """JAX compiles what it has to; the events tell."""
        yield

    def operations(self, work: Work) -> Counted | None:
        """Of a compiled call in its optimised HLO; of one that is dispatched, in its trace, which nobody optimises."""
        if self.executable is not None:
            found = count_hlo(self.executable.as_text())
            return Counted(found, "the optimised HLO") if found else None
        if self._settings.mode != "op-by-op" or self._placed:
            return None
        found = count_jaxpr(jax.make_jaxpr(work.call)(work.fresh(), work.batches).jaxpr)
        return Counted(found, "the operations dispatched") if found else None

    def dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Of programs, compiled by hand or one for each operation that is dispatched by itself."""
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.enable_hlo_proto = False  # of every program that the process has compiled, in full
        with tempfile.TemporaryDirectory() as directory:
            with jax.profiler.trace(directory, profiler_options=options):
                call()
            return Counter(
                event.name.removeprefix(PROGRAM).removesuffix(")")
                for file in Path(directory).rglob("*.xplane.pb")
                for plane in jax.profiler.ProfileData.from_file(str(file)).planes
                for line in plane.lines
                for event in line.events
                if event.name.startswith(PROGRAM)
            )

    def constants(self) -> list[str]:
        """What the trace closed over."""
        held = [] if self._traced is None else self._traced.jaxpr.consts
        return [f"a constant {tuple(each.shape)} {each.dtype}" for each in held if getattr(each, "ndim", 0)]

    def gradients(self) -> GradMode:
        """JAX differentiates functions, and records nothing."""
        return "functional"

    def arithmetic(self, work: Work) -> Arithmetic:
        """Of its trace, and of the optimised HLO; what is dispatched by itself runs as it was written."""
        if self.executable is not None:
            written, run = self._traced.jaxpr.jaxpr, arithmetic.of_hlo(self.executable.as_text())
            if arithmetic.calls_back(written):
                return Arithmetic(types=_types(written))
            source = "the optimised HLO"
            return Arithmetic(written=arithmetic.of_jaxpr(written), run=run, source=source, types=_types(written))
        if self._settings.mode != "op-by-op" or self._placed:
            return Arithmetic()
        dispatched = _answer(lambda: jax.make_jaxpr(work.call)(work.fresh(), work.batches).jaxpr)
        if dispatched is None:
            return Arithmetic()
        counted = arithmetic.of_jaxpr(dispatched)
        source = "the operations dispatched"
        return Arithmetic(written=counted, run=counted, source=source, types=_types(dispatched))

    def executable_size(self) -> ExecutableSize | None:
        """By XLA's account, each as far as the backend gives one."""
        if self.executable is None:
            return None
        return ExecutableSize(
            kernels_per_call=_answer(lambda: count_kernels(self.executable.as_text())),
            program_size=_answer(lambda: count_stablehlo(self._lowered.compiler_ir().operation)),
            aliased_bytes=_answer(lambda: self.executable.memory_analysis().alias_size_in_bytes),
            temporary_bytes=_answer(lambda: self.executable.memory_analysis().temp_size_in_bytes),
            accessed_bytes=_answer(lambda: int(self.executable.cost_analysis()["bytes accessed"])),
        )

    def last(self, out: Any) -> Any:
        """A scan stacks the outs, a loop lists them, a single step has one."""
        if self._scanned:
            return jax.tree.map(lambda stacked: stacked[-1], out)
        return out[-1] if self._listed else out

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """bfloat16 has no NumPy type of its own, float64 holds it exactly."""
        return {
            name: np.asarray(array).astype(np.float64)
            if jnp.issubdtype(array.dtype, jnp.floating)
            else np.asarray(array)
            for name, array in arrays.items()
        }

    def device(self, value: Any) -> Device:
        """JAX calls the devices of several backends `gpu`; which they belong to, the backend can be asked."""
        devices = {
            device for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array) for device in leaf.devices()
        }
        measured = set(jax.devices(self._settings.backend))
        backends = {self._settings.backend if device in measured else device.platform for device in devices}
        # A kind that says no more than the platform does names no model.
        kinds = {"" if device.device_kind == device.platform else device.device_kind for device in devices}
        return self._settings.placed(backends, kinds, len(devices))

    def precision(self) -> Precision:
        """Flushing of denormals is probed: XLA has no setting to read."""
        least = np.finfo(np.float32).tiny
        halved = jax.jit(lambda number: number * 0.5)(jax.device_put(least))
        return Precision(
            policy=self._settings.precision,
            dtype=jnp.dtype(self._dtype).name,
            matmul={"jax_default_matmul_precision": jax.config.jax_default_matmul_precision},
            flush_denormal=float(halved) == 0.0,
        )

    def threads(self) -> int | None:
        """XLA's pool follows the affinity mask and does not say how large it is."""
        return None

    def peak_memory_bytes(self) -> int | None:
        """Of the first device; the CPU client keeps no such statistics."""
        statistics = jax.devices()[0].memory_stats()
        return int(statistics["peak_bytes_in_use"]) if statistics and "peak_bytes_in_use" in statistics else None

    def reserved_memory_bytes(self) -> int | None:
        """The pool, which by default is most of the device from the start."""
        statistics = jax.devices()[0].memory_stats() or {}
        return next((int(statistics[name]) for name in RESERVED if statistics.get(name)), None)

    def device_id(self) -> str | None:
        """JAX knows no UUID; its first device is the first visible one."""
        return None

    def emulated(self) -> str:
        """XLA makes several devices of one processor when it is told to (XLA_FLAGS, jax_num_cpu_devices)."""
        devices = jax.local_devices()
        several = devices[0].platform == "cpu" and len(devices) > 1
        return f"XLA makes {len(devices)} devices of one host's processor" if several else ""

    def host_over_device(self) -> list[float]:
        """JAX shows no events of its stream."""
        return []

    def drain(self) -> None:
        """A computation on each device that waits its turn behind all others, and what has side effects."""
        jax.effects_barrier()
        for device in jax.local_devices():
            (jax.device_put(np.float32(1), device) + 1).block_until_ready()

    def ready(self, value: Any) -> bool | None:
        """Arrays can be asked; a key's are not arrays of its own."""
        return all(leaf.is_ready() for leaf in jax.tree.leaves(value) if hasattr(leaf, "is_ready"))

    def overwrite(self, size: int) -> Callable[[], None]:
        """In the memory of one array."""
        held = [jnp.zeros(size, dtype=jnp.uint8)]
        change = jax.jit(lambda buffer: buffer + jnp.uint8(1), donate_argnums=0)
        held[0] = change(held[0]).block_until_ready()

        def call() -> None:
            held[0] = change(held[0]).block_until_ready()

        return call

    def product(self, size: int) -> Callable[[], None]:
        """One compiled program of one dot."""
        x = self._ordinary(size, size)
        multiply = jax.jit(jnp.matmul, compiler_options=OWN_PRODUCTS.get(self._settings.backend))
        return lambda: jax.block_until_ready(multiply(x, x))

    def triad(self, elements: int) -> Callable[[], None]:
        """In the memory of `a`: a fresh array each time would measure the kernel that hands out pages."""
        b, held = self._ordinary(elements), [self._ordinary(elements)]
        add = jax.jit(lambda a, b: b + jnp.asarray(0.5, a.dtype) * a, donate_argnums=0)

        def call() -> None:
            held[0] = add(held[0], b).block_until_ready()

        return call

    def _ordinary(self, *shape: int) -> jax.Array:
        """Neither zeros nor denormals: what hardware makes of them is no limit of other numbers."""
        return jnp.full(shape, 0.75, dtype=self._dtype)

    def out_of_memory(self, error: BaseException) -> bool:
        """XLA says so on every platform, unless a kernel of its CPU library could not get its own working memory."""
        said = ("RESOURCE_EXHAUSTED", "YNNPACK operation failed: error")
        return isinstance(error, jax.errors.JaxRuntimeError) and any(words in str(error) for words in said)


def _types(jaxpr: Any) -> list[str]:
    return sorted(arithmetic.types(jaxpr))


def _answer(ask: Callable[[], Told | None]) -> Told | None:
    """A backend may have no such account, or raise; no launch fails for what is said beside its times."""
    try:
        return ask()
    except Exception:  # noqa: BLE001
        return None

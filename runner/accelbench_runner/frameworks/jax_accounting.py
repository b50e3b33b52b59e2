"""Report JAX's compilations, operations and use of memory, from its events, XLA's programs and the allocator."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax

from accelbench.launch.facts import Arithmetic, CompileCache, ExecutableSize
from accelbench_runner.frameworks import jaxpr_values, xla_arithmetic
from accelbench_runner.frameworks.adapter import (
    Accounting,
    Compilations,
    CountedOperations,
    Span,
    count_cached_files,
    seconds_by_part,
    shares_by_type,
)
from accelbench_runner.frameworks.jaxpr_arithmetic import accuracy_limit, has_callback, numbers_by_type
from accelbench_runner.frameworks.work import Work
from accelbench_runner.frameworks.xla_operations import count_hlo, count_jaxpr, count_kernels, count_stablehlo
from accelbench_runner.frameworks.xla_programs import count_distinct_kernels

PARTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "backend",
}
"""Parts of a compilation, by the name of JAX's event."""
CACHE_EVENTS = {"/jax/compilation_cache/cache_hits": "hits", "/jax/compilation_cache/cache_misses": "misses"}
"""Counters of the compile cache, by the name of JAX's event."""
PROGRAM = "PjitFunction("
"""Prefix of the profiler's events for programs that JAX runs."""
RESERVED = ("peak_pool_bytes", "peak_bytes_reserved", "pool_bytes", "bytes_reserved")
"""Names of an allocator's statistic of reserved memory, peaks first; the first that is reported and not 0 is used."""

Result = TypeVar("Result")


@dataclass
class CompiledCall:
    """Hold the stages of compiling the prepared call; accounting and targets read them."""

    op_by_op: bool = False
    """True if operations are dispatched one by one, and the author compiles no part of the program."""
    traced: Any = None
    lowered: Any = None
    executable: Any = None


class JaxAccounting(Accounting):
    """Read JAX's monitoring events, XLA's programs and the allocator's statistics."""

    def __init__(self, compiled: CompiledCall) -> None:
        self._compiled = compiled
        self._spans: list[tuple[Span, str]] = []
        """Parts of compilations, each with the name of the function that was compiled."""
        self._cache = {"hits": 0, "misses": 0}
        self._cached_before = count_cached_files("JAX_COMPILATION_CACHE_DIR")
        """Number of files in the compile cache before this process compiles."""

    def register_callbacks(self) -> None:
        """Make JAX report its compilations to this object, from the first one on."""
        jax.monitoring.register_event_time_span_listener(self._record_span)
        jax.monitoring.register_event_listener(self._count_event)

    def _record_span(self, event: str, began: float, ended: float, **details: Any) -> None:
        """Store the span in which JAX traced, lowered or compiled a function, and its name; JAX calls this."""
        if event in PARTS:
            self._spans.append((Span(began, ended, PARTS[event]), str(details.get("fun_name", "a function"))))

    def _count_event(self, event: str, **_details: Any) -> None:
        """Count a hit or a miss of JAX's compile cache; JAX calls this."""
        if event in CACHE_EVENTS:
            self._cache[CACHE_EVENTS[event]] += 1

    def compilations(self) -> Compilations:
        """Return the seconds of tracing, lowering and XLA's compilation so far, and a cause for each compilation."""
        return Compilations(
            seconds=seconds_by_part(span for span, _ in self._spans),
            causes=[f"{name} was compiled" for span, name in self._spans if span.part == "backend"],
        )

    def compile_cache(self) -> CompileCache:
        """Return the hits and misses of JAX's compile cache, and how many files it had before."""
        return CompileCache(hits=self._cache["hits"], misses=self._cache["misses"], before=self._cached_before)

    def constants(self) -> list[str]:
        """Describe the arrays, except scalars, that the traced step contains as constants."""
        consts = [] if self._compiled.traced is None else self._compiled.traced.jaxpr.consts
        return [f"a constant {tuple(array.shape)} {array.dtype}" for array in consts if getattr(array, "size", 0) > 1]

    def executable_size(self) -> ExecutableSize | None:
        """Return the sizes that XLA reports for the compiled program; None if no program was compiled ahead."""
        executable, lowered = self._compiled.executable, self._compiled.lowered
        if executable is None:
            return None
        return ExecutableSize(
            kernels=try_call(lambda: count_distinct_kernels(executable.as_text())),
            kernels_per_call=try_call(lambda: count_kernels(executable.as_text())),
            program_size=try_call(lambda: count_stablehlo(lowered.compiler_ir().operation)),
            aliased_bytes=try_call(lambda: executable.memory_analysis().alias_size_in_bytes),
            temporary_bytes=try_call(lambda: executable.memory_analysis().temp_size_in_bytes),
            accessed_bytes=try_call(lambda: accessed_bytes(executable.cost_analysis())),
        )

    def operations(self, work: Work) -> CountedOperations | None:
        """Count the matrix products and convolutions of a call; None if their number depends on data or is unknown.

        They are counted in the compiled program if there is one, or else as JAX would dispatch them.
        """
        if self._compiled.executable is not None:
            operations = count_hlo(self._compiled.executable.as_text())
            return CountedOperations(operations, "the optimised HLO") if operations else None
        if not self._compiled.op_by_op:
            return None  # the author compiles parts of the program
        operations = count_jaxpr(_trace(work))
        return CountedOperations(operations, "the operations dispatched") if operations else None

    def arithmetic(self, work: Work) -> Arithmetic:
        """Count the floating-point operations of a call, as the program is written and as XLA has optimised it.

        Operations that cannot be counted are None.
        """
        if self._compiled.executable is not None:
            jaxpr = self._compiled.traced.jaxpr.jaxpr
            types = shares_by_type(numbers_by_type(jaxpr))
            if has_callback(jaxpr):
                return Arithmetic(types=types)  # the callback's operations are unknown
            run = try_call(lambda: xla_arithmetic.count_hlo(self._compiled.executable.as_text()))
            written_fields = asdict(_count_written(jaxpr))  # `Arithmetic` has fields of the same names
            return Arithmetic(
                **written_fields,
                run=run,
                source="the optimised HLO",
                types=types,
                accuracy_limit=try_call(lambda: accuracy_limit(jaxpr)),
            )
        if not self._compiled.op_by_op:
            return Arithmetic()  # the author compiles parts of the program
        jaxpr = try_call(lambda: _trace(work))
        if jaxpr is None:
            return Arithmetic()
        written = _count_written(jaxpr).written
        types = shares_by_type(numbers_by_type(jaxpr))
        # Operations that JAX dispatches one by one are not optimised, so as many run as are written.
        return Arithmetic(
            written=written,
            run=written,
            source="the operations dispatched",
            types=types,
            accuracy_limit=try_call(lambda: accuracy_limit(jaxpr)),
        )

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Make the call, and count by name the jitted functions that JAX runs."""
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # record no calls of Python functions
        options.enable_hlo_proto = False  # otherwise it writes out every program that the process has compiled
        with tempfile.TemporaryDirectory() as directory:
            with jax.profiler.trace(directory, profiler_options=options):
                call()
            # An event is named `PjitFunction(name)`.
            events = [name for name in _profiled_events(Path(directory)) if name.startswith(PROGRAM)]
            return Counter(name.removeprefix(PROGRAM).removesuffix(")") for name in events)

    def peak_memory_bytes(self) -> int | None:
        """Return the most bytes that arrays occupied at once on the first device; None if JAX does not count them."""
        statistics = jax.devices()[0].memory_stats() or {}  # None on a CPU
        return int(statistics["peak_bytes_in_use"]) if "peak_bytes_in_use" in statistics else None

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak size of JAX's memory pool on the first device, or its current size if no peak is known.

        By default the pool has most of the device's memory from the start. The result is None if no statistic is known,
        as on a CPU.
        """
        statistics = jax.devices()[0].memory_stats() or {}  # None on a CPU
        for name in RESERVED:
            if statistics.get(name):
                return int(statistics[name])
        return None

    def describe_emulation(self) -> str:
        """Describe how XLA emulates several devices on a CPU; return an empty string if it does not."""
        devices = jax.local_devices()
        is_emulated = devices[0].platform == "cpu" and len(devices) > 1
        return f"XLA makes {len(devices)} devices of one host's processor" if is_emulated else ""


def _profiled_events(directory: Path) -> Iterator[str]:
    """Yield the names of all events in the files that JAX's profiler has written to a directory."""
    for file in directory.rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            for line in plane.lines:
                yield from (event.name for event in line.events)


def _count_written(jaxpr: Any) -> jaxpr_values.WrittenOperations:
    """Count the operations of a jaxpr; return empty counts if that fails, as it may with a new version of JAX."""
    return try_call(lambda: jaxpr_values.count_jaxpr(jaxpr)) or jaxpr_values.WrittenOperations()


def _trace(work: Work) -> Any:
    """Trace a call without running it, and return its jaxpr."""
    return jax.make_jaxpr(work.call)(work.fresh(), work.batches).jaxpr


def accessed_bytes(costs: Mapping[str, float]) -> int | None:
    """Return the bytes that a program reads and writes, from XLA's cost analysis; None if XLA cannot know them.

    For an operation of unknown cost, such as a call to a library, XLA adds -1 to every sum. No known operation has a
    negative cost.
    """
    return None if any(cost < 0 for cost in costs.values()) else int(costs["bytes accessed"])


def try_call(call: Callable[[], Result | None]) -> Result | None:
    """Return the result of a call, or None if the call raises an exception."""
    try:
        return call()
    except Exception:  # noqa: BLE001 - a backend without a statistic must not fail a launch
        return None

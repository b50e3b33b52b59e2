"""A framework that computes with NumPy, and whose times, devices and settings are what the truth says."""

# ruff: noqa: ARG002 - the interface's signatures

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.launch.facts import CompileCache, Device, GradMode, Precision
from accelbench.workload import Array, Operations, Program
from accelbench_runner.frameworks.adapter import (
    Accounting,
    Adapter,
    AdapterSettings,
    Compilations,
    CountedOperations,
    RecompiledError,
    step_loop,
)
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch.synchronisation import PRODUCT
from golden.machine import SimulatedMachine
from golden.truth import Truth

PARTS = {"trace": 0.1, "lower": 0.2, "backend": 0.7}
"""Shares of what compiling takes."""
RECOMPILES_AT_CALL = 50
"""Of the steady phase."""
COMPUTED_CALLS = 10
"""What is compared is computed, and everything once other inputs have been prepared; what is only timed need not be."""
FIRST_DRAIN_SECONDS = 0.03
"""As JAX's takes, which compiles what it waits for."""
UNITS = 4
"""Products in a call."""
OLD_CACHE = "another launch's cache"


class EndedError(KeyboardInterrupt):
    """An exception that a launch does not catch: its process has crashed, or hangs."""


class SimulatedAccounting(Accounting):
    """Report what the truth says."""

    def __init__(self, settings: AdapterSettings, truth: Truth) -> None:
        self._settings, self._truth = settings, truth
        self.compiled = Compilations()
        self.counts = {"hits": 0, "misses": 0}
        self.calls = 0
        self._preparations = 0
        self._dispatched: list[int] = []

    def prepared(self) -> None:
        self._preparations += 1
        self._dispatched_before = len(self._dispatched)

    def compilations(self) -> Compilations:
        return Compilations(dict(self.compiled.seconds), list(self.compiled.causes))

    def compile_cache(self) -> CompileCache | None:
        return CompileCache(**self.counts) if self._truth.compile_seconds else None

    def operations(self, work: Work) -> CountedOperations | None:
        return CountedOperations(Operations(products=self._truth.products), "the simulated program")

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        before = self.calls
        call()
        self._dispatched.append(self.calls - before)
        if self._truth.remembers and self._preparations > 1 and any(self._dispatched[self._dispatched_before : -1]):
            return {}
        return {"product": UNITS * self._dispatched[-1]} if self._dispatched[-1] else {}

    def threads(self) -> int | None:
        return self._settings.threads if self._truth.threads is None else self._truth.threads

    def describe_emulation(self) -> str:
        return self._truth.emulated

    def cache_bytes(self) -> int | None:
        return 1024**2


class SimulatedAdapter(Adapter):
    """One launch's framework."""

    float_bytes = 4

    def __init__(self, settings: AdapterSettings, truth: Truth, machine: SimulatedMachine, cache: set[str]) -> None:
        self._settings, self._truth, self._machine, self._cache = settings, truth, machine, cache
        self.accounting: SimulatedAccounting = SimulatedAccounting(settings, truth)
        self._steady_calls: int | None = None
        self._drained = False
        self._prepared = 0
        self._captured: Any = None
        machine.work(truth.import_seconds)

    def versions(self) -> dict[str, str]:
        return {"simulated": "1"}

    def initialise(self) -> None:
        self._machine.work(self._truth.device_init_seconds)

    def in_float64(self) -> "SimulatedAdapter":
        settings = replace(self._settings, precision="float64")
        return SimulatedAdapter(settings, self._truth, self._machine, self._cache)

    def put(self, arrays: Any) -> Any:
        if isinstance(arrays, Mapping):
            return {name: self.put(array) for name, array in arrays.items()}
        if isinstance(arrays, tuple | list):
            return tuple(self.put(array) for array in arrays)
        return np.asarray(arrays, np.float64 if self._settings.precision == "float64" else np.float32)

    def prepare(self, program: Program) -> Work:
        self._prepared += 1
        self.accounting.prepared()
        call, batches = step_loop(program)
        self._captured = self._captured or batches
        state = program.state
        if self._truth.wrong_formula:
            program.batches[0]["w"][0, 0] += 3e-6  # less than parity tells in float32
        if self._truth.wrong_weight and self._settings.precision != "float64":
            program.batches[0]["w"][0, 0] += 0.05

        def fresh() -> Any:
            self._machine.work(0.003)  # must never be seen in a block
            return state.copy()

        def simulated(state: Any, batches: Any) -> tuple[Any, Any]:
            self._before_call()
            self._machine.call()
            if self.accounting.calls > COMPUTED_CALLS and self._prepared == 1:
                return state, None
            state, out = call(state, self._captured if self._truth.captures else batches)
            if self._truth.not_a_number:
                state = np.where(np.eye(len(state), dtype=bool), np.float32("nan"), state)
            return state, out

        def synchronise(_value: Any) -> None:
            self._machine.synchronise()

        return Work(fresh, simulated, batches, synchronise, program.inner * program.units)

    def _before_call(self) -> None:
        if self.accounting.calls == 0:
            self._machine.work(self._truth.slow_first_call_seconds)
        self.accounting.calls += 1
        if self._steady_calls is None:
            return
        self._steady_calls += 1
        if self._steady_calls != RECOMPILES_AT_CALL:
            return
        match self._truth.recompiles, self._truth.ends, self._truth.raises:
            case "counted", _, _:
                self._compile(self._truth.compile_seconds, "a new shape")
            case "forbidden", _, _:
                raise RecompiledError("a new shape")
            case _, ended, _ if ended:
                raise EndedError(ended)
            case _, _, "MemoryError":
                raise MemoryError
            case _, _, message if message:
                raise ValueError(message)

    def compile_ahead(self, work: Work) -> None:
        if not self._truth.compile_seconds:
            return
        hit = bool(self._cache)
        self.accounting.counts["hits" if hit else "misses"] += 1
        self._cache.add("the program")
        self._compile(self._truth.cached_compile_seconds if hit else self._truth.compile_seconds, "the first call")

    def _compile(self, seconds: float, cause: str) -> None:
        self._machine.work(seconds)
        compiled = self.accounting.compiled
        compiled.causes.append(cause)
        for part, share in PARTS.items():
            compiled.seconds[part] = compiled.seconds.get(part, 0.0) + share * seconds

    @contextmanager
    def forbid_compiling(self) -> Iterator[None]:
        self._steady_calls = 0
        yield

    def gradients(self) -> GradMode:
        return self._truth.gradients

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        return {name: np.asarray(array, np.float64) for name, array in arrays.items()}

    def device(self, value: Any) -> Device:
        return Device(platform=self._truth.platform, name=self._truth.device)

    def precision(self) -> Precision:
        return Precision(
            policy=self._settings.precision,
            dtype=self._truth.dtype,
            matmul={"products": self._truth.matmul},
            flush_denormal=self._truth.flush_denormal,
        )

    def drain(self) -> None:
        if not self._drained:
            self._drained = True
            self._machine.work(FIRST_DRAIN_SECONDS)
        self._machine.synchronise()

    def ready(self, value: Any) -> bool | None:
        return not self._truth.never_ready

    def product(self, size: int) -> Callable[[], None]:
        self._machine.asked("late work" if size == PRODUCT else "product")
        return self._finished(2 * size**3 / self._truth.flops_per_second)

    def triad(self, elements: int) -> Callable[[], None]:
        self._machine.asked("triad")
        return self._finished(3 * 4 * elements / self._truth.bytes_per_second)

    def _finished(self, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self._machine.work(seconds)
            self._machine.synchronise()

        return call

    def out_of_memory(self, error: BaseException) -> bool:
        return False


class DirectoryCache(set[str]):
    """A compile cache that lives where the launch keeps its caches, and so outlives it there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)
        super().__init__(entry.name for entry in directory.iterdir())

    def add(self, name: str) -> None:
        (self._directory / name).touch()
        super().add(name)

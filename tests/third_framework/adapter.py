# ruff: noqa: ARG002 - arguments are the interface's
"""Execute programs on lists: everything that a framework without accounting and targets has to implement."""

import copy
import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelbench.launch.facts import Device, GradMode, Precision
from accelbench.workload import Array, Program
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings, UnsupportedError, last_out, step_loop
from accelbench_runner.frameworks.work import Work


class Lists(Adapter):
    """Arrays are lists of floats."""

    float_bytes = 8

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings

    def versions(self) -> dict[str, str]:
        return {"array": platform.python_version()}

    def initialise(self) -> None:
        if self._settings.precision != "float64":
            raise UnsupportedError("Python has float64 alone")

    def put(self, arrays: Any) -> Any:
        if isinstance(arrays, Mapping):
            return {name: self.put(array) for name, array in arrays.items()}
        return [self.put(array) for array in arrays] if isinstance(arrays, list | tuple) else arrays.tolist()

    def prepare(self, program: Program) -> Work:
        call, batches = step_loop(program)
        return Work(
            fresh=lambda: copy.deepcopy(program.state),
            call=call,
            batches=batches,
            synchronise=lambda _: None,
            units=program.inner * program.units,
            last_out=last_out(program),
        )

    def gradients(self) -> GradMode:
        return "functional"

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        return {name: np.array(array) for name, array in arrays.items()}

    def device(self, value: Any) -> Device:
        return self._settings.describe_device({"cpu"}, {""}, 1)

    def precision(self) -> Precision:
        return Precision(policy=self._settings.precision, dtype="float64", flush_denormal=False)

    def product(self, size: int) -> Callable[[], None]:
        x, into = np.full((size, size), 0.75), np.empty((size, size))

        def run() -> None:
            np.matmul(x, x, out=into)

        return run

    def triad(self, elements: int) -> Callable[[], None]:
        a, b = np.full(elements, 0.75), np.full(elements, 0.75)

        def run() -> None:
            np.add(b, 0.5 * a, out=a)

        return run

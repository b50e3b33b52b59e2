"""Observe workloads without launches: a process for each framework, many variants in it.

Counts of compilations are Dynamo's. What Inductor makes of a graph takes a minute, so that torch.compile is given the
backend `eager` here; `test_graphs` shows that Inductor changes none of the counts.
"""

import json
import sys
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import Any

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench.catalogue.observations import Scalar
from workloads.computing import find


@dataclass(frozen=True)
class Asked:
    """Name one variant of one workload. `workload` is a name of the catalogue, or `MODULE:CLASS`."""

    workload: str
    use: str
    parameters: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def framework(self) -> str:
        return "jax" if self.use.startswith("jax") else "pytorch"

    def __str__(self) -> str:
        more = ",".join(f"{name}={value}" for name, value in (*self.parameters, *self.options))
        return f"{self.workload.partition(':')[2] or self.workload}({more}) {self.use}"


def observe(asked: Asked) -> dict[str, Scalar]:
    """Return what a launch would report of it."""
    from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings
    from accelbench_runner.launch import observe

    workload = find(asked.workload)
    kind = workload.variants()[asked.use]
    parameters = catalogue.parse_parameters(workload, dict(asked.parameters))
    module, name = {"jax": ("jax", "Jax"), "pytorch": ("pytorch", "PyTorch")}[kind.framework]
    settings = AdapterSettings(
        mode=kind.adapter_mode,
        options=catalogue.parse_options(kind, dict(asked.options)),
        platform="cpu",
        precision="float32",
        threads=1,
        differentiates=workload.measure(parameters).differentiates,
    )
    adapter: Adapter = getattr(import_module(f"accelbench_runner.frameworks.{module}"), name)(settings)
    adapter.import_compiler()
    adapter.initialise()
    program = getattr(workload, kind.method)(parameters, inputs.generate(workload, parameters, seed=1), adapter)
    calls, _ = observe.make_calls(adapter, program, adapter.prepare(program))
    return observe.observations(adapter, program, calls, workload.observes)


def main() -> None:
    """Read variants from standard input, and write their observations to standard output."""
    questions = [
        Asked(**{key: value if isinstance(value, str) else tuple(map(tuple, value)) for key, value in each.items()})
        for each in json.load(sys.stdin)
    ]
    found = []
    for asked in questions:
        if asked.framework == "pytorch":
            _reset_compiler()
        found.append(observe(asked))
    json.dump(found, sys.stdout)


def _reset_compiler() -> None:
    """Reset Dynamo, as a new process would."""
    import torch

    if not isinstance(torch.compile, partial):
        torch.compile = partial(torch.compile, backend="eager")
    torch.compiler.reset()


def to_json(questions: list[Asked]) -> str:
    return json.dumps([asdict(each) for each in questions])


if __name__ == "__main__":
    main()

"""List the checks of every variant on a GPU: each in float32, some in formats that a GPU has other units for."""

import json
import sys
from dataclasses import dataclass
from typing import Any

from accelbench import catalogue
from workloads.small import SMALL

START = [sys.executable, "-c", "from accelbench.cli.main import main; main()"]
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""Checks share the GPU, and JAX would take most of its memory for itself."""
FIRST = {"jax/jit", "pytorch/eager", "pytorch/compile"}
NARROW = ("matmul-chain", "layer-norm", "cifar-cnn", "mixed-precision", "transformer-lm")
"""Workloads whose products a GPU has other units for in other formats."""
NOT_TIMED = {
    *("jax/state-not-returned", "pytorch/from-jax-as-published"),
    *("jax/diffrax-adaptive", "pytorch/torchdiffeq-adaptive"),
}
ON_THE_CPU = "numpy/"
NO_ROOM = {("transformer-lm", "float16")}


@dataclass(frozen=True)
class Asked:
    """One variant in one format."""

    workload: str
    use: str
    precision: str

    def __str__(self) -> str:
        return f"{self.workload} {self.use} {self.precision}"

    @property
    def command(self) -> list[str]:
        """Return the command that checks it on a GPU, and prints what it found as JSON."""
        parameters = SMALL.get(self.workload, [()])[0]
        chosen = {f"workload.parameters.{name}": value for name, value in parameters}
        chosen |= {"accelerator.profile": "nvidia", "measurement.precision": self.precision}
        options = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
        return [*START, "check", self.workload, "--variant", self.use, *options, "--output", "json"]


def every() -> list[Asked]:
    """Return all checks: float32 before other formats, and plain variants before others."""
    found = [
        Asked(workload, use, precision)
        for workload in catalogue.names()
        for use in catalogue.find(workload).variants()
        for precision in ("float32", *(("tf32", "bfloat16", "float16") if workload in NARROW and use in FIRST else ()))
        if use not in NOT_TIMED and not use.startswith(ON_THE_CPU)
        if (workload, precision) not in NO_ROOM
    ]
    return sorted(found, key=lambda each: (each.precision != "float32", each.use not in FIRST))


def condensed(found: str) -> dict[str, Any]:
    """Return the outcome of each check of a variant and the numbers of its program, from what the command printed."""
    variant = json.loads(found)[0]["variants"][0]
    return {
        "checks": {check["name"]: check["outcome"] for check in variant["checks"]},
        "compiled": variant["compiled"] or {},
    }

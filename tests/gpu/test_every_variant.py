"""Every variant computes on a GPU what the float64 reference says: `make test-gpu`, on a machine that has one."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accelbench import catalogue, platforms
from workloads.small import SMALL

START = [sys.executable, "-c", "from accelbench.cli.main import main; main()"]
HAS_A_GPU = any(Path(file).exists() for file in platforms.find("cuda").files)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_A_GPU, reason="needs an NVIDIA GPU: make test-gpu")]
KEPT = os.environ.get("ACCELBENCH_GPU_CHECKS")
"""A directory for what was found; `python -m gpu` makes one file of it."""
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
    def options(self) -> list[str]:
        parameters = SMALL.get(self.workload, [()])[0]
        chosen = {f"workload.parameters.{name}": value for name, value in parameters}
        chosen |= {"accelerator.profile": "nvidia", "measurement.precision": self.precision}
        return [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]


def _every() -> list[Asked]:
    found = [
        Asked(workload, use, precision)
        for workload in catalogue.names()
        for use in catalogue.find(workload).variants()
        for precision in ("float32", *(("tf32", "bfloat16", "float16") if workload in NARROW and use in FIRST else ()))
        if use not in NOT_TIMED and not use.startswith(ON_THE_CPU)
        if (workload, precision) not in NO_ROOM
    ]
    return sorted(found, key=lambda each: (each.precision != "float32", each.use not in FIRST))


def checked(asked: Asked) -> dict[str, Any]:
    """What `accelbench check` says of it."""
    done = subprocess.run(
        [*START, "check", asked.workload, "--variant", asked.use, *asked.options, "--output", "json"],
        # Others of these tests use the GPU too, and JAX would take most of its memory for itself.
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    if KEPT:
        file = Path(KEPT, str(asked).translate({ord(each): "-" for each in " /"}) + ".json")
        kept = {"asked": str(asked), "said": done.stderr[-2000:], "status": done.returncode, "found": done.stdout}
        file.write_text(json.dumps(kept))
    assert done.stdout, done.stderr
    (case,) = json.loads(done.stdout)
    (variant,) = case["variants"]
    found: dict[str, Any] = variant
    return found


@pytest.mark.parametrize("asked", _every(), ids=str)
def test_a_variant_passes_every_check_on_a_gpu(asked: Asked) -> None:
    found = checked(asked)
    assert found["failure"] is None
    assert {check["name"]: check["reading"] for check in found["checks"] if check["outcome"] == "failed"} == {}
    assert {check["name"]: check["reading"] for check in found["checks"] if check["outcome"] == "passed"}

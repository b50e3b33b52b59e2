"""Compile programs for this processor, and run them on it: the same facts twice."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from accelbench import catalogue
from accelbench.api.case import CaseAccelerator
from accelbench.catalogue import inputs
from launch.launching import LATER, LaunchOutput, case, launch_anew

FACTS = ("kernelsPerCall", "aliasedBytes", "temporaryBytes", "programSize")
"""Facts that must be equal if a run reports them."""
PEAK = 0.2
"""Largest relative difference between the peak of a run and the planned one."""


GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": str(2**16), "MALLOC_TRIM_THRESHOLD_": str(2**16)}
"""Makes the allocator return freed memory: inputs are drawn in float64, and would stay in the launch's peak."""


@dataclass(frozen=True)
class Both:
    """Hold the facts of compiling, and those of a run."""

    planned: dict[str, Any]
    ran: dict[str, Any]
    kept: int
    """Bytes that a run keeps beside its call: the state that every block begins with, and batches of other calls.

    Where a block is one call, that state is what the call is given, unless it works on a copy.
    """

    process: int = 0
    """Bytes that a run of the same program holds on next to no numbers: code, threads, what the compiler left."""

    @property
    def planned_peak(self) -> int:
        """Return the peak of the process: the call's, and what is kept besides."""
        return int(self.planned["peakBytes"]) + self.kept + self.process

    @property
    def peak(self) -> int:
        """Return the peak of the process while blocks were timed."""
        return int(self.ran["peakMemoryBytes"])


def compiled(directory: Path, workload: str, use: str, parameters: dict[str, Any], **limit: int) -> LaunchOutput:
    """Run a launch that compiles for this processor, in a process of its own."""
    directory.mkdir(parents=True)
    asked = case(workload, use, parameters).model_copy(update={"accelerator": CaseAccelerator(target="cpu")})
    return launch_anew(directory, asked, number=LATER, purpose="compile", **limit)


def planned_and_run(
    directory: Path, workload: str, use: str, parameters: dict[str, Any], small: dict[str, Any] | None = None
) -> Both:
    """Compile and run; with `small`, also measure what a run with these parameters holds by itself."""
    planned = compiled(directory / "compiled", workload, use, parameters).facts["executable"]
    launched = run(directory / "run", workload, use, parameters)
    eager = use.startswith("pytorch/")
    first, *others = _batches(workload, parameters, whole=8 if eager else 4)
    copied = eager or planned["aliasedBytes"] > 0
    kept = planned["argumentBytes"] - first if copied or launched.blocks[0].units > 1 else 0
    process = 0 if small is None else run(directory / "small", workload, use, small).facts["peakMemoryBytes"]
    return Both(planned, launched.facts, kept=kept + sum(others), process=process)


def run(directory: Path, workload: str, use: str, parameters: dict[str, Any]) -> LaunchOutput:
    """Run a launch that measures, in a process of its own."""
    directory.mkdir()
    with mock.patch.dict(os.environ, GIVES_BACK):
        return launch_anew(directory, case(workload, use, parameters))


def _batches(workload: str, parameters: dict[str, Any], whole: int) -> list[int]:
    """Return the bytes of each batch, with floats of 4 bytes and integers of `whole` bytes."""
    found = catalogue.find(workload)
    drawn = inputs.generate(found, catalogue.parse_parameters(found, parameters), 0).batches
    return [sum(each.size * (whole if each.dtype.kind in "iu" else 4) for each in batch.values()) for batch in drawn]

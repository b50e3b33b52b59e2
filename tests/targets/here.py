"""Programs compiled for this processor, and then run on it: the same facts twice."""

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
"""Equal, where a run tells them."""
PEAK = 0.2
"""A run's peak may be as far from what was planned."""


GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": str(2**16), "MALLOC_TRIM_THRESHOLD_": str(2**16)}
"""Has the allocator give back what is freed. A launch draws its inputs in float64, and they would stay in its peak."""


@dataclass(frozen=True)
class Both:
    """What was said without running, and what a run reported."""

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
        """Of the process: the call's, and what is kept beside it."""
        return int(self.planned["peakBytes"]) + self.kept + self.process

    @property
    def peak(self) -> int:
        """Of the process, measured while blocks were timed."""
        return int(self.ran["peakMemoryBytes"])


def compiled(directory: Path, workload: str, use: str, parameters: dict[str, Any], **limit: int) -> LaunchOutput:
    """Of one launch that compiles for this processor, in a process of its own."""
    directory.mkdir(parents=True)
    asked = case(workload, use, parameters).model_copy(update={"accelerator": CaseAccelerator(target="cpu")})
    return launch_anew(directory, asked, number=LATER, purpose="compile", **limit)


def planned_and_run(
    directory: Path, workload: str, use: str, parameters: dict[str, Any], small: dict[str, Any] | None = None
) -> Both:
    """Both, one after the other; with `small` also what a run holds of itself, where these are the parameters."""
    planned = compiled(directory / "compiled", workload, use, parameters).facts["executable"]
    launched = run(directory / "run", workload, use, parameters)
    eager = use.startswith("pytorch/")
    first, *others = _batches(workload, parameters, whole=8 if eager else 4)
    copied = eager or planned["aliasedBytes"] > 0
    kept = planned["argumentBytes"] - first if copied or launched.blocks[0].units > 1 else 0
    process = 0 if small is None else run(directory / "small", workload, use, small).facts["peakMemoryBytes"]
    return Both(planned, launched.facts, kept=kept + sum(others), process=process)


def run(directory: Path, workload: str, use: str, parameters: dict[str, Any]) -> LaunchOutput:
    """Of one launch that measures, in a process of its own."""
    directory.mkdir()
    with mock.patch.dict(os.environ, GIVES_BACK):
        return launch_anew(directory, case(workload, use, parameters))


def _batches(workload: str, parameters: dict[str, Any], whole: int) -> list[int]:
    """Bytes of each batch, in float32 and in integers of `whole` bytes."""
    found = catalogue.find(workload)
    drawn = inputs.generate(found, catalogue.parse_parameters(found, parameters), 0).batches
    return [sum(each.size * (whole if each.dtype.kind in "iu" else 4) for each in batch.values()) for batch in drawn]

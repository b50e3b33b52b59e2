"""Run the supervisor as a real process with scripted launches, and read what it leaves behind."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from pydantic import ValidationError

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench.api.result import Result, VariantResult
from accelbench.delivery.log import Event, Headline, LogDocuments, parse_event, read_log
from accelbench.plan.round_order import round_order
from cluster.wait import HANG_SECONDS

HERE = Path(__file__).parent
SCRIPTED_LAUNCH = [sys.executable, str(HERE / "scripted_launch.py")]
SCRIPTED_JUDGE = [sys.executable, str(HERE / "scripted_judge.py")]
SUPERVISE = [sys.executable, str(HERE / "supervise.py")]


@dataclass(frozen=True)
class Ended:
    """Hold what a supervisor left behind."""

    status: int
    output: bytes
    errors: bytes
    headline: Headline
    work: Path

    @property
    def lines(self) -> list[str]:
        return self.output.decode().split("\n")

    @property
    def log(self) -> LogDocuments:
        return read_log(self.lines)

    @property
    def events(self) -> list[Event]:
        return [event for line in self.lines if (event := parse_event(line))]

    @property
    def result(self) -> Result:
        result = self.log.latest("result", self.headline.digest)
        assert result is not None, self.output.decode()[-3000:] + self.errors.decode()[-3000:]
        return result

    @property
    def launches(self) -> list[dict[str, Any]]:
        return [json.loads(found.text) for found in self.log.documents if found.kind == "launch"]

    def variant(self, name: str) -> VariantResult:
        return next(variant for variant in self.result.variants if variant.name == name)


@dataclass
class Supervised:
    """Control a running supervisor."""

    process: subprocess.Popen[bytes]
    directory: Path

    def headline_written(self) -> bool:
        """Return True once the file, empty at first as a mount is, was written."""
        path = self.directory / "termination-log"
        return path.exists() and path.stat().st_size > 0

    def headline(self) -> Headline:
        """Read the headline; while the supervisor runs, read it again if it is being written."""
        while True:
            ended = self.process.poll() is not None
            try:
                return Headline.model_validate_json((self.directory / "termination-log").read_text())
            except ValidationError:
                if ended:
                    raise

    def end(self, timeout: float = HANG_SECONDS) -> Ended:
        output, errors = self.process.communicate(timeout=timeout)
        return Ended(self.process.returncode, output, errors, self.headline(), self.directory / "work")


def case_of(*variants: str, rounds: int = 2, limit: int = 60, **measurement: Any) -> Case:
    return Case(
        name="all",
        origin=CaseOrigin(run="scripted", series="scripted"),
        workload="matmul-chain",
        variants=tuple(CaseVariant(name=variant, use="jax/jit") for variant in variants),
        baseline=variants[0],
        measurement=CaseMeasurement(
            rounds_min=measurement.pop("rounds_min", 2),
            rounds_max=rounds,
            time_limit_seconds=limit,
            seed=measurement.pop("seed", 0),
            **measurement,
        ),
    )


def seed_of(variants: Sequence[str], order: Sequence[str], number: int = 1) -> int:
    """Return the first seed with which that round launches the variants in this order."""
    orders = ((seed, round_order(variants, seed=seed, case="all", round_number=number)) for seed in count())
    return next(seed for seed, found in orders if list(found) == list(order))


def processes_below(work: Path) -> list[psutil.Process]:
    """Launches, and what they started, of the supervisor whose work directory this is: found by their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(value.startswith(f"{work}/") for value in process.environ().values()):
                found.append(process)
        except psutil.Error:
            continue
    return found

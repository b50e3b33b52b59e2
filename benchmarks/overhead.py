"""Measure where each second of a case goes, and accelbench's share, next to pyperf and asv on the same step.

    python benchmarks/overhead.py [ROUNDS] > docs/results/overhead.md

Each tool measures one step, a chain of matrix products in eager PyTorch, with its default settings. The result is the
share of wall time inside measurements: neither warm-up, nor calibration, nor process start. Then two frameworks are
compared by the default rule, to a verdict.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyperf
from real import MeasuredCase, environment, make_case, run
from step import USE

from accelbench.delivery.log import Event, LaunchFinished, LaunchStarted, PhaseReached
from accelbench.launch.record import LaunchRecord
from accelbench_runner.launch.limits import ROUNDS as LIMITS_ROUNDS

HERE = Path(__file__).parent
SIZE, LENGTH = 64, 100
MEBI = 1024**2
TIME_LIMIT_SECONDS = 120
PYPERF = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import pyperf

works = []

def timed(loops):
    from step import adapter, chain
    if not works:
        works.append(chain(adapter(), {SIZE}, {LENGTH}))
    call, batches, state = works[0].call, works[0].batches, works[0].fresh()
    began = pyperf.perf_counter()
    for _ in range(loops):
        state, _out = call(state, batches)
    return pyperf.perf_counter() - began

pyperf.Runner().bench_time_func("step", timed)
"""
ASV = f"""
import sys
sys.path.insert(0, {str(HERE)!r})

class Chain:
    def setup(self):
        from step import adapter, chain
        self.work = chain(adapter(), {SIZE}, {LENGTH})
        self.state = self.work.fresh()

    def time_step(self):
        self.work.call(self.state, self.work.batches)
"""
HEAD = "step"
ASV_CONFIGURATION = {
    "version": 1,
    "project": "step",
    "repo": ".",
    "branches": [HEAD],
    "environment_type": "existing",
    "benchmark_dir": "benchmarks",
}


@dataclass
class Supervision:
    """Measure the supervisor's processor time while its launches run."""

    processor_seconds: float = 0.0
    wall_seconds: float = 0.0
    resident_bytes: list[int] = field(default_factory=list)
    _before: tuple[float, float] | None = None

    def __call__(self, event: Event, process: int) -> None:
        """Measure from the warm-up of a launch to its end; `process` is the supervisor's process ID."""
        supervisor = psutil.Process(process)
        if isinstance(event, LaunchStarted):
            self._before = None
        if isinstance(event, PhaseReached) and event.phase in {"warm-up", "steady"} and self._before is None:
            self._before = _times_of(supervisor)
        if isinstance(event, LaunchFinished) and self._before is not None:
            processor, wall = _times_of(supervisor)
            self.processor_seconds += processor - self._before[0]
            self.wall_seconds += wall - self._before[1]
            self.resident_bytes.append(supervisor.memory_info().rss)


def _times_of(process: psutil.Process) -> tuple[float, float]:
    """Return the processor seconds of the process, and the time, in seconds of a monotonic clock."""
    times = process.cpu_times()
    return times.user + times.system, time.monotonic()


def by_pyperf(processes: int) -> tuple[float, float, str]:
    """Measure the step with pyperf.

    Return the wall seconds, the seconds inside measured values, and a text with the number of values and processes.
    """
    with tempfile.TemporaryDirectory() as directory:
        script, file = Path(directory, "script.py"), Path(directory, "found.json")
        script.write_text(PYPERF)
        began = time.monotonic()
        command = [sys.executable, str(script), "--quiet", f"--processes={processes}", "-o", str(file)]
        command.append("--inherit-environ=PYTHONPATH")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        runs = pyperf.Benchmark.load(str(file)).get_runs()
    inside = sum(sum(run.values) * run.get_total_loops() for run in runs)
    return wall, inside, f"{sum(len(run.values) for run in runs)} values in {len(runs)} processes"


def by_asv(processes: int) -> tuple[float, float, str]:
    """Measure the step with asv, and return the same as `by_pyperf`.

    Raises OSError or subprocess.CalledProcessError if asv does not run.
    """
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "benchmarks").mkdir()
        (root / "benchmarks/__init__.py").touch()
        (root / "benchmarks/chain.py").write_text(f"{ASV}\n    rounds = {processes}\n")
        (root / "asv.conf.json").write_text(json.dumps(ASV_CONFIGURATION))
        asv = str(Path(sys.executable).with_name("asv"))
        identity = ["-c", "user.name=asv", "-c", "user.email=asv@localhost"]

        def call(*command: str) -> None:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(command, check=True, cwd=root, env={**os.environ, "HOME": directory}, **quiet)

        call("git", "init", "--quiet", f"--initial-branch={HEAD}")
        call("git", "add", "--all")
        call("git", *identity, "commit", "--quiet", "--message", "step")
        call(asv, "machine", "--yes")
        began = time.monotonic()
        commit = (root / ".git/refs/heads" / HEAD).read_text().strip()
        where = f"existing:{sys.executable}"
        call(asv, "run", "--environment", where, "--record-samples", "--set-commit-hash", commit)
        wall = time.monotonic() - began
        (file,) = root.glob("results/*/*-*.json")
        stored = json.loads(file.read_text())
    (values,) = stored["results"].values()
    columns = dict(zip(stored["result_columns"], values, strict=False))
    samples, number = columns["samples"][0], columns["stats_number"][0]
    return wall, sum(samples) * number, f"{len(samples)} samples of {number} calls in {processes} processes"


def blocks_of(launches: Iterable[LaunchRecord]) -> float:
    """Return the seconds inside timed blocks."""
    return sum(block.seconds for launch in launches for block in launch.blocks)


def spread(values: list[float], digits: int = 2) -> str:
    """Format median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def check_seconds(launch: LaunchRecord) -> float:
    """Return the seconds that a launch spends on checks: of outputs, operations, limits and late work."""
    return sum(launch.asides.values())


def other_seconds(launch: LaunchRecord) -> float:
    """Return the seconds outside framework, compilation, warm-up, blocks and checks."""
    phases = {phase.phase: phase.seconds for phase in launch.phases}
    framework_seconds = sum(
        phases.get(name, 0.0) for name in ("import", "device-init", "compile", "first-step", "warm-up")
    )
    return launch.wall_seconds - framework_seconds - blocks_of([launch]) - check_seconds(launch)


def launches_table(ran: MeasuredCase) -> None:
    """Print the table of where the seconds of a launch go, by variant and by early or later rounds."""
    print("| variant | rounds | wall | import, device | compile, first step | warm-up | blocks | looks | the rest |")
    print("|---|---|---|---|---|---|---|---|---|")
    for variant in dict.fromkeys(launch.variant for launch in ran.launches):
        of_variant = [launch for launch in ran.launches if launch.variant == variant and not launch.failure]
        early = [launch for launch in of_variant if launch.round <= LIMITS_ROUNDS]
        later = [launch for launch in of_variant if launch.round > LIMITS_ROUNDS]
        for name, launches in ((f"1 to {LIMITS_ROUNDS}", early), ("later", later)):
            if not launches:
                continue
            phases = [{phase.phase: phase.seconds for phase in launch.phases} for launch in launches]
            cells = [
                spread([launch.wall_seconds for launch in launches]),
                spread([seconds["import"] + seconds["device-init"] for seconds in phases]),
                spread([seconds["compile"] + seconds["first-step"] for seconds in phases]),
                spread([seconds["warm-up"] for seconds in phases]),
                spread([blocks_of([launch]) for launch in launches]),
                spread([check_seconds(launch) for launch in launches]),
                spread([other_seconds(launch) for launch in launches]),
            ]
            print(f"| {variant} | {name} | {' | '.join(cells)} |")


def main(rounds: int) -> None:
    """Print the report as Markdown."""
    rule = {"rounds_min": rounds, "rounds_max": rounds, "time_limit_seconds": TIME_LIMIT_SECONDS}
    parameters = {"size": SIZE, "length": LENGTH}
    print("# Overhead\n")
    print(f"`python benchmarks/overhead.py {rounds}` on {environment()}\n")
    print("## The same step, beside others\n")
    print(
        f"One variant, {USE}: {LENGTH} products of {SIZE} x {SIZE}; {rounds} rounds. The others take as many", end=" "
    )
    print("processes, and else their defaults.\n")
    print("| tool | wall seconds | inside what is measured | share | |\n|---|---|---|---|---|")
    alone = run(make_case("matmul-chain", dict(parameters), {USE: USE}, **rule))
    counted = f"{sum(len(launch.blocks) for launch in alone.launches)} blocks in {len(alone.launches)} launches"
    rows = {"accelbench": (alone.wall_seconds, blocks_of(alone.launches), counted), "pyperf": by_pyperf(rounds)}
    why_not = ""
    try:
        rows["asv"] = by_asv(rounds)
    except (OSError, subprocess.CalledProcessError) as error:
        why_not = f"asv could not be asked: {error}"
    for tool, (wall, inside, what) in rows.items():
        print(f"| {tool} | {wall:.1f} | {inside:.1f} | {inside / wall:.1%} | {what} |", flush=True)
    print(why_not and f"\n{why_not}")
    supervision = Supervision()
    variants = {USE: USE, "jax/jit": "jax/jit"}
    default = {"time_limit_seconds": TIME_LIMIT_SECONDS, "rounds_min": rounds, "rounds_max": max(rounds, 20)}
    ran = run(make_case("matmul-chain", dict(parameters), variants, **default), supervision)
    (comparison,) = ran.result.comparisons
    print("## Two frameworks, to a verdict\n")
    print(f"{' against '.join(variants)}, {rounds} to {default['rounds_max']} rounds, target 1 %:", end=" ")
    finding = comparison.verdict or f"no verdict ({', '.join(comparison.invalid) or ran.result.stopped})"
    print(f"{finding} after {ran.result.rounds} rounds and {ran.wall_seconds:.1f} s", end="")
    print(f" ({len(ran.result.quarantined)} rounds quarantined).\n")
    total = float(ran.result.overhead["total"])
    print("| part | seconds | share |\n|---|---|---|")
    for part, seconds in ran.result.overhead.items():
        print(f"| {part} | {float(seconds):.2f} | {float(seconds) / total:.1%} |")
    print("\n`blocks` is inside `steady`; the others add up to `total`.\n")
    print("Seconds of a launch, medians with the range. Looks: at outputs, operations, late work, and in the first")
    print(f"{LIMITS_ROUNDS} rounds at what the device can do. The rest: process start and end, setup, and what lies")
    print("between blocks.\n")
    launches_table(ran)
    share = supervision.processor_seconds / supervision.wall_seconds
    resident = [each / MEBI for each in supervision.resident_bytes]
    print(f"\nThe supervisor, while launches measure: {spread(resident, 1)} MiB resident, {share:.2%} of a core.")


if __name__ == "__main__":
    assert shutil.which("git"), "asv wants a repository"
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

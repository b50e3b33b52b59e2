"""Measure which disturbances bias a speedup, and which only widen its interval.

    python benchmarks/disturbances.py [BLOCKS] [FILE] > docs/results/disturbances.md

A block is a round of each pair of variants under each condition, in random order: launches as the product makes them,
in the order of its schedule, with the disturbance next to both. The effect of a condition is its log-speedup minus that
of the same block's quiet round: the mean, with Student's t, is the bias; the ratio of standard deviations, with F, is
the widening. `quiet again` is a condition too, and shows the method's own error. FILE keeps the measurements: a second
call continues.

A real-time process that takes short slices of every processor stands for a hypervisor: a launch can do nothing against
either. Our own checks see it as other processes and not as steal.
"""

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from real import RecordFile, environment, make_case
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from accelbench.launch.fact import value_or_none
from accelbench.launch.record import LaunchRecord
from accelbench.machine import cgroup
from accelbench.plan.round_order import round_order
from accelbench.validity.throttled import quota_share, steal_share
from accelbench_runner.protocol import MACHINE_DIRECTORY
from accelbench_runner.supervisor import processors
from accelbench_runner.supervisor.allowance import Limit
from accelbench_runner.supervisor.children import Interruption, adopt_orphans
from accelbench_runner.supervisor.launcher import Launcher

LOAD = (sys.executable, str(Path(__file__).with_name("load.py")))
LAUNCH = (sys.executable, "-m", "accelbench_runner.launch")
LIMIT_SECONDS = 120.0
SETTLED_SECONDS = 0.3
"""Seconds until a load is at full speed."""
UNSEEN_SEED = 1
"""Seed of the inputs on which a launch checks its program."""
LATER_ROUND = 3
"""Round number of every launch: in the first rounds, launches also probe the device, a second each."""
CONFIDENCE = 0.95
MATTERS = 0.01
"""Smallest bias that counts: half of the usual equivalence margin."""
MARGIN = 0.02
"""Usual equivalence margin."""
QUOTA_SHARE = 0.75
QUOTA_PERIOD_MICROSECONDS = 100_000
QUIET = "quiet"

PAIRS: dict[str, tuple[str, dict[str, Any], tuple[str, str]]] = {
    "dispatch-bound": ("dispatch-overhead", {"size": 1}, ("pytorch/eager", "jax/jit")),
    "products": ("matmul-chain", {"size": 256, "length": 20}, ("pytorch/eager", "jax/jit")),
    "elementwise": ("elementwise-fusion", {"size": 2**22}, ("pytorch/eager", "jax/jit")),
}
"""Workload, parameters, and (baseline, variant), by the name of the pair."""


@contextmanager
def loads(*options: Sequence[str]) -> Iterator[None]:
    """Run a load process for each of these lists of options of load.py, within the `with` block."""
    with ExitStack() as stack:
        for load in options:
            process = stack.enter_context(subprocess.Popen([*LOAD, *load], stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            if process.stdout.readline() != "at work\n":
                raise OSError("the load did not start")
        time.sleep(SETTLED_SECONDS)
        yield


@contextmanager
def one_processor() -> Iterator[None]:
    """Pin launches to the first processor, although their settings name all of them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def quota() -> Iterator[None]:
    """Put launches in a control group with a share of the processors; raises OSError if none can be made."""
    own = cgroup.find("cpu")
    if own is None:
        raise OSError("no control group of processors is mounted")
    allowed = round(QUOTA_SHARE * len(os.sched_getaffinity(0)) * QUOTA_PERIOD_MICROSECONDS)
    group = own.directory / f"accelbench-{os.getpid()}"
    if own.version == 2:  # noqa: PLR2004
        (own.directory / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        if own.version == 2:  # noqa: PLR2004
            (group / "cpu.max").write_text(f"{allowed} {QUOTA_PERIOD_MICROSECONDS}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_MICROSECONDS))
            (group / "cpu.cfs_quota_us").write_text(str(allowed))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (own.directory / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def on_each_processor(*options: str) -> list[list[str]]:
    """Return the options of a load process for each processor."""
    return [[*options, "--processor", str(number)] for number in sorted(os.sched_getaffinity(0))]


def conditions() -> dict[str, Any]:
    """Return for each condition, by name, the function whose context manager makes it for a round."""
    spin = ["spin"]
    slices = {
        share: on_each_processor("spin", "--share", str(share), "--period", "0.01", "--fifo")
        for share in (0.05, 0.11, 0.25)
    }
    return {
        QUIET: loads,
        "quiet again": loads,
        "one busy loop": partial(loads, spin),
        "one busy loop, nice 19": partial(loads, [*spin, "--nice", "19"]),
        "a busy loop on each processor": partial(loads, *on_each_processor("spin")),
        "a busy loop on each processor, nice 19": partial(loads, *on_each_processor("spin", "--nice", "19")),
        "one process that copies memory": partial(loads, ["copy"]),
        "bursts, 10 of 100 ms, one process": partial(loads, [*spin, "--share", "0.1", "--period", "0.1"]),
        **{
            f"real-time slices, {share:.0%} of each processor".replace("%", " %"): partial(loads, *load_options)
            for share, load_options in slices.items()
        },
        f"quota, {QUOTA_SHARE:.0%} of the processors".replace("%", " %"): quota,
        "all threads on one processor": one_processor,
    }


@dataclass(frozen=True)
class Bench:
    """Make launches as the supervisor does, one at a time.

    The launcher kills all its descendants at the end, so each round has its own process, and the loads are not its
    children.
    """

    directory: Path
    environment: dict[str, str]
    threads: int

    def round(self, pair: str, number: int) -> dict[str, Any]:
        """Launch each side in the schedule's order of this round; return the round's record."""
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            return pool.submit(self._round, pair, number).result()

    def _round(self, pair: str, number: int) -> dict[str, Any]:
        """Do the work of `round` in its own process."""
        adopt_orphans()
        workload, parameters, sides = PAIRS[pair]
        case = make_case(workload, dict(parameters), {use: use for use in sides})
        launcher = Launcher(
            case=case,
            command=LAUNCH,
            environment=self.environment,
            threads=self.threads,
            interruption=Interruption(),
            unseen_seed=UNSEEN_SEED,
        )
        records = {}
        for position, variant in enumerate(round_order(sides, seed=0, case=pair, round_number=number)):
            with tempfile.TemporaryDirectory(dir=self.directory) as directory:
                records[variant] = launcher.launch(
                    variant,
                    round_number=LATER_ROUND,
                    position=position,
                    directory=Path(directory),
                    limit=Limit(LIMIT_SECONDS, "the benchmark's limit"),
                    case_seconds=LIMIT_SECONDS,
                    skip={},
                    forward=lambda _channel, _data: None,
                    phase_reached=lambda _phase: None,
                )
        return read(pair, records)


def read(pair: str, records: dict[str, LaunchRecord]) -> dict[str, Any]:
    """Return the record of a round: the seconds of both sides, and the larger of their shares of disturbed time."""
    for variant, record in records.items():
        if record.failure:
            return {"trouble": f"{variant}: {record.failure.reason}: {record.failure.message}"[:200]}
        if record.unfinished:
            return {"trouble": f"{variant}: not finished after {LIMIT_SECONDS:g} s"}
    baseline, variant = PAIRS[pair][2]
    seconds = {name: record.seconds() or math.nan for name, record in records.items()}
    neighbours = [value_or_none(record.facts.neighbours) for record in records.values()]
    others = [measured.busy_seconds / measured.offered_seconds for measured in neighbours if measured]
    return {
        "baseline": seconds[baseline],
        "variant": seconds[variant],
        "neighbours": max(others, default=0.0),
        "steal": max(map(steal_share, records.values())),
        "throttled": max(quota_share(record) or 0.0 for record in records.values()),
    }


def measure(blocks: int, record_file: RecordFile, names: Sequence[str], pairs: Sequence[str]) -> None:
    """Measure every condition once in each block, except those already recorded."""
    contexts = conditions()
    done = {(record["pair"], record["block"], record["condition"]) for record in record_file.records}
    threads = len(processors.set_affinity())
    with tempfile.TemporaryDirectory(prefix="ab-") as directory:
        launch_environment = {
            **os.environ,
            **processors.thread_environment(threads),
            MACHINE_DIRECTORY: str(Path(directory, "machine")),
        }
        bench = Bench(Path(directory), launch_environment, threads)
        for block in range(1, blocks + 1):
            rng = random.Random(block)  # noqa: S311 - the order of conditions is no secret
            for pair in pairs:
                for name in rng.sample(names, len(names)):
                    if (pair, block, name) in done:
                        continue
                    began = time.monotonic()
                    try:
                        with contexts[name]():
                            outcome = bench.round(pair, block)
                    except OSError as error:
                        outcome = {"trouble": f"not available here: {error}"}
                    took = time.monotonic() - began
                    record_file.add({"pair": pair, "block": block, "condition": name, "seconds": took, **outcome})
                    shown = outcome.get("trouble") or f"{outcome['baseline'] / outcome['variant']:.4f}"
                    print(f"block {block}, {pair}, {name}: {shown} ({took:.1f} s)", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Effect:
    """Describe the effect of a disturbance on the log-speedup."""

    bias: float
    """Mean change of the log-speedup."""
    half_width: float
    """Half-width of the bias' interval."""
    widening: float
    """Standard deviation of the disturbed log-speedups divided by that of the quiet ones."""
    narrowest: float
    """Lower end of the widening's interval."""
    widest: float
    """Upper end of the widening's interval."""

    @property
    def consequence(self) -> str:
        """Return the consequence for such rounds: discard or keep."""
        if abs(self.bias) > max(self.half_width, MATTERS):
            return "discard"
        if abs(self.bias) + self.half_width <= MARGIN:
            return "keep"
        return "not shown: discard"


def effect(quiet: Sequence[float], disturbed: Sequence[float]) -> Effect | None:
    """Return the effect of a disturbance on paired log-speedups; None with fewer than two pairs."""
    count = len(quiet)
    if count < 2:  # noqa: PLR2004 - one number has no deviation
        return None
    differences = [after - before for before, after in zip(quiet, disturbed, strict=True)]
    quantile = float(t_distribution.ppf((1 + CONFIDENCE) / 2, count - 1))
    widening = statistics.stdev(disturbed) / statistics.stdev(quiet)
    spread = math.sqrt(float(f_distribution.ppf((1 + CONFIDENCE) / 2, count - 1, count - 1)))
    return Effect(
        bias=statistics.fmean(differences),
        half_width=quantile * statistics.stdev(differences) / math.sqrt(count),
        widening=widening,
        narrowest=widening / spread,
        widest=widening * spread,
    )


def percent(log: float) -> str:
    """Format a logarithm as a percentage of the speedup."""
    return f"{100 * math.expm1(log):+.1f} %"


def row(name: str, quiet: dict[int, Any], disturbed: dict[int, Any]) -> str:
    """Format a line of the table; `quiet` and `disturbed` by block."""
    common = sorted(quiet.keys() & disturbed.keys())
    log_ratios = [
        [math.log(side[block]["baseline"] / side[block]["variant"]) for block in common] for side in (quiet, disturbed)
    ]
    medians = [
        statistics.median(disturbed[block][share] for block in common) for share in ("neighbours", "steal", "throttled")
    ]
    slower = [
        statistics.median(disturbed[block][side] / quiet[block][side] for block in common)
        for side in ("baseline", "variant")
    ]
    shares = " | ".join(f"{100 * share:.1f} %" for share in medians)
    cells = f"| {name} | {shares} | {slower[0]:.2f}x, {slower[1]:.2f}x "
    measured = effect(*log_ratios)
    if name == QUIET or measured is None:
        return f"{cells}| | | |"
    lower, upper = measured.bias - measured.half_width, measured.bias + measured.half_width
    bias = f"{percent(measured.bias)} ({percent(lower)} to {percent(upper)})"
    widening = f"{measured.widening:.1f}x ({measured.narrowest:.1f} to {measured.widest:.1f})"
    return f"{cells}| {bias} | {widening} | {measured.consequence} |"


def table(pair: str, record_file: RecordFile) -> None:
    """Print the table of the conditions of one pair."""
    workload, parameters, (baseline, variant) = PAIRS[pair]
    records = [record for record in record_file.records if record["pair"] == pair]
    by_condition: dict[str, dict[int, Any]] = {}
    trouble: dict[str, str] = {}
    for record in records:
        if "trouble" in record:
            trouble[record["condition"]] = record["trouble"]
        else:
            by_condition.setdefault(record["condition"], {})[record["block"]] = record
    quiet = by_condition.get(QUIET, {})
    if not quiet:
        return
    parameter_text = ", ".join(f"{name} {value}" for name, value in parameters.items())
    ratio = math.exp(statistics.fmean(math.log(record["baseline"] / record["variant"]) for record in quiet.values()))
    print(f"## {pair}: {workload} ({parameter_text})\n")
    print(f"{variant} against {baseline}: {ratio:.3f} times as fast in {len(quiet)} quiet rounds.\n")
    print("| disturbance | neighbours | steal | quota | slower | bias (95 %) | widening (95 %) | follows |")
    print("|---|---|---|---|---|---|---|---|")
    for name in conditions():
        if quiet.keys() & by_condition.get(name, {}).keys():
            print(row(name, quiet, by_condition[name]))
    for name, why in trouble.items():
        print(f"\n{name}: {why}")
    print()


def main(blocks: int, record_file: RecordFile, names: Sequence[str], pairs: Sequence[str]) -> None:
    """Print the report as Markdown."""
    measure(blocks, record_file, names, pairs)
    print("# What disturbances do to a speedup\n")
    print(f"`python benchmarks/disturbances.py {blocks}` on {environment()}\n")
    print(
        "Shares are medians over rounds of what our own checks read, of the side that had more. Slower: the baseline's"
    )
    print(
        "time over that of the quiet round in the same block, then the variant's. Bias: how far the speedup moved from"
    )
    print("that round's. Widening: how much further it spread. What follows: discard where the bias is over", end=" ")
    print(f"{100 * MATTERS:g} % and its interval excludes 0; keep where the interval is within {100 * MARGIN:g} %.\n")
    for pair in pairs:
        table(pair, record_file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("blocks", type=int, nargs="?", default=10)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", default=list(conditions()), choices=list(conditions()))
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    options = parser.parse_args()
    main(options.blocks, RecordFile(options.file), options.only, options.pairs)

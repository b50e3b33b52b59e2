"""Count how often each validity check fails although nothing is wrong, in real launches and simulated cases.

    python benchmarks/false_alarms.py [CASES SIMULATED] [FILE] > docs/results/false_alarms.md

CASES are real: two variants, five rounds, on this machine. Checks of launches are counted by launch, checks of cases by
case. A busy machine fails the checks that detect load, which are no false alarms, so the machine has to be quiet. FILE
keeps the measurements: a second call continues. SIMULATED cases have the facts of a real launch on a simulated machine
(tests/golden) and random block times: they count for the checks that read times.
"""

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from real import RecordFile, environment, make_case, run, upper_bound

from accelbench.api.case import Case
from accelbench.launch.record import Block, LaunchRecord
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import LaunchCheck
from accelbench.validity.evidence import Evidence

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from golden.defects import HONEST
from golden.experiment import BASELINE, VARIANT, case, measure, records

VARIANTS = {"pytorch/eager": "pytorch/eager", "jax/jit": "jax/jit"}
SIZE = {"size": 64, "length": 10}
ROUNDS = 5
SIMULATED_ROUNDS = 20
BLOCKS = 100
LAUNCH_NOISE, BLOCK_NOISE, MEMORY = 0.01, 0.02, 0.5
"""Standard deviations of the logarithms, and the blocks' lag-1 correlation."""
READ_TIMES = {"autocorrelated", "clock", "impossible-speed", "unsteady"}
"""Checks that read times; a simulation does not vary the facts that others read."""
Counts = dict[str, tuple[int, int]]
"""Number of failures and number of tests, by check."""


def run_checks(measured_case: Case, launches: Iterable[LaunchRecord], names: Iterable[str] | None = None) -> Counts:
    """Run the launch checks on every launch and the case checks on the case; only those in `names`, if given."""
    successful = [launch for launch in launches if launch.failure is None]
    evidence = Evidence(case=measured_case, launches=tuple(successful))
    counts: Counts = {}
    for check in validity_checks():
        if names is not None and check.name not in names:
            continue
        if isinstance(check, LaunchCheck):
            findings = [check.evaluate(measured_case, launch) for launch in successful]
        else:
            findings = [finding for _, finding in check.evaluate(evidence)]
        tested = [finding for finding in findings if finding.outcome != "untested"]
        counts[check.name] = (sum(finding.outcome == "failed" for finding in tested), len(tested))
    return counts


def real(seed: int) -> dict[str, Any]:
    """Measure one case on this machine, and return the record of its checks."""
    rule = {"rounds_min": ROUNDS, "rounds_max": ROUNDS, "time_limit_seconds": 110, "seed": seed}
    measured_case = run(make_case("matmul-chain", dict(SIZE), VARIANTS, **rule))
    (comparison,) = measured_case.result.comparisons
    counts = run_checks(measured_case.result.case, measured_case.launches)
    return {"seed": seed, "seconds": measured_case.wall_seconds, "invalid": list(comparison.invalid), "counts": counts}


def simulated(cases: int, rng: Generator) -> Iterator[Counts]:
    """Yield the counts of simulated cases, which have random times and the facts of a launch on a simulated machine."""
    with tempfile.TemporaryDirectory() as directory:
        result = measure(case(), lambda variant, _: HONEST[variant], Path(directory))
        template = {launch.variant: launch for launch in records(Path(directory))}
    for _ in range(cases):
        launches = [
            template[variant].model_copy(update={"round": number, "blocks": draw_blocks(variant, rng)})
            for number in range(1, SIMULATED_ROUNDS + 1)
            for variant in (BASELINE, VARIANT)
        ]
        counts = run_checks(result.case, launches, READ_TIMES)
        yield {name: (int(failed > 0), 1) for name, (failed, _) in counts.items()}


def draw_blocks(variant: str, rng: Generator) -> tuple[Block, ...]:
    """Draw a launch's blocks: a stationary series with lag-1 correlation `MEMORY`."""
    innovations = rng.standard_normal(BLOCKS) * math.sqrt(1 - MEMORY**2)
    series = np.empty(BLOCKS)
    value = rng.standard_normal()
    for index, innovation in enumerate(innovations):
        value = MEMORY * value + innovation
        series[index] = value
    logarithms = LAUNCH_NOISE * rng.standard_normal() + BLOCK_NOISE * series
    return tuple(
        Block(units=4, seconds=float(seconds)) for seconds in HONEST[variant].call_seconds * np.exp(logarithms)
    )


def add_counts(all_counts: Iterable[Counts]) -> Counts:
    """Add the counts of several cases, by check."""
    failures: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for counts in all_counts:
        for name, (failed, tested) in counts.items():
            failures[name] += failed
            totals[name] += tested
    return {name: (failures[name], totals[name]) for name in sorted(totals)}


def table(counts: Counts, kind: str) -> None:
    """Print a line for each check; `kind` is what was counted, or empty for what the check tests: launches or cases."""
    print("| check | looked at | failed | of | 99 % upper bound |\n|---|---|---|---|---|")
    checks = {check.name: check for check in validity_checks()}
    for name, (failed, tested) in counts.items():
        subject = kind or ("launch" if isinstance(checks.get(name), LaunchCheck) else "case")
        bound = f"{upper_bound(failed, tested):.2%}" if tested else "untested"
        print(f"| {name} | each {subject} | {failed} | {tested} | {bound} |")


def main(cases: int, simulations: int, record_file: RecordFile) -> None:
    """Print the report as Markdown."""
    for seed in range(len(record_file.records), cases):
        record_file.add(real(seed))
    print("# False alarms of the validity checks\n")
    print(f"`python benchmarks/false_alarms.py {cases} {simulations}` on {environment()}\n")
    if record_file.records:
        valid = sum(not record["invalid"] for record in record_file.records)
        print(f"## {len(record_file.records)} real cases\n")
        print(f"matmul-chain of {SIZE['length']} products, size {SIZE['size']}, {' and '.join(VARIANTS)},", end=" ")
        print(f"{ROUNDS} rounds. {valid} had a verdict or an interval, nothing failed.\n")
        table(add_counts(record["counts"] for record in record_file.records), "")
    print(f"\n## {simulations} simulated cases\n")
    print(
        f"Two variants, {SIMULATED_ROUNDS} rounds of {BLOCKS} blocks; launches differ by {LAUNCH_NOISE:.0%}, blocks",
        end=" ",
    )
    print(
        f"by {BLOCK_NOISE:.0%} with a\nlag-1 correlation of {MEMORY:g}. Cases in which any launch or variant", end=" "
    )
    print("fails, of the checks that read times.\n")
    table(add_counts(simulated(simulations, np.random.default_rng(20260107))), "case")


if __name__ == "__main__":
    cases, simulations = (int(given) for given in (sys.argv[1:3] if len(sys.argv) > 2 else (5, 2000)))  # noqa: PLR2004
    main(cases, simulations, RecordFile(Path(sys.argv[3]) if len(sys.argv) > 3 else None))  # noqa: PLR2004

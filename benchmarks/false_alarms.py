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
"""Failures and total by check."""


def run_checks(asked: Case, launches: Iterable[LaunchRecord], names: Iterable[str] | None = None) -> Counts:
    """Run the launch checks on every launch and the case checks on the case; only those in `names`, if given."""
    sound = [launch for launch in launches if launch.failure is None]
    evidence = Evidence(case=asked, launches=tuple(sound))
    counts: Counts = {}
    for check in (each for each in validity_checks() if names is None or each.name in names):
        if isinstance(check, LaunchCheck):
            findings = [check.evaluate(asked, launch) for launch in sound]
        else:
            findings = [finding for _, finding in check.evaluate(evidence)]
        tested = [finding for finding in findings if finding.outcome != "untested"]
        counts[check.name] = (sum(finding.outcome == "failed" for finding in tested), len(tested))
    return counts


def real(seed: int) -> dict[str, Any]:
    """Measure and check one case on this machine."""
    rule = {"rounds_min": ROUNDS, "rounds_max": ROUNDS, "time_limit_seconds": 110, "seed": seed}
    ran = run(make_case("matmul-chain", dict(SIZE), VARIANTS, **rule))
    (comparison,) = ran.result.comparisons
    counts = run_checks(ran.result.case, ran.launches)
    return {"seed": seed, "seconds": ran.wall_seconds, "invalid": list(comparison.invalid), "counts": counts}


def simulated(cases: int, rng: Generator) -> Iterator[Counts]:
    """Check cases with random times and the facts of an honest launch on a simulated machine."""
    with tempfile.TemporaryDirectory() as directory:
        result = measure(case(), lambda variant, _: HONEST[variant], Path(directory))
        template = {launch.variant: launch for launch in records(Path(directory))}
    for _ in range(cases):
        launches = [
            template[variant].model_copy(update={"round": number, "blocks": drawn(variant, rng)})
            for number in range(1, SIMULATED_ROUNDS + 1)
            for variant in (BASELINE, VARIANT)
        ]
        counts = run_checks(result.case, launches, READ_TIMES)
        yield {name: (int(failed > 0), 1) for name, (failed, _) in counts.items()}


def drawn(variant: str, rng: Generator) -> tuple[Block, ...]:
    """Draw a launch's blocks: stationary, with memory."""
    innovations = rng.standard_normal(BLOCKS) * math.sqrt(1 - MEMORY**2)
    series = np.empty(BLOCKS)
    value = rng.standard_normal()
    for index, innovation in enumerate(innovations):
        value = MEMORY * value + innovation
        series[index] = value
    logarithms = LAUNCH_NOISE * rng.standard_normal() + BLOCK_NOISE * series
    return tuple(Block(units=4, seconds=float(each)) for each in HONEST[variant].call_seconds * np.exp(logarithms))


def add_counts(all_counts: Iterable[Counts]) -> Counts:
    """Add the counts."""
    failed: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for counts in all_counts:
        for name, (hits, of) in counts.items():
            failed[name] += hits
            told[name] += of
    return {name: (failed[name], told[name]) for name in sorted(told)}


def table(counts: Counts, kind: str) -> None:
    """Format a line for each check."""
    print("| check | looked at | failed | of | 99 % upper bound |\n|---|---|---|---|---|")
    checks = {check.name: check for check in validity_checks()}
    for name, (failed, of) in counts.items():
        subject = kind or ("launch" if isinstance(checks.get(name), LaunchCheck) else "case")
        bound = f"{upper_bound(failed, of):.2%}" if of else "untested"
        print(f"| {name} | each {subject} | {failed} | {of} | {bound} |")


def main(cases: int, simulations: int, kept: RecordFile) -> None:
    """Print the report as Markdown."""
    for seed in range(len(kept.records), cases):
        kept.add(real(seed))
    print("# False alarms of the validity checks\n")
    print(f"`python benchmarks/false_alarms.py {cases} {simulations}` on {environment()}\n")
    if kept.records:
        clean = sum(not each["invalid"] for each in kept.records)
        print(f"## {len(kept.records)} real cases\n")
        print(f"matmul-chain of {SIZE['length']} products, size {SIZE['size']}, {' and '.join(VARIANTS)},", end=" ")
        print(f"{ROUNDS} rounds. {clean} had a verdict or an interval, nothing failed.\n")
        table(add_counts(each["counts"] for each in kept.records), "")
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

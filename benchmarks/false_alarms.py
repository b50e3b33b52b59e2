"""How often each validity check fails where nothing is wrong: real launches, and simulated cases by the thousand.

    python benchmarks/false_alarms.py [CASES SIMULATED] [FILE] > docs/results/false_alarms.md

CASES are real: two variants, five rounds, this machine as it is. A check that looks at launches is counted by launch,
one that looks at a case by case. A machine that is not at rest fails the checks that are there to say so; those are no
false alarms, and the machine has to be quiet. With FILE, what was measured is kept and counts: a second call goes on.
SIMULATED cases have the facts of a real launch on a simulated machine (tests/golden), and blocks that are drawn: they
count for the checks that read times.
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
from real import Kept, a_case, environment, run, upper_bound

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
"""The other checks read facts, which nothing varies in a simulation."""
Counts = dict[str, tuple[int, int]]
"""By check: how many failed, of how many."""


def looked_at(asked: Case, launches: Iterable[LaunchRecord], names: Iterable[str] | None = None) -> Counts:
    """Checks of launches on every launch, checks of cases on the case; all of them, or those with `names`."""
    sound = [launch for launch in launches if launch.failure is None]
    evidence = Evidence(case=asked, launches=tuple(sound))
    counts: Counts = {}
    for check in (each for each in validity_checks() if names is None or each.name in names):
        if isinstance(check, LaunchCheck):
            findings = [check.look(asked, launch) for launch in sound]
        else:
            findings = [finding for _, finding in check.look(evidence)]
        told = [finding for finding in findings if finding.outcome != "untested"]
        counts[check.name] = (sum(finding.outcome == "failed" for finding in told), len(told))
    return counts


def real(seed: int) -> dict[str, Any]:
    """One case on this machine."""
    rule = {"rounds_min": ROUNDS, "rounds_max": ROUNDS, "time_limit_seconds": 110, "seed": seed}
    ran = run(a_case("matmul-chain", dict(SIZE), VARIANTS, **rule))
    (comparison,) = ran.result.comparisons
    counts = looked_at(ran.result.case, ran.launches)
    return {"seed": seed, "seconds": ran.wall_seconds, "invalid": list(comparison.invalid), "counts": counts}


def simulated(cases: int, rng: Generator) -> Iterator[Counts]:
    """Counts of each case: times drawn, facts those of an honest launch on a simulated machine."""
    with tempfile.TemporaryDirectory() as directory:
        result = measure(case(), lambda variant, _: HONEST[variant], Path(directory))
        template = {launch.variant: launch for launch in records(Path(directory))}
    for _ in range(cases):
        launches = [
            template[variant].model_copy(update={"round": number, "blocks": drawn(variant, rng)})
            for number in range(1, SIMULATED_ROUNDS + 1)
            for variant in (BASELINE, VARIANT)
        ]
        counts = looked_at(result.case, launches, READ_TIMES)
        yield {name: (int(failed > 0), 1) for name, (failed, _) in counts.items()}


def drawn(variant: str, rng: Generator) -> tuple[Block, ...]:
    """A launch's blocks: stationary, with a memory."""
    innovations = rng.standard_normal(BLOCKS) * math.sqrt(1 - MEMORY**2)
    series = np.empty(BLOCKS)
    value = rng.standard_normal()
    for index, innovation in enumerate(innovations):
        value = MEMORY * value + innovation
        series[index] = value
    logs = LAUNCH_NOISE * rng.standard_normal() + BLOCK_NOISE * series
    return tuple(Block(units=4, seconds=float(each)) for each in HONEST[variant].call_seconds * np.exp(logs))


def together(found: Iterable[Counts]) -> Counts:
    """The sums."""
    failed: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for counts in found:
        for name, (hits, of) in counts.items():
            failed[name] += hits
            told[name] += of
    return {name: (failed[name], told[name]) for name in sorted(told)}


def table(counts: Counts, kind: str) -> None:
    """A line for each check."""
    print("| check | looked at | failed | of | 99 % upper bound |\n|---|---|---|---|---|")
    checks = {check.name: check for check in validity_checks()}
    for name, (failed, of) in counts.items():
        each = kind or ("launch" if isinstance(checks.get(name), LaunchCheck) else "case")
        bound = f"{upper_bound(failed, of):.2%}" if of else "untested"
        print(f"| {name} | each {each} | {failed} | {of} | {bound} |")


def main(cases: int, simulations: int, kept: Kept) -> None:
    """The report, as Markdown."""
    for seed in range(len(kept.found), cases):
        kept.add(real(seed))
    print("# False alarms of the validity checks\n")
    print(f"`python benchmarks/false_alarms.py {cases} {simulations}` on {environment()}\n")
    if kept.found:
        clean = sum(not each["invalid"] for each in kept.found)
        print(f"## {len(kept.found)} real cases\n")
        print(f"matmul-chain of {SIZE['length']} products, size {SIZE['size']}, {' and '.join(VARIANTS)},", end=" ")
        print(f"{ROUNDS} rounds. {clean} had a verdict or an interval, nothing failed.\n")
        table(together(each["counts"] for each in kept.found), "")
    print(f"\n## {simulations} simulated cases\n")
    print(
        f"Two variants, {SIMULATED_ROUNDS} rounds of {BLOCKS} blocks; launches differ by {LAUNCH_NOISE:.0%}, blocks",
        end=" ",
    )
    print(
        f"by {BLOCK_NOISE:.0%} with a\nlag-1 correlation of {MEMORY:g}. Cases in which any launch or variant", end=" "
    )
    print("fails, of the checks that read times.\n")
    table(together(simulated(simulations, np.random.default_rng(20260107))), "case")


if __name__ == "__main__":
    cases, simulations = (int(given) for given in (sys.argv[1:3] if len(sys.argv) > 2 else (5, 2000)))  # noqa: PLR2004
    main(cases, simulations, Kept(Path(sys.argv[3]) if len(sys.argv) > 3 else None))  # noqa: PLR2004

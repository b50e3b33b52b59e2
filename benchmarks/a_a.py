"""A variant against itself, through the real runner: how often `faster` or `slower` is said of what is the same.

    python benchmarks/a_a.py [RUNS] [FILE] > docs/results/a_a.md

RUNS cases are measured, each of two variants that differ in nothing but their name. With FILE, what was measured is
kept there and counts: a second call goes on where the first ended, with other seeds. The rule that stops and its
coverage are simulated by the hundred thousand in coverage.py; this is the machine's own noise.
"""

import statistics
import sys
from collections import Counter
from pathlib import Path

from real import Kept, a_case, environment, run, upper_bound

USES = ("jax/jit", "pytorch/eager")
SIZE = {"size": 64, "length": 10}
RULE = {"rounds_min": 5, "rounds_max": 8, "target_relative_error": "0.02", "time_limit_seconds": 110}
PROMISED = 0.05
"""`faster` and `slower` together, at most."""


def measure(seed: int) -> dict[str, object]:
    """One case."""
    use = USES[seed % len(USES)]
    ran = run(a_case("matmul-chain", dict(SIZE), {"one": use, "other": use}, seed=seed, **RULE))
    (comparison,) = ran.result.comparisons
    return {
        "seed": seed,
        "use": use,
        "verdict": comparison.verdict or ("invalid" if comparison.invalid else "none"),
        "invalid": list(comparison.invalid),
        "speedup": comparison.speedup,
        "lower": comparison.lower,
        "upper": comparison.upper,
        "rounds": ran.result.rounds,
        "quarantined": len(ran.result.quarantined),
        "seconds": ran.wall_seconds,
    }


def main(runs: int, kept: Kept) -> None:
    """The report, as Markdown."""
    for seed in range(len(kept.found), runs):
        kept.add(measure(seed))
    found = kept.found
    wrong = [each for each in found if each["verdict"] in {"faster", "slower"}]
    judged = [each for each in found if each["speedup"] is not None and each["lower"] is not None]
    missed = [each for each in judged if not float(each["lower"]) <= 1 <= float(each["upper"])]
    print("# A variant against itself\n")
    print(f"`python benchmarks/a_a.py {runs}` on {environment()}\n")
    print(f"matmul-chain of {SIZE['length']} products, size {SIZE['size']}; {RULE['rounds_min']} to", end=" ")
    print(f"{RULE['rounds_max']} rounds, target 2 %, 95 %, margin 2 %.", end=" ")
    print(f"{len(found)} cases, {len(judged)} of them judged.\n")
    print("| what is said | cases |\n|---|---|")
    for verdict, count in Counter(str(each["verdict"]) for each in found).most_common():
        print(f"| {verdict} | {count} |")
    said = Counter(name for each in found for name in each["invalid"])
    if said:
        print(f"\nInvalid by {', '.join(f'{name} ({count})' for name, count in said.most_common())}.")
    if not judged:
        return
    bound = upper_bound(len(wrong), len(judged))
    print(f"\n`faster` or `slower`: {len(wrong)} of {len(judged)}, at most {bound:.1%} (99 %);", end=" ")
    print(f"promised: {PROMISED:.0%}. The interval misses 1: {len(missed)} of {len(judged)}.\n")
    print("| variant | cases | median of abs(speedup - 1) | largest | rounds, median | quarantined rounds |")
    print("|---|---|---|---|---|---|")
    for use in USES:
        mine = [each for each in judged if each["use"] == use]
        if mine:
            off = [abs(float(each["speedup"]) - 1) for each in mine]
            rounds = statistics.median(each["rounds"] for each in mine)
            quarantined = sum(each["quarantined"] for each in mine)
            print(
                f"| {use} | {len(mine)} | {statistics.median(off):.2%} | {max(off):.2%} | {rounds:g} | {quarantined} |"
            )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 8,
        Kept(Path(sys.argv[2]) if len(sys.argv) > 2 else None),  # noqa: PLR2004 - the second argument
    )

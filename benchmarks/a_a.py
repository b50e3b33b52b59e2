"""Measure a variant against itself with the real runner, and count false `faster` and `slower` verdicts.

    python benchmarks/a_a.py [RUNS] [FILE] > docs/results/a_a.md

RUNS cases are measured, each of two variants that differ only in name. FILE keeps the measurements: a second call
continues with other seeds. coverage.py simulates the stopping rule and its coverage by the hundred thousand; this
benchmark has the machine's own noise.
"""

import statistics
import sys
from collections import Counter
from pathlib import Path

from real import RecordFile, environment, make_case, run, upper_bound

USES = ("jax/jit", "pytorch/eager")
SIZE = {"size": 64, "length": 10}
RULE = {"rounds_min": 5, "rounds_max": 8, "target_relative_error": "0.02", "time_limit_seconds": 110}
PROMISED = 0.05
"""Maximum share of `faster` and `slower` verdicts together, of a variant against itself."""


def measure(seed: int) -> dict[str, object]:
    """Measure a variant against itself in one case, and return the record of the comparison."""
    use = USES[seed % len(USES)]
    measured = run(make_case("matmul-chain", dict(SIZE), {"one": use, "other": use}, seed=seed, **RULE))
    (comparison,) = measured.result.comparisons
    return {
        "seed": seed,
        "use": use,
        "verdict": comparison.verdict or ("invalid" if comparison.invalid else "none"),
        "invalid": list(comparison.invalid),
        "speedup": comparison.speedup,
        "lower": comparison.lower,
        "upper": comparison.upper,
        "rounds": measured.result.rounds,
        "quarantined": len(measured.result.quarantined),
        "seconds": measured.wall_seconds,
    }


def main(runs: int, record_file: RecordFile) -> None:
    """Print the report as Markdown."""
    for seed in range(len(record_file.records), runs):
        record_file.add(measure(seed))
    records = record_file.records
    wrong = [record for record in records if record["verdict"] in {"faster", "slower"}]
    judged = [record for record in records if record["speedup"] is not None and record["lower"] is not None]
    missed = [record for record in judged if not float(record["lower"]) <= 1 <= float(record["upper"])]
    print("# A variant against itself\n")
    print(f"`python benchmarks/a_a.py {runs}` on {environment()}\n")
    print(f"matmul-chain of {SIZE['length']} products, size {SIZE['size']}; {RULE['rounds_min']} to", end=" ")
    print(f"{RULE['rounds_max']} rounds, target 2 %, 95 %, margin 2 %.", end=" ")
    print(f"{len(records)} cases, {len(judged)} of them judged.\n")
    print("| what is said | cases |\n|---|---|")
    for verdict, count in Counter(str(record["verdict"]) for record in records).most_common():
        print(f"| {verdict} | {count} |")
    failed_checks = Counter(name for record in records for name in record["invalid"])
    if failed_checks:
        print(f"\nInvalid by {', '.join(f'{name} ({count})' for name, count in failed_checks.most_common())}.")
    if not judged:
        return
    bound = upper_bound(len(wrong), len(judged))
    print(f"\n`faster` or `slower`: {len(wrong)} of {len(judged)}, at most {bound:.1%} (99 %);", end=" ")
    print(f"promised: {PROMISED:.0%}. The interval misses 1: {len(missed)} of {len(judged)}.\n")
    print("| variant | cases | median of abs(speedup - 1) | largest | rounds, median | quarantined rounds |")
    print("|---|---|---|---|---|---|")
    for use in USES:
        of_use = [record for record in judged if record["use"] == use]
        if of_use:
            errors = [abs(float(record["speedup"]) - 1) for record in of_use]
            rounds = statistics.median(record["rounds"] for record in of_use)
            quarantined = sum(record["quarantined"] for record in of_use)
            print(
                f"| {use} | {len(of_use)} | {statistics.median(errors):.2%} | {max(errors):.2%} | {rounds:g} "
                f"| {quarantined} |"
            )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 8,
        RecordFile(Path(sys.argv[2]) if len(sys.argv) > 2 else None),  # noqa: PLR2004 - the second argument
    )

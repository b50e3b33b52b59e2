"""Time the statistics of a large case: everything that the judge computes after a round, except parity.

    python benchmarks/speed.py [VARIANTS ROUNDS BLOCKS] > docs/results/speed.md

Launches are random, with facts as good ones report them; the case is judged as after its last round.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench.launch.record import Block, LaunchRecord, PhaseRecord
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from judge.launches import GOOD_FACTS, GOOD_PARITY

REPEATS = 5


def make_request(variants: int, rounds: int, blocks: int) -> JudgeRequest:
    """Return the judge's request for a case with launches of random, independent block times."""
    rng = np.random.default_rng(20260105)
    names = [f"variant-{number}" for number in range(variants)]
    case = Case(
        name="all",
        origin=CaseOrigin(run="run", series="series"),
        workload="matmul-chain",
        parameters={"size": 8, "length": 4},
        variants=tuple(CaseVariant(name=name, use="jax/jit") for name in names),
        baseline=names[0],
        comparisons_in_run=variants - 1,
        measurement=CaseMeasurement(rounds_min=rounds, rounds_max=rounds),
    )
    launches = tuple(
        LaunchRecord(
            variant=name,
            round=number,
            position=position,
            wall_seconds=1.0,
            phases=(PhaseRecord(phase="compile", seconds=1.0), PhaseRecord(phase="first-step", seconds=0.02)),
            blocks=tuple(
                Block(units=10, seconds=float(seconds))
                for seconds in 0.1 * np.exp(0.01 * rng.standard_normal() + 0.01 * rng.standard_normal(blocks))
            ),
            facts=GOOD_FACTS,
            parity=GOOD_PARITY,
        )
        for number in range(1, rounds + 1)
        for position, name in enumerate(names)
    )
    return JudgeRequest(case=case, launches=launches, directory="/nowhere")


def main(variants: int, rounds: int, blocks: int) -> None:
    """Print the report as Markdown."""
    request = make_request(variants, rounds, blocks)
    judge(request)  # imports scipy
    took = []
    for _ in range(REPEATS):
        began = time.process_time()
        assessment = judge(request)
        took.append(time.process_time() - began)
    assert assessment.rounds == rounds
    # All but those whose rounds look correlated by chance.
    assert sum(comparison.verdict is not None for comparison in assessment.comparisons) > variants / 2
    print("# Speed of the statistics\n")
    print(
        f"`python benchmarks/speed.py {variants} {rounds} {blocks}`: {variants} variants x {rounds} rounds x {blocks}"
    )
    print(
        "blocks, every check but the comparison of outputs, comparisons, spreads and payback, as after the last round:"
    )
    print(f"{statistics.median(took):.2f} s of one processor, the median of {REPEATS} ({min(took):.2f} to", end=" ")
    print(f"{max(took):.2f}).")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4])) if len(sys.argv) > 3 else main(16, 50, 200)  # noqa: PLR2004 - three numbers

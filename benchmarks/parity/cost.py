"""Print how long the runs of a reference take that the rule of parity needs."""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.parity.corpus import PROGRAMS
from benchmarks.parity.measure import Cost, Judges

RUN_SECONDS = (0.0, 1e-4, 1e-3, math.inf)
"""Bounds, in seconds of one run, of the classes into which references are divided."""
MANY = 20
"""Minimum number of multiples whose deciles are printed, instead of their range."""
LARGE = ("gelu", "softmax", "layer normalisation", "matrix product", "convolution")
"""Programs whose first input may have any length."""
COPIES = 100
SEED = 1


def write(costs: Sequence[Cost]) -> None:
    """Print the costs of the corpus, and measure and print those of a few programs on larger arrays."""
    print("## Cost\n")
    print(
        "Processor time of all runs of the reference that parity needs, as a multiple of one run, by the time of that\n"
        "run: the median over programs, types and seeds, and the first and the last decile. Runs with noise compute\n"
        "each operation in Python, so loops over small arrays take longest.\n"
    )
    print("| one run of the reference | measured | before | now | without a reference |\n|---|---|---|---|---|")
    for shortest, longest in itertools.pairwise(RUN_SECONDS):
        in_class = [cost for cost in costs if shortest <= cost.run < longest]
        own = [cost.own / cost.own_run for cost in costs if shortest <= cost.own_run < longest]
        name = f"{1000 * shortest:g} to {1000 * longest:g} ms"
        print(
            f"| {name.replace('to inf ms', 'ms or more')} | {len(in_class)} | {_cells(in_class)} | {_multiples(own)} |"
        )
    costly = defaultdict(list)
    for cost in costs:
        if cost.run >= RUN_SECONDS[-2]:
            costly[cost.program].append(cost)
    large = [_measure_large(name) for name in LARGE]
    print("\n| program | one run | before | now |\n|---|---|---|---|")
    costs_by_name = {**costly, **{f"{cost.program}, on {COPIES} times as many rows": [cost] for cost in large}}
    for name, program_costs in costs_by_name.items():
        median_run = statistics.median(cost.run for cost in program_costs)
        print(f"| {name} | {1000 * median_run:.1f} ms | {_cells(program_costs)} |")
    one = f"{sum(cost.run for cost in costs):.2g} s"
    before = f"{sum(cost.before for cost in costs):.2g} s"
    now = f"{sum(cost.now for cost in costs):.2g} s"
    print(f"\nThe whole corpus takes {one} for one run of each reference, {before} before, and {now} now.")
    print(f"{_numbers(cost.runs for cost in costs)} runs show how far an output moves, without a reference", end=" ")
    print(f"{_numbers(cost.own_runs for cost in costs)}.")


def _measure_large(name: str) -> Cost:
    """Measure a program in float32 on copies of its first input."""
    program = next(program for program in PROGRAMS if program.name == name)
    inputs = program.draw(SEED)
    first = next(iter(inputs))
    inputs[first] = np.concatenate([inputs[first]] * COPIES)
    return Judges(program, inputs, "float32", SEED).cost


def _cells(costs: Sequence[Cost]) -> str:
    """Return two table cells: all runs as a multiple of one run, by the rule before and now."""
    before, now = [cost.before / cost.run for cost in costs], [cost.now / cost.run for cost in costs]
    return f"{_multiples(before)} | {_multiples(now)}"


def _numbers(values: Iterable[int]) -> str:
    """List the distinct numbers."""
    return ", ".join(map(str, sorted(set(values))))


def _multiples(values: Sequence[float]) -> str:
    """Return the median, and the deciles of many values or the range of few."""
    if len(values) == 1:
        return f"{values[0]:.0f}"
    low, high = min(values), max(values)
    if len(values) >= MANY:
        deciles = statistics.quantiles(values, n=10)
        low, high = deciles[0], deciles[-1]
    return f"{statistics.median(values):.0f} ({low:.0f} to {high:.0f})"

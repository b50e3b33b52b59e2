"""List all numbers by name: those that are measured, and those that are derived from other fields of a result."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from accelbench.api.number import Number
from accelbench.api.numbers import MEASURED

DERIVED = (
    Number(
        "Baseline seconds divided by variant seconds; above 1 the variant is faster.",
        name="speedup",
        unit="times",
        metric="accelbench_speedup_ratio",
        expected=True,
        over_baseline=True,
        compared=True,
    ),
    Number(
        "Steps after which compiling has paid back, compared with the baseline.",
        name="paysBackSteps",
        unit="steps",
        expected=True,
        over_baseline=True,
        compared=True,
    ),
    Number(
        "Steady seconds per unit of work.", name="seconds", unit="s", metric="accelbench_step_seconds", expected=True
    ),
    Number("Seconds that compiling takes.", name="compileSeconds", unit="s", expected=True),
    Number(
        "Seconds that compiling takes in a new process with warm caches.",
        name="warmCompileSeconds",
        unit="s",
        expected=True,
    ),
    Number(
        "Compile time divided by the baseline's.",
        name="compileRatio",
        unit="times",
        expected=True,
        over_baseline=True,
    ),
    Number(
        "Time of the first call divided by that of a later one.", name="firstCallRatio", unit="times", expected=True
    ),
    Number(
        "Spread of the launches: the 95th percentile minus the 5th, divided by the median.",
        name="launchSpread",
        unit="share",
        expected=True,
    ),
    Number(
        "Peak memory divided by the baseline's.",
        name="peakMemoryRatio",
        unit="times",
        expected=True,
        over_baseline=True,
    ),
)
"""Numbers that are derived from other parts of a result."""
NUMBERS: Mapping[str, Number] = {number.name: number for number in (*DERIVED, *MEASURED.values())}
"""All numbers, by name."""

EXPECTED = tuple(name for name, number in NUMBERS.items() if number.expected)
KNOWN_AFTER_COMPILING = frozenset(
    number.name
    for number in NUMBERS.values()
    if number.expected and (number.fact.startswith(("executable.", "compiled.")) or number.name == "compileSeconds")
)
"""Numbers that an expectation may use for a program that is compiled for a target and does not run."""
if TYPE_CHECKING:
    ExpectedNumber = str
else:
    ExpectedNumber = Literal[EXPECTED]
"""The name of a number that an expectation can ask for."""

"""Show a claim's numbers as tables: times, observations, compiled programs. Pure.

All results of a kind share a table, so that cases of a sweep and several workloads are comparable.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from accelbench import figures
from accelbench.api.compiled import CompiledVariant
from accelbench.api.numbers import Numbers
from accelbench.api.observation import NOTHING, Observations
from accelbench.api.result import Result, VariantResult
from accelbench.claims import suite
from accelbench.claims.ledger import Claim
from accelbench.claims.settle import MeasuredRun
from accelbench.claims.words import distinguishing_name, parameters_of, short, times
from accelbench.report.markdown import escaped, markdown_table
from accelbench.report.targets import ESTIMATE
from accelbench.verdict.redaction import redact_invalid, step_seconds

Row = tuple[str, ...]


def of_runs(runs: Sequence[MeasuredRun], claim: Claim) -> list[str]:
    """Return a table for each kind of result; for a claim about a suite, of the compared variants only."""
    results = [redact_invalid(result) for run in runs for result in run.results]
    if claim.over:
        results = [suite.with_baseline(result, claim.over) for result in results]
    if claim.compared:
        results = [_with_variants(result, claim.compared) for result in results]
    compiled = [result for result in results if result.compiled]
    observed = [result for result in results if result.observations]
    timed = [result for result in results if not result.compiled and not result.observations]
    return [*_sizes(results), *_timed(timed), *_observed(observed), *_compiled(compiled)]


def _sizes(results: Sequence[Result]) -> list[str]:
    """List each workload's parameters, defaults included, without those that a sweep varies."""
    lines = []
    for result in results:
        fixed = ", ".join(
            f"{name} {value}" for name, value in parameters_of(result).items() if name not in result.case.swept
        )
        precision = result.case.measurement.precision
        lines.append(f"{result.case.workload}: {', '.join(filter(None, [fixed, precision]))}.")
    return [" ".join(escaped(line) for line in dict.fromkeys(lines))] if lines else []


def _with_variants(result: Result, compared: frozenset[str]) -> Result:
    """Return the result with the compared variants and the baseline only."""
    names = {*compared, result.case.baseline}
    return result.model_copy(
        update={"variants": tuple(variant for variant in result.variants if variant.name in names)}
    )


def _timed(results: Sequence[Result]) -> list[str]:
    """Return a table for each baseline."""
    return [
        _table_of_times(baseline, results) for baseline in dict.fromkeys(result.case.baseline for result in results)
    ]


def _table_of_times(baseline: str, results: Sequence[Result]) -> str:
    """Return the table of all results with this baseline."""
    rows = [
        row
        for result in results
        if result.case.baseline == baseline
        for row in _times(result, distinguishing_name(result, results))
    ]
    heading = f"against {baseline}" if any(row[3] for row in rows) else ""
    heads = ("what", "variant", "time", heading, "compiling", "first call, compiling included", "memory", "power")
    return _table((*heads, *NUMBER_COLUMNS), rows, right={2, 4, 5, 6, 7, 8, 9})


def _times(result: Result, name: str) -> Iterable[Row]:
    """Yield a row for each variant."""
    for variant in result.variants:
        costs = _compiling(variant), _first_call(variant), _memory(variant), _power(variant)
        counted = (read(variant.numbers) for read in NUMBER_COLUMNS.values())
        yield name, variant.name, _time(result, variant), _against_baseline(result, variant), *costs, *counted


def _time(result: Result, variant: VariantResult) -> str:
    """Return the time per unit, or why there is none."""
    if time := step_seconds(variant):
        return f"{figures.seconds(time, 2)} per {result.unit}"
    compared = any(
        comparison.speedup and variant.name in {comparison.variant, comparison.baseline}
        for comparison in result.comparisons
    )
    return "not kept, its ratio is" if compared else "not measured"


def _against_baseline(result: Result, variant: VariantResult) -> str:
    """Return the comparison with the baseline, or why there is none."""
    if variant.name == result.case.baseline:
        return "baseline" if len(result.variants) > 1 else ""
    comparison = next((one for one in result.comparisons if one.variant == variant.name), None)
    if comparison is None or comparison.speedup is None or comparison.lower is None or comparison.upper is None:
        return f"invalid: {figures.listed(comparison.invalid)}" if comparison and comparison.invalid else "not compared"
    return times(float(comparison.speedup), float(comparison.lower), float(comparison.upper))


def _compiling(variant: VariantResult) -> str:
    """Format the compile time; empty for what is not compiled, whose phase has no parts."""
    phase = next((phase for phase in variant.phases if phase.phase == "compile" and phase.parts), None)
    return figures.seconds(float(phase.median_seconds), 2) if phase else ""


def _first_call(variant: VariantResult) -> str:
    phases = [float(phase.median_seconds) for phase in variant.phases if phase.phase in {"compile", "first-step"}]
    return figures.seconds(sum(phases), 2) if phases else ""


def _memory(variant: VariantResult) -> str:
    peak = variant.numbers.peak_memory_bytes
    return "" if peak is None else figures.quantity(peak, "B")


def _power(variant: VariantResult) -> str:
    """Format the device's mean power while it measured."""
    joules, time = variant.numbers.device_joules_per_unit, step_seconds(variant)
    return figures.quantity(float(joules) / time, "W") if joules is not None and time else ""


def _observed(results: Sequence[Result]) -> list[str]:
    """Return a table with a row for each variant and a column for each observation."""
    if not results:
        return []
    observations = [observed for result in results for observed in result.observations]
    names = [
        name
        for name in dict.fromkeys(observation.name for observed in observations for observation in observed.found)
        if _has_column(name, observations)
    ]
    rows = [
        (
            distinguishing_name(result, results),
            observed.variant,
            *((one.text if (one := observed.find(name)) else "") for name in names),
        )
        for result in results
        for observed in result.observations
    ]
    heads = (OBSERVATION_HEADS.get(name, name) for name in names)
    return [_table(("what", "variant", *heads), rows, right=set())]


def _has_column(name: str, observations: Sequence[Observations]) -> bool:
    """Return True if the observation is worth a column: not `calls`, and not an exception that never occurred."""
    texts = {one.text for observation in observations if (one := observation.find(name))}
    return name != "calls" and not (name in {"raised", "raisedCalls", "message"} and texts <= {NOTHING, "0"})


OBSERVATION_HEADS = {"compilationsByCall": "compilations, call by call", "raisedCalls": "calls that raised"}
"""Names of observations on the page, where their own are unclear."""
NUMBER_COLUMNS: Mapping[str, Callable[[Numbers], str]] = {
    "matrix products": lambda numbers: _count(numbers.products_per_call),
    "error over tolerance": lambda numbers: "" if numbers.parity is None else short(float(numbers.parity)),
}
MAXIMUM_FUSIONS = 3
"""Number of fusions to name."""
PROGRAM_COLUMNS: Mapping[str, tuple[str, Callable[[Numbers], str]]] = {
    "operations": ("programSize", lambda numbers: _count(numbers.program_size)),
    "kernels": ("kernels", lambda numbers: _count(numbers.kernels)),
    "temporary": ("temporaryBytes", lambda numbers: _bytes(numbers.temporary_bytes)),
    "outputs that reuse arguments": ("aliasedBytes", lambda numbers: _bytes(numbers.aliased_bytes)),
    "most at once": ("peakBytes", lambda numbers: _bytes(numbers.peak_bytes)),
}
"""Columns of compiled programs: the number's name, and its format."""


def _compiled(results: Sequence[Result]) -> list[str]:
    """Return a table with a row for each compiled program."""
    if not results:
        return []
    rows = [
        (
            distinguishing_name(result, results),
            compiled.target,
            compiled.variant,
            *(_marked_if_estimated(compiled, name, read(variant.numbers)) for name, read in PROGRAM_COLUMNS.values()),
            _fused(compiled.fused),
        )
        for result in results
        for compiled in result.compiled
        for variant in result.variants
        if variant.name == compiled.variant
    ]
    heads = ("what", "compiled for", "variant", *PROGRAM_COLUMNS, "what was fused")
    return [_table(heads, rows, right={3, 4, 5, 6, 7})]


def _marked_if_estimated(compiled: CompiledVariant, name: str, text: str) -> str:
    """Add a sign to a number that can only be estimated without the device."""
    return f"{ESTIMATE}{text}" if text and name in compiled.estimates else text


def _fused(kinds: Sequence[str]) -> str:
    """Return the first `MAXIMUM_FUSIONS` kinds, and how many more there are."""
    more = len(kinds) - MAXIMUM_FUSIONS
    others = [f"{more} more kinds" if more > 1 else "1 more kind"] if more > 0 else []
    return "; ".join([*kinds[:MAXIMUM_FUSIONS], *others])


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _bytes(value: int | None) -> str:
    return "" if value is None else figures.quantity(value, "B")


def _table(heads: Row, rows: Sequence[Row], *, right: set[int]) -> str:
    """Return the table without its empty columns."""
    columns = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    return markdown_table(
        tuple(heads[number] for number in columns),
        [tuple(row[number] for number in columns) for row in rows],
        right={place for place, number in enumerate(columns) if number in right},
    )

"""The numbers of a claim as tables for the page: of times, of what was observed, of what was compiled. Pure.

One table for all results of a kind, so that a sweep's cases and several workloads stand under each other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from accelbench import figures
from accelbench.api.compiled import Compiled
from accelbench.api.numbers import Numbers
from accelbench.api.observation import NOTHING, Observations
from accelbench.api.result import Result, VariantResult
from accelbench.claims import suite
from accelbench.claims.ledger import Claim
from accelbench.claims.settle import MeasuredRun
from accelbench.claims.words import given, short, times, whose
from accelbench.report.markdown import escaped, markdown_table
from accelbench.report.targets import ESTIMATE
from accelbench.verdict.redaction import redact_invalid, step_seconds

Row = tuple[str, ...]


def of(runs: Sequence[MeasuredRun], claim: Claim) -> list[str]:
    """Each kind that there is; of a claim about a suite only the variants that it compares."""
    results = [redact_invalid(result) for run in runs for result in run.results]
    if claim.over:
        results = [suite.against(result, claim.over) for result in results]
    if claim.compared:
        results = [_only(result, claim.compared) for result in results]
    compiled = [result for result in results if result.compiled]
    observed = [result for result in results if result.observations]
    timed = [result for result in results if not result.compiled and not result.observations]
    return [*_sizes(results), *_timed(timed), *_observed(observed), *_compiled(compiled)]


def _sizes(results: Sequence[Result]) -> list[str]:
    """What each workload was given, defaults included; a sweep's values stand in its table."""
    lines = []
    for result in results:
        fixed = ", ".join(f"{name} {value}" for name, value in given(result).items() if name not in result.case.swept)
        precision = result.case.measurement.precision
        lines.append(f"{result.case.workload}: {', '.join(filter(None, [fixed, precision]))}.")
    return [" ".join(escaped(line) for line in dict.fromkeys(lines))] if lines else []


def _only(result: Result, compared: frozenset[str]) -> Result:
    kept = {*compared, result.case.baseline}
    return result.model_copy(update={"variants": tuple(each for each in result.variants if each.name in kept)})


def _timed(results: Sequence[Result]) -> list[str]:
    """A table for each baseline."""
    return [_against(baseline, results) for baseline in dict.fromkeys(result.case.baseline for result in results)]


def _against(baseline: str, results: Sequence[Result]) -> str:
    rows = [
        row for result in results if result.case.baseline == baseline for row in _times(result, whose(result, results))
    ]
    beside = f"beside {baseline}" if any(row[3] for row in rows) else ""
    heads = ("what", "variant", "time", beside, "compiling", "first call, compiling included", "memory", "power")
    return _table((*heads, *COUNTED), rows, right={2, 4, 5, 6, 7, 8, 9})


def _times(result: Result, name: str) -> Iterable[Row]:
    for variant in result.variants:
        costs = _compiling(variant), _first_call(variant), _memory(variant), _power(variant)
        counted = (read(variant.numbers) for read in COUNTED.values())
        yield name, variant.name, _time(result, variant), _beside(result, variant), *costs, *counted


def _time(result: Result, variant: VariantResult) -> str:
    if time := step_seconds(variant):
        return f"{figures.seconds(time, 2)} per {result.unit}"
    compared = any(each.speedup and variant.name in {each.variant, each.baseline} for each in result.comparisons)
    return "not kept, its ratio is" if compared else "not measured"


def _beside(result: Result, variant: VariantResult) -> str:
    if variant.name == result.case.baseline:
        return "baseline" if len(result.variants) > 1 else ""
    found = next((each for each in result.comparisons if each.variant == variant.name), None)
    if found is None or found.speedup is None or found.lower is None or found.upper is None:
        return f"invalid: {figures.listed(found.invalid)}" if found and found.invalid else "not compared"
    return times(float(found.speedup), float(found.lower), float(found.upper))


def _compiling(variant: VariantResult) -> str:
    """Empty for what is not compiled: its phase is there, and has no parts."""
    found = next((each for each in variant.phases if each.phase == "compile" and each.parts), None)
    return figures.seconds(float(found.median_seconds), 2) if found else ""


def _first_call(variant: VariantResult) -> str:
    phases = [float(each.median_seconds) for each in variant.phases if each.phase in {"compile", "first-step"}]
    return figures.seconds(sum(phases), 2) if phases else ""


def _memory(variant: VariantResult) -> str:
    found = variant.numbers.peak_memory_bytes
    return "" if found is None else figures.quantity(found, "B")


def _power(variant: VariantResult) -> str:
    """Mean, of the device while it measured."""
    joules, time = variant.numbers.device_joules_per_unit, step_seconds(variant)
    return figures.quantity(float(joules) / time, "W") if joules is not None and time else ""


def _observed(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    found = [observed for result in results for observed in result.observations]
    names = [
        name
        for name in dict.fromkeys(each.name for observed in found for each in observed.found)
        if _tells(name, found)
    ]
    rows = [
        (
            whose(result, results),
            observed.variant,
            *((one.text if (one := observed.named(name)) else "") for name in names),
        )
        for result in results
        for observed in result.observations
    ]
    heads = (OBSERVED.get(name, name) for name in names)
    return [_table(("what", "variant", *heads), rows, right=set())]


def _tells(name: str, found: Sequence[Observations]) -> bool:
    """Whether it is worth a column: how often was called is seen in the others, and that nothing raised is no news."""
    texts = {one.text for each in found if (one := each.named(name))}
    return name != "calls" and not (name in {"raised", "raisedCalls", "message"} and texts <= {NOTHING, "0"})


OBSERVED = {"compilationsByCall": "compilations, call by call", "raisedCalls": "calls that raised"}
"""What observations are called on the page, where their names say too little."""
COUNTED: Mapping[str, Callable[[Numbers], str]] = {
    "matrix products": lambda numbers: _count(numbers.products_per_call),
    "error over tolerance": lambda numbers: "" if numbers.parity is None else short(float(numbers.parity)),
}
KINDS = 3
"""Of fusions, that are named."""
COMPILED: Mapping[str, tuple[str, Callable[[Numbers], str]]] = {
    "operations": ("programSize", lambda numbers: _count(numbers.program_size)),
    "kernels": ("kernels", lambda numbers: _count(numbers.kernels)),
    "temporary": ("temporaryBytes", lambda numbers: _bytes(numbers.temporary_bytes)),
    "outputs that reuse arguments": ("aliasedBytes", lambda numbers: _bytes(numbers.aliased_bytes)),
    "most at once": ("peakBytes", lambda numbers: _bytes(numbers.peak_bytes)),
}
"""Columns of what a compiler says: the number's name, and how it is read."""


def _compiled(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    rows = [
        (
            whose(result, results),
            found.target,
            found.variant,
            *(_told(found, name, read(variant.numbers)) for name, read in COMPILED.values()),
            _fused(found.fused),
        )
        for result in results
        for found in result.compiled
        for variant in result.variants
        if variant.name == found.variant
    ]
    heads = ("what", "compiled for", "variant", *COMPILED, "what was fused")
    return [_table(heads, rows, right={3, 4, 5, 6, 7})]


def _told(found: Compiled, name: str, text: str) -> str:
    """With a sign where a compiler without the device can only estimate it."""
    return f"{ESTIMATE}{text}" if text and name in found.estimates else text


def _fused(kinds: Sequence[str]) -> str:
    more = len(kinds) - KINDS
    others = [f"{more} more kinds" if more > 1 else "1 more kind"] if more > 0 else []
    return "; ".join([*kinds[:KINDS], *others])


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _bytes(value: int | None) -> str:
    return "" if value is None else figures.quantity(value, "B")


def _table(heads: Row, rows: Sequence[Row], *, right: set[int]) -> str:
    """Without the columns in which nothing stands."""
    kept = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    return markdown_table(
        tuple(heads[number] for number in kept),
        [tuple(row[number] for number in kept) for row in rows],
        right={place for place, number in enumerate(kept) if number in right},
    )

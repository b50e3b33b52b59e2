"""Show the results of a claim as tables: times, observations, compiled programs. Pure.

All results of one kind are in one table, so that readers can compare the cases of a sweep and several workloads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from accelbench import figures
from accelbench.api.compiled import CompiledVariant
from accelbench.api.numbers import Numbers
from accelbench.api.observation import NOTHING, Observations
from accelbench.api.result import Result, VariantResult
from accelbench.claims import suite
from accelbench.claims.answers import describe_speedup
from accelbench.claims.ledger import Claim
from accelbench.claims.settle import MeasuredRun
from accelbench.claims.words import brief, distinguishing_name, parameters_of, short
from accelbench.report.markdown import escape, markdown_table
from accelbench.report.targets import ESTIMATE
from accelbench.verdict.redaction import redact_invalid, step_seconds

Row = tuple[str, ...]
"""Cells of a table's row."""
OBSERVATION_HEADS = {"compilationsByCall": "compilations, call by call", "raisedCalls": "calls that raised"}
"""Headings of the columns whose observation's name is unclear."""
COMPARISON_COLUMN = 3
"""Index of the column that compares with the baseline, in `_time_table` and in `_brief_time_table`."""
NUMBER_COLUMNS: Mapping[str, Callable[[Numbers], str]] = {
    "matrix products": lambda numbers: _format_count(numbers.products_per_call),
    "error over tolerance": lambda numbers: "" if numbers.parity is None else short(float(numbers.parity)),
}
"""Further columns of times: the heading, and the format of the value."""
MAXIMUM_FUSIONS = 3
"""Maximum number of kinds of fusion that a row names."""
PROGRAM_COLUMNS: Mapping[str, tuple[str, Callable[[Numbers], str]]] = {
    "operations": ("programSize", lambda numbers: _format_count(numbers.program_size)),
    "kernels": ("kernels", lambda numbers: _format_count(numbers.kernels)),
    "temporary": ("temporaryBytes", lambda numbers: _format_bytes(numbers.temporary_bytes)),
    "outputs that reuse arguments": ("aliasedBytes", lambda numbers: _format_bytes(numbers.aliased_bytes)),
    "most at once": ("peakBytes", lambda numbers: _format_bytes(numbers.peak_bytes)),
}
"""Columns of compiled programs: for each heading, the name of the value and its format."""
_BRIEF_COLUMNS = ("kernels", "temporary", "most at once")
"""Columns of compiled programs on the main page, for a row about memory."""


def run_tables(runs: Sequence[MeasuredRun], claim: Claim) -> list[str]:
    """Return paragraphs of Markdown: the parameters of these runs, then a table for each kind of result.

    The tables show only the variants that the claim compares, against the claim's baseline if it names one.
    """
    results = _shown_results(runs, claim)
    compiled_results = [result for result in results if result.compiled]
    observed_results = [result for result in results if result.observations]
    timed_results = [result for result in results if not result.compiled and not result.observations]
    return [
        *_parameters(results),
        *_time_tables(timed_results),
        *_observation_table(observed_results),
        *_program_table(compiled_results, tuple(PROGRAM_COLUMNS)),
    ]


def brief_tables(runs: Sequence[MeasuredRun], claim: Claim) -> list[str]:
    """Return the tables of the main page: times and compiled programs, with only the columns that answers need.

    Observations have no table here, because the findings name them.
    """
    results = _shown_results(runs, claim)
    timed_results = [result for result in results if not result.compiled and not result.observations]
    tables = [
        _brief_time_table(baseline, timed_results, with_memory=claim.memory)
        for baseline in dict.fromkeys(result.case.baseline for result in timed_results)
    ]
    compiled_results = [result for result in results if result.compiled]
    return [*tables, *_program_table(compiled_results, _BRIEF_COLUMNS if claim.memory else ("kernels",))]


def _shown_results(runs: Sequence[MeasuredRun], claim: Claim) -> list[Result]:
    """Return the results without invalid times, and with only the variants that the claim compares.

    If the claim names a baseline for its tables, variants are compared with this baseline.
    """
    results = [redact_invalid(result) for run in runs for result in run.results]
    if claim.table_baseline:
        results = [suite.with_baseline(result, claim.table_baseline) for result in results]
    if claim.compared_variants:
        results = [_with_variants(result, claim.compared_variants) for result in results]
    return results


def _brief_time_table(baseline: str, results: Sequence[Result], *, with_memory: bool) -> str:
    """Return the times of the results with this baseline: per unit, against the baseline, and of the first call.

    `with_memory` adds a column of memory. `results` has all timed results, because a row's name distinguishes it from
    those in other tables, too.
    """
    shown_results = [result for result in results if result.case.baseline == baseline]
    units = dict.fromkeys(result.unit for result in shown_results)
    rows: list[Row] = []
    for result in shown_results:
        for variant in result.variants:
            seconds = step_seconds(variant)
            rows.append(
                (
                    distinguishing_name(result, results),
                    variant.name,
                    figures.seconds(seconds, 2) if seconds else "not measured",
                    brief(_comparison_text(result, variant)),
                    _first_call(variant),
                    _first_call_with_cache(variant),
                    _format_bytes(variant.numbers.peak_memory_bytes) if with_memory else "",
                )
            )
    comparison_head = f"against {baseline}" if any(row[COMPARISON_COLUMN] for row in rows) else ""
    heads = ("what", "variant", f"time per {' or '.join(units)}", comparison_head, "first call", "cached", "memory")
    text_columns = {0, 1, COMPARISON_COLUMN}  # the others have numbers, which are aligned at the right
    return _table(heads, rows, right=set(range(len(heads))) - text_columns)


def _first_call_with_cache(variant: VariantResult) -> str:
    """Format the median time of the first call in a process that finds compiled programs in a cache on disk.

    Empty if no launch read a cache.
    """
    phases = [phase for phase in variant.warm_phases if phase.phase in {"compile", "first-step"}]
    seconds = sum(float(phase.median_seconds) for phase in phases)
    return figures.seconds(seconds, 2) if phases else ""


def _parameters(results: Sequence[Result]) -> list[str]:
    """Return a paragraph with the parameters and the precision of each workload, or nothing without results.

    Swept parameters are left out: the tables name their values.
    """
    lines = []
    for result in results:
        swept = result.case.swept
        settings = [f"{name} {value}" for name, value in parameters_of(result).items() if name not in swept]
        if result.case.measurement.precision:
            settings.append(result.case.measurement.precision)
        lines.append(f"{result.case.workload}: {', '.join(settings)}.")
    return [" ".join(escape(line) for line in dict.fromkeys(lines))] if lines else []


def _with_variants(result: Result, compared_variants: frozenset[str]) -> Result:
    """Return the result with only the compared variants and the baseline."""
    names = {*compared_variants, result.case.baseline}
    return result.model_copy(
        update={"variants": tuple(variant for variant in result.variants if variant.name in names)}
    )


def _time_tables(results: Sequence[Result]) -> list[str]:
    """Return a table of times for each baseline of the results."""
    baselines = dict.fromkeys(result.case.baseline for result in results)
    return [_time_table(baseline, results) for baseline in baselines]


def _time_table(baseline: str, results: Sequence[Result]) -> str:
    """Return the table of times for those of the results that have this baseline.

    A row's name distinguishes its result from all `results`, also from those in other tables.
    """
    rows: list[Row] = []
    for result in results:
        if result.case.baseline == baseline:
            rows += _time_rows(result, distinguishing_name(result, results))
    has_comparison = any(row[COMPARISON_COLUMN] for row in rows)
    comparison_head = f"against {baseline}" if has_comparison else ""  # an empty column is left out
    heads = (
        "what",
        "variant",
        "time",
        comparison_head,
        "compiling",
        "first call, compiling included",
        "first call, cached",
        "memory",
        "power",
    )
    all_heads = (*heads, *NUMBER_COLUMNS)
    text_columns = {0, 1, COMPARISON_COLUMN}  # the others have numbers, which are aligned at the right
    return _table(all_heads, rows, right=set(range(len(all_heads))) - text_columns)


def _time_rows(result: Result, result_name: str) -> Iterable[Row]:
    """Yield a row for each variant, with the columns of `_time_table`."""
    for variant in result.variants:
        yield (
            result_name,
            variant.name,
            _time(result, variant),
            _comparison_text(result, variant),
            _compile_time(variant),
            _first_call(variant),
            _first_call_with_cache(variant),
            _format_bytes(variant.numbers.peak_memory_bytes),
            _power(variant),
            *(format_number(variant.numbers) for format_number in NUMBER_COLUMNS.values()),
        )


def _time(result: Result, variant: VariantResult) -> str:
    """Return the variant's time per unit of work, such as `1.2 ms per step`, or why there is none."""
    seconds = step_seconds(variant)
    if seconds:
        return f"{figures.seconds(seconds, 2)} per {result.unit}"
    has_speedup = any(
        comparison.speedup and variant.name in {comparison.variant, comparison.baseline}
        for comparison in result.comparisons
    )
    # A result can have a speedup without the times from which it was computed.
    return "not kept, only the speedup" if has_speedup else "not measured"


def _comparison_text(result: Result, variant: VariantResult) -> str:
    """Return the variant's speedup over the baseline, as `1.9 times as fast (1.6 to 2.2)`, or why there is none."""
    if variant.name == result.case.baseline:
        return "baseline" if len(result.variants) > 1 else ""
    comparison = next((comparison for comparison in result.comparisons if comparison.variant == variant.name), None)
    if comparison is None:
        return "not compared"
    if comparison.speedup is None:
        return f"invalid: {figures.join_names(comparison.invalid)}" if comparison.invalid else "not compared"
    return describe_speedup(comparison) or "not compared"


def _compile_only_time(variant: VariantResult) -> str:
    """Format the median time of compiling a program that was only compiled; empty without that phase."""
    phase = next((phase for phase in variant.phases if phase.phase == "compile"), None)
    return figures.seconds(float(phase.median_seconds), 2) if phase else ""


def _compile_time(variant: VariantResult) -> str:
    """Format the median compile time; empty if nothing was compiled."""
    # If nothing was compiled, the phase has no parts.
    phase = next((phase for phase in variant.phases if phase.phase == "compile" and phase.parts), None)
    return figures.seconds(float(phase.median_seconds), 2) if phase else ""


def _first_call(variant: VariantResult) -> str:
    """Format the median time of the first call, compiling included; empty if it was not measured."""
    seconds = [float(phase.median_seconds) for phase in variant.phases if phase.phase in {"compile", "first-step"}]
    return figures.seconds(sum(seconds), 2) if seconds else ""


def _power(variant: VariantResult) -> str:
    """Format the device's mean power; empty if it was not measured."""
    joules_per_unit, seconds_per_unit = variant.numbers.device_joules_per_unit, step_seconds(variant)
    if joules_per_unit is None or not seconds_per_unit:
        return ""
    return figures.quantity(float(joules_per_unit) / seconds_per_unit, "W")


def _observation_table(results: Sequence[Result]) -> list[str]:
    """Return a table of observations, with a row for each variant of each result; nothing without results."""
    if not results:
        return []
    all_observations = [observations for result in results for observations in result.observations]
    all_names = dict.fromkeys(
        observation.name for observations in all_observations for observation in observations.found
    )
    names = [name for name in all_names if _needs_column(name, all_observations)]
    rows = []
    for result in results:
        for observations in result.observations:
            row_observations = [observations.find(name) for name in names]
            texts = [observation.text if observation else "" for observation in row_observations]
            rows.append((distinguishing_name(result, results), observations.variant, *texts))
    heads = [OBSERVATION_HEADS.get(name, name) for name in names]
    return [_table(("what", "variant", *heads), rows, right=set())]


def _needs_column(name: str, all_observations: Sequence[Observations]) -> bool:
    """Return True if readers learn something from a column of the observation `name`.

    They learn nothing from the number of calls, nor from exceptions if no call raised one.
    """
    if name == "calls":  # always one for each batch
        return False
    if name not in {"raised", "raisedCalls", "message"}:
        return True
    column = [observations.find(name) for observations in all_observations]
    texts = {observation.text for observation in column if observation}
    no_call_raised = texts <= {NOTHING, "0"}  # the values of `raised` and `raisedCalls` in that case
    return not no_call_raised


def _program_table(results: Sequence[Result], columns: tuple[str, ...]) -> list[str]:
    """Return a table with a row for each compiled program; nothing without results.

    `columns` names columns of `PROGRAM_COLUMNS`. If it names all of them, the table also shows what was fused.
    """
    if not results:
        return []
    rows: list[Row] = []
    for result in results:
        result_name = distinguishing_name(result, results)
        variants = {variant.name: variant for variant in result.variants}
        programs = [program for program in result.compiled if program.variant in variants]
        rows += [_program_row(result_name, program, variants[program.variant], columns) for program in programs]
    heads: Row = ("what", "compiled for", "variant", *columns)
    if columns == tuple(PROGRAM_COLUMNS):
        heads = (*heads, "compiling", "what was fused")
    number_columns = {index for index, head in enumerate(heads) if head in {*PROGRAM_COLUMNS, "compiling"}}
    return [_table(heads, rows, right=number_columns)]


def _program_row(result_name: str, program: CompiledVariant, variant: VariantResult, columns: tuple[str, ...]) -> Row:
    """Return the table row of one compiled program, with these columns of `PROGRAM_COLUMNS`."""
    cells = []
    for value_name, format_value in (PROGRAM_COLUMNS[column] for column in columns):
        text = format_value(variant.numbers)
        is_estimate = value_name in program.estimates
        cells.append(f"{ESTIMATE}{text}" if text and is_estimate else text)
    if columns == tuple(PROGRAM_COLUMNS):  # then `_program_table` has two more columns
        cells += [_compile_only_time(variant), _list_fusions(program.fused)]
    return (result_name, program.target, program.variant, *cells)


def _list_fusions(kinds: Sequence[str]) -> str:
    """Join the first kinds of fusion, and say how many more there are: `add; multiply; 2 more kinds`."""
    texts = list(kinds[:MAXIMUM_FUSIONS])
    omitted_count = len(kinds) - MAXIMUM_FUSIONS
    if omitted_count > 0:
        texts.append(f"{omitted_count} more kinds" if omitted_count > 1 else "1 more kind")
    return "; ".join(texts)


def _format_count(value: int | None) -> str:
    """Format a count; empty if not measured."""
    return "" if value is None else f"{value:,}"


def _format_bytes(value: int | None) -> str:
    """Format a number of bytes as MB or GB; empty if not measured."""
    return "" if value is None else figures.quantity(value, "B")


def _table(heads: Row, rows: Sequence[Row], *, right: set[int]) -> str:
    """Return a Markdown table without its empty columns.

    `right` has the original indices of the columns to align on the right.
    """
    columns = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    return markdown_table(
        tuple(heads[column] for column in columns),
        [tuple(row[column] for column in columns) for row in rows],
        right={new_index for new_index, column in enumerate(columns) if column in right},
    )

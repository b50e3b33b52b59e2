"""Turn a result into sentences and tables of text, which every report paints. Pure.

Nothing is computed that the result does not state; numbers are only formatted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from accelbench import figures
from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Comparison, Phase, Result, VariantResult
from accelbench.report import advice
from accelbench.report.table import Bounds, Table, TableColumn, filled
from accelbench.stats.interval import MINIMUM_PAIRS
from accelbench.stats.summary import TIME, geometric_mean
from accelbench.verdict.redaction import compared_seconds, rejections, step_seconds

PHASES: tuple[Phase, ...] = get_args(Phase)
MAXIMUM_SENTENCES = 3
"""Most sentences of a finding."""
SENTENCE_ENDS = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
SHORTEST_PHASE_SECONDS = 0.001
"""Shorter phases are shown as `< 1 ms`: an eager variant's compile phase is only two readings of the clock."""


@dataclass(frozen=True)
class VariantRow:
    """Describe a variant's line in a verdict table; a text is empty if there is nothing to show."""

    name: str
    seconds: str
    spread: str
    verdict: str
    """`baseline`, one of the four verdicts, `invalid: CHECK`, `failed: REASON`, why there is no interval, or empty."""
    comparison: Comparison | None = None

    @property
    def bounds(self) -> Bounds | None:
        """Return the speedup's interval; None without one."""
        comparison = self.comparison
        if comparison is None or not (comparison.speedup and comparison.lower and comparison.upper):
            return None
        return Bounds(float(comparison.lower), float(comparison.speedup), float(comparison.upper))

    @property
    def speedup(self) -> str:
        """Return the speedup as text."""
        return figures.speedup(self.bounds.estimate) if self.bounds else ""

    @property
    def interval(self) -> str:
        """Return the interval as text."""
        return figures.interval(self.bounds.lower, self.bounds.upper) if self.bounds else ""


@dataclass(frozen=True)
class ObservationRow:
    """Describe one observation of one variant; `differs` is True if launches do not agree."""

    variant: str
    name: str
    value: str
    differs: bool


def title(case: Case, *, all_cases: bool = False) -> str:
    """Return the case in one line: workload, parameters, precision, profile or target.

    With `all_cases`, it describes all cases of a run that was compiled for targets, without what the sweep varies.
    """
    shared = {name: value for name, value in case.parameters.items() if not (all_cases and name in case.swept)}
    parameters = ", ".join(f"{name} {value}" for name, value in shared.items())
    what = f"{case.workload} ({parameters})" if parameters else case.workload
    if all_cases:
        return f"{what}, {case.measurement.precision}, compiled and not run"
    return f"{what}, {case.measurement.precision}, {case.accelerator.label}"


def state(result: Result) -> str:
    """Return a warning that the result is incomplete or empty; an empty text if it is neither."""
    if result.complete:
        return basis(result) if nothing_measured(result) else ""
    words: dict[StopReason | None, str] = {
        StopReason.INTERRUPTED: "interrupted",
        StopReason.TIME_LIMIT_REACHED: "out of time",
    }
    why = words.get(result.stopped, "not finished")
    if nothing_measured(result):
        return f"partial: {why}; no round was complete, so there is nothing to show"
    rounds = "1 complete round" if result.rounds == 1 else f"{result.rounds} complete rounds"
    return f"partial: {why}; the numbers are from {rounds}"


def nothing_measured(result: Result) -> bool:
    """Return True if there is nothing to put into a table: no launch that counts, no failure, no check."""
    measured = any(variant.launches or variant.seconds or variant.failure for variant in result.variants)
    return not (measured or result.certificate.checks or result.observations or result.compiled)


def sentences(result: Result) -> tuple[str, ...]:
    """Return the findings; of more than `MAXIMUM_SENTENCES` comparisons, a count, the surest and the least sure."""
    return () if nothing_measured(result) else _findings(result)


def _findings(result: Result) -> tuple[str, ...]:
    """Return the findings of a result in which something was measured."""
    comparisons = result.ranked_comparisons
    if result.observations:
        return tuple(f"{observations.headline}." for observations in result.observations)
    if not comparisons and result.variants:
        names = ", ".join(variant.name for variant in result.variants)
        return (f"{names}: measured alone, compared with nothing.",) if len(result.variants) == 1 else ()
    if len(comparisons) > 1 and all(comparison.invalid for comparison in comparisons):
        return _no_speedups(comparisons)
    if len(comparisons) <= MAXIMUM_SENTENCES:
        return _without_repetitions(comparison.sentence for comparison in comparisons)
    ranked = [comparison for comparison in comparisons if comparison.verdict or comparison.noisy]
    if not ranked:
        return _no_speedups(comparisons)
    counts = Counter(
        comparison.verdict or ("noisy" if comparison.noisy else "without a verdict") for comparison in comparisons
    )
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}"
        for verdict in ("faster", "slower", "equivalent", "inconclusive", "noisy", "without a verdict")
        if counts[verdict]
    )
    against = f"Of {len(comparisons)} variants against {comparisons[0].baseline}: {verdicts}."
    return _without_repetitions((ranked[0].sentence, against, *(last.sentence for last in ranked[1:][-1:])))


def _without_repetitions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts without sentences of earlier ones, such as those about a baseline that comparisons share."""
    seen: set[str] = set()
    unique = []
    for text in texts:
        parts = [part for part in SENTENCE_ENDS.split(text) if part not in seen]
        seen.update(parts)
        unique.append(" ".join(parts))
    return tuple(filter(None, unique))


def _no_speedups(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return why none of several comparisons has a speedup, in one sentence instead of theirs."""
    failed = Counter(name for comparison in comparisons for name in comparison.invalid)
    if not failed:
        return tuple(dict.fromkeys(comparison.sentence for comparison in comparisons))[:MAXIMUM_SENTENCES]
    total = len(comparisons)
    names = ", ".join(name if count == total else f"{name} ({count})" for name, count in failed.most_common())
    none = "is valid" if all(comparison.invalid for comparison in comparisons) else "has a verdict"
    which = "The check that failed" if len(failed) == 1 else "The checks that failed"
    return (f"None of {total} comparisons with {comparisons[0].baseline} {none}. {which}: {names}.",)


def verdict_table(result: Result) -> Table:
    """Return the table of variants with times, speedups and verdicts."""
    rows = variant_rows(result)
    columns: tuple[tuple[TableColumn, Callable[[VariantRow], str]], ...] = (
        (TableColumn("variant"), lambda row: row.name),
        (TableColumn(f"time per\n{result.unit}", number=True), lambda row: row.seconds),
        (TableColumn("spread", number=True, kind="aside"), lambda row: row.spread),
        (TableColumn("speedup", number=True), lambda row: row.speedup),
        (TableColumn("interval", kind="nowrap"), lambda row: row.interval),
        (TableColumn("verdict", kind="verdict"), lambda row: row.verdict),
    )
    return Table(
        f"Variants against {result.case.baseline}",
        tuple(column for column, _ in columns),
        tuple(tuple(text(row) for _, text in columns) for row in rows),
        intervals=tuple(row.bounds for row in rows),
    )


def variant_rows(result: Result) -> tuple[VariantRow, ...]:
    """Return the rows of the verdict table, the baseline first, the others in the manifest's order."""
    return _rows(result, result.comparisons, {one.name: step_seconds(one) for one in result.variants})


def compared_rows(result: Result) -> tuple[VariantRow, ...]:
    """Return a row for each comparison; for the protocol latency, a variant's 99th percentile follows its median."""
    rows = [row for row in variant_rows(result) if row.name != result.case.baseline]
    if not result.tail_comparisons:
        return tuple(rows)
    tails = {row.name: row for row in tail_rows(result) if row.comparison}
    quantiles = []
    for row in rows:
        quantiles.append(replace(row, name=f"{row.name} p50"))
        if row.name in tails:
            quantiles.append(replace(tails[row.name], name=f"{row.name} p99"))
    return tuple(quantiles)


def tail_rows(result: Result) -> tuple[VariantRow, ...]:
    """Return the rows for the 99th percentile of calls; empty if the protocol is not latency."""
    percentiles = {}
    for variant in result.variants:
        times = [float(launch.p99_seconds) for launch in variant.launches if launch.p99_seconds]
        if times:
            percentiles[variant.name] = geometric_mean(times)
    rows = _rows(result, result.tail_comparisons, percentiles)
    return tuple(row for row in rows if row.name in percentiles)


def _rows(
    result: Result, comparisons: Sequence[Comparison], seconds: Mapping[str, float | None]
) -> tuple[VariantRow, ...]:
    """Return a row for each variant; times have enough digits that dividing them gives the speedups."""
    compared = {comparison.variant: comparison for comparison in comparisons}
    digits = figures.digits_that_agree(
        (before, after, float(comparison.speedup))
        for comparison in comparisons
        if comparison.speedup and not _has_unpaired_rounds(result, comparison)
        if (before := seconds.get(comparison.baseline)) and (after := seconds.get(comparison.variant))
    )
    return tuple(
        _row(result, variant, compared.get(variant.name), seconds.get(variant.name), digits)
        for variant in baseline_first(result)
    )


def _has_unpaired_rounds(result: Result, comparison: Comparison) -> bool:
    """Return True if the sides have launches of different rounds; then the speedup is not the ratio of their times."""
    rounds = {variant.name: {launch.round for launch in variant.launches} for variant in result.variants}
    return rounds.get(comparison.baseline) != rounds.get(comparison.variant)


def baseline_first(result: Result) -> tuple[VariantResult, ...]:
    """Return the variants, the baseline first, the others in the manifest's order."""
    return tuple(sorted(result.variants, key=lambda variant: variant.name != result.case.baseline))


def _row(
    result: Result, variant: VariantResult, comparison: Comparison | None, seconds: float | None, digits: int
) -> VariantRow:
    """Return a variant's row; the spread is empty for a single launch."""
    quantiles, spread = variant.seconds, ""
    if quantiles is not None and len(variant.launches) > 1:
        half_range = (float(quantiles.p95_seconds) - float(quantiles.p5_seconds)) / 2
        spread = figures.spread(half_range / float(quantiles.geometric_mean_seconds))
    return VariantRow(
        name=variant.name,
        seconds="" if seconds is None else figures.seconds(seconds, digits),
        spread=spread,
        verdict=_verdict(result, variant, comparison),
        comparison=comparison,
    )


def _verdict(result: Result, variant: VariantResult, comparison: Comparison | None) -> str:
    """Return the text of `VariantRow.verdict`."""
    if variant.failure is not None:
        return f"failed: {variant.failure.reason}"
    if variant.name == result.case.baseline:
        rejected = rejections(result, variant) if result.certificate.checks else ()
        return f"baseline, invalid: {', '.join(rejected)}" if rejected else "baseline"
    if comparison is None:
        return "" if variant.launches else "not measured"
    if comparison.invalid:
        return f"invalid: {', '.join(comparison.invalid)}"
    return comparison.verdict or ("noisy" if comparison.noisy else _no_interval(result, comparison))


def _no_interval(result: Result, comparison: Comparison) -> str:
    """Return why a valid comparison has no interval."""
    if not comparison.rounds:
        failed = any(variant.name == comparison.baseline and variant.failure for variant in result.variants)
        return "not compared" if failed else "no complete round"
    return "too few rounds" if comparison.rounds < MINIMUM_PAIRS else "rounds differ too much"


def observation_rows(result: Result) -> tuple[ObservationRow, ...]:
    """Return everything that was observed, variant by variant; empty if the case was timed."""
    return tuple(
        ObservationRow(observations.variant, one.name, one.text, differs=len(one.values) > 1)
        for observations in result.observations
        for one in observations.found
        if not (one.name == "raisedCalls" and one.text == "0")  # it repeats `raised: nothing`
    )


def observation_table(result: Result) -> Table | None:
    """Return the table of everything that was observed; None if the case was timed."""
    columns = (TableColumn("variant"), TableColumn("observed"), TableColumn("value"))
    rows = tuple((row.variant, row.name, row.value) for row in observation_rows(result))
    return filled("What each variant did", columns, rows)


def phases_shown(result: Result) -> tuple[Phase, ...]:
    """Return the phases that any variant reached, in the order of a launch."""
    seen = {time.phase for variant in result.variants for time in variant.phases}
    return tuple(phase for phase in PHASES if phase in seen)


def phase_table(result: Result) -> Table | None:
    """Return the median seconds of each phase, a row for each variant; None if no variant reached one."""
    shown = phases_shown(result)
    columns = (TableColumn("variant"), *(TableColumn(phase, number=True) for phase in shown))
    rows = []
    for variant in baseline_first(result):
        times = {time.phase: phase_seconds(float(time.median_seconds)) for time in variant.phases}
        if times:
            rows.append((variant.name, *(times.get(phase, "") for phase in shown)))
    return Table("Phases of a launch", columns, tuple(rows)) if rows else None


def phase_seconds(seconds: float) -> str:
    """Return a phase's seconds as text."""
    return figures.seconds(seconds) if seconds >= SHORTEST_PHASE_SECONDS else "< 1 ms"


def remarks(result: Result) -> tuple[str, ...]:
    """Return sentences about disturbed rounds and missing verdicts, with advice."""
    return (*advice.on_disturbed_rounds(result), *advice.on_missing_verdicts(result))


def _why_stopped(result: Result, stopped: StopReason) -> str:
    """Return why there were no more rounds; empty if that is clear."""
    limit = f"{result.case.measurement.time_limit_seconds} s"
    rounds = result.rounds + len(result.quarantined)
    taken = float(result.overhead.get("total", 0))
    about = f" (about {figures.duration(taken / rounds)})" if rounds and taken else ""
    return {
        StopReason.TARGET_MET: "" if result.observations else "target met",
        StopReason.MAXIMUM_ROUNDS_REACHED: "the maximum",
        StopReason.TIME_LIMIT_REACHED: f"time limit of {limit} reached",
        StopReason.NO_TIME_FOR_ROUND: f"another round{about} would not fit the limit of {limit}",
        StopReason.INTERRUPTED: "interrupted",
        StopReason.NOTHING_TO_COMPARE: "nothing left to compare",
    }[stopped]


def basis(result: Result) -> str:
    """Return the number of rounds, why there were no more, the confidence, and the wall time."""
    rounds = "1 round" if result.rounds == 1 else f"{result.rounds} rounds" if result.rounds else "no valid round"
    why = _why_stopped(result, result.stopped) if result.stopped else ""
    words = [f"{rounds}: {why}" if "(" in why else f"{rounds} ({why})" if why else rounds]
    if result.quarantined:
        words.append(f"{len(result.quarantined)} discarded")
    if result.observations:
        words.append("nothing timed")
    if any(comparison.lower for comparison in result.comparisons):
        confidence = figures.percent(float(result.case.measurement.confidence))
        words.append(f"{confidence} confidence over all comparisons")
    if total := result.overhead.get("total"):
        words.append(figures.duration(float(total)))
    return ", ".join(words)


def time_notes(result: Result) -> tuple[str, ...]:
    """Return what the times are, and which of them do not divide to a speedup; empty without any time."""
    if not any(variant.seconds for variant in result.variants):
        return ()
    lines = [f"time per {result.unit}: {TIME.get(result.protocol or 'steady', TIME['steady'])}"]
    for comparison in result.comparisons:
        times = compared_seconds(result, comparison)
        if times and comparison.speedup and _has_unpaired_rounds(result, comparison):
            digits = figures.digits_that_agree([(*times, float(comparison.speedup))])
            before, after = (figures.seconds(time, digits) for time in times)
            rounds = f"{comparison.rounds} rounds" if comparison.rounds != 1 else "1 round"
            both = f"{comparison.baseline} took {before} and {comparison.variant} {after}"
            lines.append(f"{comparison.variant} is compared over the {rounds} that both have: {both}")
    return tuple(lines)

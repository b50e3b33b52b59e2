"""What a report says of a result, before it is drawn: rows of text that the terminal and Markdown share.

Pure. Nothing is computed here that the result does not state; numbers are only brought into readable form.
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
SENTENCES = 3
SENTENCE_ENDS = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
NOTHING_SECONDS = 0.001
"""Phases shorter than this are not told apart from nothing."""


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
        """The speedup's interval, if there is one."""
        found = self.comparison
        if found is None or not (found.speedup and found.lower and found.upper):
            return None
        return Bounds(float(found.lower), float(found.speedup), float(found.upper))

    @property
    def speedup(self) -> str:
        """The speedup, as text."""
        return figures.speedup(self.bounds.estimate) if self.bounds else ""

    @property
    def interval(self) -> str:
        """The interval, as text."""
        return figures.interval(self.bounds.lower, self.bounds.upper) if self.bounds else ""


@dataclass(frozen=True)
class ObservationRow:
    """One thing that was observed of one variant; `differs` where launches do not agree."""

    variant: str
    name: str
    value: str
    differs: bool


def title(case: Case, *, of_all: bool = False) -> str:
    """The case in one line: workload, parameters, precision, profile or target; `of_all` cases, what they share."""
    shared = {name: value for name, value in case.parameters.items() if not (of_all and name in case.swept)}
    parameters = ", ".join(f"{name} {value}" for name, value in shared.items())
    what = f"{case.workload} ({parameters})" if parameters else case.workload
    if of_all:
        return f"{what}, {case.measurement.precision}, compiled and not run"
    return f"{what}, {case.measurement.precision}, {case.accelerator.label}"


def state(result: Result) -> str:
    """What to say before anything else of a result that is not whole, or has nothing; else empty."""
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
    """Whether no launch counts and none failed: there is nothing that a table or a check could say."""
    told = any(variant.launches or variant.seconds or variant.failure for variant in result.variants)
    return not (told or result.certificate.checks or result.observations or result.compiled)


def sentences(result: Result) -> tuple[str, ...]:
    """The findings, in at most `SENTENCES` sentences; the most telling comparisons first where there are more."""
    return () if nothing_measured(result) else _findings(result)


def _findings(result: Result) -> tuple[str, ...]:
    comparisons = result.ranked
    if result.observations:
        return tuple(f"{each.headline}." for each in result.observations)
    if not comparisons and result.variants:
        names = ", ".join(variant.name for variant in result.variants)
        return (f"{names}: measured alone, compared with nothing.",) if len(result.variants) == 1 else ()
    if len(comparisons) > 1 and all(comparison.invalid for comparison in comparisons):
        return _nothing_stands(comparisons)
    if len(comparisons) <= SENTENCES:
        return _each_once(comparison.sentence for comparison in comparisons)
    ranked = [comparison for comparison in comparisons if comparison.verdict or comparison.noisy]
    if not ranked:
        return _nothing_stands(comparisons)
    counts = Counter(
        comparison.verdict or ("noisy" if comparison.noisy else "without a verdict") for comparison in comparisons
    )
    said = ", ".join(
        f"{counts[verdict]} {verdict}"
        for verdict in ("faster", "slower", "equivalent", "inconclusive", "noisy", "without a verdict")
        if counts[verdict]
    )
    against = f"Of {len(comparisons)} variants against {comparisons[0].baseline}: {said}."
    return _each_once((ranked[0].sentence, against, *(each.sentence for each in ranked[1:][-1:])))


def _each_once(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without sentences that one before them has: two comparisons share a baseline, and what is odd of it."""
    said: set[str] = set()
    kept = []
    for text in texts:
        parts = [part for part in SENTENCE_ENDS.split(text) if part not in said]
        said.update(parts)
        kept.append(" ".join(parts))
    return tuple(filter(None, kept))


def _nothing_stands(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Why none of several comparisons has a speedup; each one's own sentence says it again and again."""
    failed = Counter(name for comparison in comparisons for name in comparison.invalid)
    if not failed:
        return tuple(dict.fromkeys(comparison.sentence for comparison in comparisons))[:SENTENCES]
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
    """The verdict table, the baseline first, then as the manifest lists them."""
    return _rows(result, result.comparisons, {each.name: step_seconds(each) for each in result.variants})


def compared_rows(result: Result) -> tuple[VariantRow, ...]:
    """A row for each comparison: all but the baseline, and each variant's 99th percentile below its median call."""
    rows = [row for row in variant_rows(result) if row.name != result.case.baseline]
    if not result.tail_comparisons:
        return tuple(rows)
    compared = {comparison.variant for comparison in result.tail_comparisons}
    tails = {row.name: row for row in tail_rows(result) if row.name in compared}
    found = []
    for row in rows:
        found.append(replace(row, name=f"{row.name} p50"))
        if row.name in tails:
            found.append(replace(tails[row.name], name=f"{row.name} p99"))
    return tuple(found)


def tail_rows(result: Result) -> tuple[VariantRow, ...]:
    """The same by the 99th percentile of the calls, where the protocol is latency; `seconds` is that percentile."""
    slow = {}
    for variant in result.variants:
        times = [float(launch.p99_seconds) for launch in variant.launches if launch.p99_seconds]
        if times:
            slow[variant.name] = geometric_mean(times)
    return tuple(row for row in _rows(result, result.tail_comparisons, slow) if row.name in slow)


def _rows(
    result: Result, comparisons: Sequence[Comparison], seconds: Mapping[str, float | None]
) -> tuple[VariantRow, ...]:
    """`seconds` by variant; the speedup of each comparison is the ratio of two of them."""
    compared = {comparison.variant: comparison for comparison in comparisons}
    digits = figures.digits_that_agree(
        (before, after, float(comparison.speedup))
        for comparison in comparisons
        if comparison.speedup and not _over_fewer_rounds(result, comparison)
        if (before := seconds.get(comparison.baseline)) and (after := seconds.get(comparison.variant))
    )
    return tuple(
        _row(result, each, compared.get(each.name), seconds.get(each.name), digits) for each in ordered(result)
    )


def _over_fewer_rounds(result: Result, comparison: Comparison) -> bool:
    """Whether one side has launches that the other lacks: then its time rests on more rounds than the speedup."""
    rounds = {each.name: {launch.round for launch in each.launches} for each in result.variants}
    return rounds.get(comparison.baseline) != rounds.get(comparison.variant)


def ordered(result: Result) -> tuple[VariantResult, ...]:
    """The variants, the baseline first, then as the manifest lists them."""
    return tuple(sorted(result.variants, key=lambda variant: variant.name != result.case.baseline))


def _row(
    result: Result, variant: VariantResult, comparison: Comparison | None, seconds: float | None, digits: int
) -> VariantRow:
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
    """Why a comparison that no check stands against has neither verdict nor interval."""
    if not comparison.rounds:
        failed = any(each.name == comparison.baseline and each.failure for each in result.variants)
        return "not compared" if failed else "no complete round"
    return "too few rounds" if comparison.rounds < MINIMUM_PAIRS else "rounds differ too much"


def observation_rows(result: Result) -> tuple[ObservationRow, ...]:
    """Return everything that was observed, variant by variant; empty if the case was timed."""
    return tuple(
        ObservationRow(observations.variant, one.name, one.text, differs=len(one.values) > 1)
        for observations in result.observations
        for one in observations.found
        if not (one.name == "raisedCalls" and one.text == "0")  # `raised: nothing` says the same
    )


def observation_table(result: Result) -> Table | None:
    """Return the table of everything that was observed; None if the case was timed."""
    columns = (TableColumn("variant"), TableColumn("observed"), TableColumn("value"))
    rows = tuple((row.variant, row.name, row.value) for row in observation_rows(result))
    return filled("What each variant did", columns, rows)


def phases_shown(result: Result) -> tuple[Phase, ...]:
    """The phases that any variant went through, in the order in which a launch does."""
    seen = {time.phase for variant in result.variants for time in variant.phases}
    return tuple(phase for phase in PHASES if phase in seen)


def phase_table(result: Result) -> Table | None:
    """Return the median seconds of each phase, a row for each variant; None if no variant reached one."""
    shown = phases_shown(result)
    columns = (TableColumn("variant"), *(TableColumn(phase, number=True) for phase in shown))
    rows = []
    for variant in ordered(result):
        times = {time.phase: phase_seconds(float(time.median_seconds)) for time in variant.phases}
        if times:
            rows.append((variant.name, *(times.get(phase, "") for phase in shown)))
    return Table("Phases of a launch", columns, tuple(rows)) if rows else None


def phase_seconds(seconds: float) -> str:
    """A phase's seconds; below a millisecond no digits."""
    # An eager variant's compile phase is two readings of the clock; to give them digits would be to claim something.
    return figures.seconds(seconds) if seconds >= NOTHING_SECONDS else "< 1 ms"


def remarks(result: Result) -> tuple[str, ...]:
    """Which rounds were disturbed, and what to do about that, or about an interval that decides nothing."""
    return (*advice.on_disturbed_rounds(result), *advice.on_missing_verdicts(result))


def _why_stopped(result: Result, stopped: StopReason) -> str:
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
    """What the numbers rest on: rounds, why there were no more, confidence, and the wall time."""
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


def time_is(result: Result) -> tuple[str, ...]:
    """What the times are, and which of them are not those that a speedup is the ratio of; empty without any."""
    if not any(variant.seconds for variant in result.variants):
        return ()
    lines = [f"time per {result.unit}: {TIME.get(result.protocol or 'steady', TIME['steady'])}"]
    for each in result.comparisons:
        times = compared_seconds(result, each)
        if times and each.speedup and _over_fewer_rounds(result, each):
            digits = figures.digits_that_agree([(*times, float(each.speedup))])
            before, after = (figures.seconds(time, digits) for time in times)
            rounds = f"{each.rounds} rounds" if each.rounds != 1 else "1 round"
            both = f"{each.baseline} took {before} and {each.variant} {after}"
            lines.append(f"{each.variant} is compared over the {rounds} that both have: {both}")
    return tuple(lines)

"""Turn a result into sentences and tables of text, which every report paints. Pure.

Nothing is computed that the result does not state; numbers are only formatted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from accelbench import figures
from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Comparison, Phase, Result, VariantResult
from accelbench.report import advice
from accelbench.report.table import Bounds, Table, TableColumn, make_table
from accelbench.stats.interval import MINIMUM_PAIRS
from accelbench.stats.summary import TIME, geometric_mean
from accelbench.verdict.redaction import compared_seconds, rejections, step_seconds

PHASES: tuple[Phase, ...] = get_args(Phase)
MAXIMUM_SENTENCES = 3
"""Maximum number of sentences about a result."""
SENTENCE_ENDS = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
"""The space between two sentences; the second begins with a capital letter or a digit."""
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
        """Return the speedup with its interval as numbers; None if there is no interval."""
        comparison = self.comparison
        if comparison is None or not (comparison.speedup and comparison.lower and comparison.upper):
            return None
        return Bounds(float(comparison.lower), float(comparison.speedup), float(comparison.upper))

    @property
    def speedup(self) -> str:
        """Return the speedup as text; empty if there is no interval to show with it."""
        return figures.speedup(self.bounds.estimate) if self.bounds else ""

    @property
    def interval(self) -> str:
        """Return the interval of the speedup as text, `2.01 to 2.07`; empty without an interval."""
        return figures.interval(self.bounds.lower, self.bounds.upper) if self.bounds else ""


@dataclass(frozen=True)
class ObservationRow:
    """Describe one observation of one variant; `differs` is True if launches do not agree."""

    variant: str
    name: str
    value: str
    differs: bool


def title(case: Case, *, compiled_cases: bool = False) -> str:
    """Describe the case in one line: workload, parameters, precision and accelerator.

    With `compiled_cases`, describe all cases that a run compiled without running them; `case` is any one of them. The
    line then leaves out their differences: the swept parameters and the compile target.
    """
    parameters = dict(case.parameters)
    if compiled_cases:
        parameters = {name: value for name, value in parameters.items() if name not in case.swept}
    text = case.workload
    if parameters:
        text += f" ({', '.join(f'{name} {value}' for name, value in parameters.items())})"
    suffix = "compiled and not run" if compiled_cases else case.accelerator.label
    precision: str = case.measurement.precision
    if precision == "default":
        precision = "default precision"
    return f"{text}, {precision}, {suffix}"


def warning(result: Result) -> str:
    """Return a warning that the result is incomplete or has no measurement; empty if there is nothing to warn about."""
    if result.complete:
        # A complete result without any measurement needs a reason, such as `no valid round (interrupted)`.
        return measurement_summary(result) if nothing_measured(result) else ""
    reasons: dict[StopReason | None, str] = {
        StopReason.INTERRUPTED: "interrupted",
        StopReason.TIME_LIMIT_REACHED: "out of time",
    }
    why = reasons.get(result.stopped, "not finished")
    if nothing_measured(result):
        return f"partial: {why}; no round was complete, so there is nothing to show"
    rounds = "1 complete round" if result.rounds == 1 else f"{result.rounds} complete rounds"
    return f"partial: {why}; the numbers are from {rounds}"


def nothing_measured(result: Result) -> bool:
    """Return True if a result has nothing to show: no checks, observations, programs, launches, times or failures."""
    if result.certificate.checks or result.observations or result.compiled:
        return False
    return not any(variant.launches or variant.seconds or variant.failure for variant in result.variants)


def sentences(result: Result) -> tuple[str, ...]:
    """Return a few sentences with the findings of a result, and one if variants may compute in different arithmetic.

    The findings are what was observed, or how variants compare. There is no sentence if nothing was measured.
    """
    if nothing_measured(result):
        return ()
    return (*_findings(result), *_unequal_arithmetic(result.case))


def _unequal_arithmetic(case: Case) -> tuple[str, ...]:
    """Return a sentence if variants may compute in different arithmetic, as with the precision `default` on a GPU."""
    # If the least exact arithmetic that a framework chooses by default is float32, all of them choose float32.
    if case.measurement.precision != "default" or case.arithmetic == "float32":
        return ()
    sentence = (
        "Not the same arithmetic: each framework multiplies float32 arrays as it does by default. "
        f"Outputs are held to {case.arithmetic}, the least exact type. The check precision lists each one's settings."
    )
    return (sentence,)


def _findings(result: Result) -> tuple[str, ...]:
    """Return sentences on what was observed, on how variants compare, or on the only variant; none if none applies."""
    if result.observations:
        return tuple(f"{observations.headline}." for observations in result.observations)
    if result.ranked_comparisons:
        return _describe_comparisons(result.ranked_comparisons)
    if len(result.variants) == 1:
        return (f"{result.variants[0].name}: measured alone, compared with nothing.",)
    return ()


def _describe_comparisons(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Describe the comparisons of a result, sorted from fastest to slowest, in at most `MAXIMUM_SENTENCES` texts."""
    if len(comparisons) > 1 and all(comparison.invalid for comparison in comparisons):
        return _explain_missing_speedups(comparisons)  # one sentence, as the same checks often fail for all of them
    if len(comparisons) <= MAXIMUM_SENTENCES:
        return _without_repetitions(comparison.sentence for comparison in comparisons)
    return _summarize_comparisons(comparisons)


def _summarize_comparisons(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the fastest comparison's sentence, a count of the verdicts, and the slowest comparison's sentence.

    The comparisons are sorted from fastest to slowest; those without an interval are only counted.
    """
    # A comparison with an interval has either a verdict or, if other load disturbed its rounds, the flag `noisy`.
    with_interval = [comparison for comparison in comparisons if comparison.verdict or comparison.noisy]
    if not with_interval:
        return _explain_missing_speedups(comparisons)
    counts: Counter[str] = Counter()
    for comparison in comparisons:
        why_no_verdict = "noisy" if comparison.noisy else "without a verdict"
        counts[comparison.verdict or why_no_verdict] += 1
    kinds = ("faster", "slower", "equivalent", "inconclusive", "noisy", "without a verdict")
    verdicts = ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind])
    sentences = [
        with_interval[0].sentence,
        f"Of {len(comparisons)} variants against {comparisons[0].baseline}: {verdicts}.",
    ]
    if len(with_interval) > 1:
        sentences.append(with_interval[-1].sentence)
    return _without_repetitions(sentences)


def _without_repetitions(texts: Iterable[str]) -> tuple[str, ...]:
    """Remove sentences that repeat a sentence of an earlier text, and texts in which no sentence is left.

    Comparisons with the same baseline often repeat a sentence about this baseline.
    """
    earlier_sentences: set[str] = set()
    shortened_texts = []
    for text in texts:
        sentences = [sentence for sentence in SENTENCE_ENDS.split(text) if sentence not in earlier_sentences]
        earlier_sentences.update(sentences)
        shortened_texts.append(" ".join(sentences))
    return tuple(filter(None, shortened_texts))


def _explain_missing_speedups(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Say that no comparison is valid or, if some are valid, that none has a verdict; and name the checks that failed.

    For example `None of 3 comparisons with jax/jit is valid. The checks that failed: parity, drift (2).`: the check
    parity failed for all three, and drift for two of them. If no check failed, return the comparisons' own sentences.
    """
    failed_checks = Counter(name for comparison in comparisons for name in comparison.invalid)
    if not failed_checks:
        return tuple(dict.fromkeys(comparison.sentence for comparison in comparisons))[:MAXIMUM_SENTENCES]
    total = len(comparisons)
    names = ", ".join(name if count == total else f"{name} ({count})" for name, count in failed_checks.most_common())
    # A comparison can lack a verdict although no check failed for it.
    predicate = "is valid" if all(comparison.invalid for comparison in comparisons) else "has a verdict"
    checks = "The check that failed" if len(failed_checks) == 1 else "The checks that failed"
    return (f"None of {total} comparisons with {comparisons[0].baseline} {predicate}. {checks}: {names}.",)


def verdict_table(result: Result) -> Table:
    """Return the table with the time, the speedup and the verdict of each variant."""
    rows = variant_rows(result)
    columns = (
        TableColumn("variant"),
        TableColumn(f"time per\n{result.unit}", number=True),
        TableColumn("spread", number=True, kind="aside"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn("verdict", kind="verdict"),
    )
    return Table(
        f"Variants against {result.case.baseline}",
        columns,
        tuple((row.name, row.seconds, row.spread, row.speedup, row.interval, row.verdict) for row in rows),
        intervals=tuple(row.bounds for row in rows),
    )


def variant_rows(result: Result) -> tuple[VariantRow, ...]:
    """Return the rows of the verdict table, the baseline first."""
    seconds = {variant.name: step_seconds(variant) for variant in result.variants}
    return _make_rows(result, result.comparisons, seconds)


def compared_rows(result: Result) -> tuple[VariantRow, ...]:
    """Return a row of the verdict table for each variant except the baseline.

    Under the protocols `latency` and `arrivals`, a variant has two rows: its median, and its 99th percentile if that
    was compared.
    """
    rows = [row for row in variant_rows(result) if row.name != result.case.baseline]
    if not result.tail_comparisons:
        return tuple(rows)
    p99_rows = {row.name: row for row in tail_rows(result) if row.comparison}
    quantile_rows = []
    for row in rows:
        quantile_rows.append(replace(row, name=f"{row.name} p50"))
        if row.name in p99_rows:
            quantile_rows.append(replace(p99_rows[row.name], name=f"{row.name} p99"))
    return tuple(quantile_rows)


def tail_rows(result: Result) -> tuple[VariantRow, ...]:
    """Return rows of the verdict table for the 99th percentile of call times, for the variants that have one.

    The percentile of a variant is the geometric mean over its launches, like its time in `variant_rows`.
    """
    p99_seconds = {}
    for variant in result.variants:
        launch_seconds = [float(launch.p99_seconds) for launch in variant.launches if launch.p99_seconds]
        if launch_seconds:
            p99_seconds[variant.name] = geometric_mean(launch_seconds)
    rows = _make_rows(result, result.tail_comparisons, p99_seconds)
    return tuple(row for row in rows if row.name in p99_seconds)


def _make_rows(
    result: Result, comparisons: Sequence[Comparison], seconds: Mapping[str, float | None]
) -> tuple[VariantRow, ...]:
    """Return a row for each variant, the baseline first.

    All times are printed with enough digits that two of them, divided, give the printed speedup.

    Args:
        result: The result with the variants.
        comparisons: The comparisons with the baseline whose speedups and verdicts are shown.
        seconds: The time to show for each variant; None if the variant has no valid time.
    """
    quotients = []
    for comparison in comparisons:
        baseline_seconds, variant_seconds = seconds.get(comparison.baseline), seconds.get(comparison.variant)
        # With unpaired rounds, the speedup is not the ratio of the two times.
        if not comparison.speedup or _has_unpaired_rounds(result, comparison):
            continue
        if baseline_seconds and variant_seconds:
            quotients.append((baseline_seconds, variant_seconds, float(comparison.speedup)))
    digits = figures.digits_that_agree(quotients)
    comparison_by_variant = {comparison.variant: comparison for comparison in comparisons}
    return tuple(
        _make_row(result, variant, comparison_by_variant.get(variant.name), seconds.get(variant.name), digits)
        for variant in baseline_first(result)
    )


def _has_unpaired_rounds(result: Result, comparison: Comparison) -> bool:
    """Return True if the compared variants were not launched in the same rounds, as when one of them failed."""
    rounds = {variant.name: {launch.round for launch in variant.launches} for variant in result.variants}
    return rounds.get(comparison.baseline) != rounds.get(comparison.variant)


def baseline_first(result: Result) -> tuple[VariantResult, ...]:
    """Return the variants: the baseline, then the others in the manifest's order."""
    # False sorts before True, and `sorted` keeps the order of equal keys.
    return tuple(sorted(result.variants, key=lambda variant: variant.name != result.case.baseline))


def _make_row(
    result: Result, variant: VariantResult, comparison: Comparison | None, seconds: float | None, digits: int
) -> VariantRow:
    """Return a variant's row of the verdict table, with the time `seconds` in `digits` significant digits.

    The spread is half of the range from the 5th to the 95th percentile of launch times, divided by their geometric
    mean. It is empty for a single launch.
    """
    spread = ""
    quantiles = variant.seconds
    if quantiles is not None and len(variant.launches) > 1:
        half_range = (float(quantiles.p95_seconds) - float(quantiles.p5_seconds)) / 2
        spread = figures.spread(half_range / float(quantiles.geometric_mean_seconds))
    return VariantRow(
        name=variant.name,
        seconds="" if seconds is None else figures.seconds(seconds, digits),
        spread=spread,
        verdict=_verdict_text(result, variant, comparison),
        comparison=comparison,
    )


def _verdict_text(result: Result, variant: VariantResult, comparison: Comparison | None) -> str:
    """Return a variant's verdict as text, such as `faster`, `baseline` or `invalid: CHECK`, or why it has no verdict.

    `comparison` compares the variant with the baseline; None if the variant was not compared.
    """
    if variant.failure is not None:
        return f"failed: {variant.failure.reason}"
    if variant.name == result.case.baseline:
        # A certificate without checks also rejects variants, because it lacks required checks. Do not report that.
        rejected = rejections(result, variant) if result.certificate.checks else ()
        return f"baseline, invalid: {', '.join(rejected)}" if rejected else "baseline"
    if comparison is None:
        return "" if variant.launches else "not measured"
    if comparison.invalid:
        return f"invalid: {', '.join(comparison.invalid)}"
    if comparison.verdict is not None:
        return comparison.verdict
    return "noisy" if comparison.noisy else _why_no_interval(result, comparison)


def _why_no_interval(result: Result, comparison: Comparison) -> str:
    """Return why a comparison has no interval although no check failed."""
    if not comparison.rounds:
        baseline_failed = any(variant.name == comparison.baseline and variant.failure for variant in result.variants)
        return "not compared" if baseline_failed else "no complete round"
    return "too few rounds" if comparison.rounds < MINIMUM_PAIRS else "rounds differ too much"


def observation_rows(result: Result) -> tuple[ObservationRow, ...]:
    """Return a row for each observation of each variant; the number of calls that raised only if it is not 0."""
    rows = []
    for observations in result.observations:
        for observation in observations.found:
            if observation.name == "raisedCalls" and observation.text == "0":
                continue  # without exceptions, the row `raised: nothing` is enough
            differs = len(observation.values) > 1
            rows.append(ObservationRow(observations.variant, observation.name, observation.text, differs=differs))
    return tuple(rows)


def observation_table(result: Result) -> Table | None:
    """Return the table of all observations of all variants; None without observations."""
    columns = (TableColumn("variant"), TableColumn("observed"), TableColumn("value"))
    rows = tuple((row.variant, row.name, row.value) for row in observation_rows(result))
    return make_table("What each variant did", columns, rows)


def reached_phases(result: Result) -> tuple[Phase, ...]:
    """Return the phases of a launch that at least one variant reached, in the order in which they run."""
    phases = {time.phase for variant in result.variants for time in variant.phases}
    return tuple(phase for phase in PHASES if phase in phases)


def phase_table(result: Result) -> Table | None:
    """Return a table of the median time of each phase of a launch, by variant; None if no phase was reached."""
    phases = reached_phases(result)
    columns = (TableColumn("variant"), *(TableColumn(phase, number=True) for phase in phases))
    rows = []
    for variant in baseline_first(result):
        times = {time.phase: phase_seconds(float(time.median_seconds)) for time in variant.phases}
        if times:
            rows.append((variant.name, *(times.get(phase, "") for phase in phases)))
    return Table("Phases of a launch", columns, tuple(rows)) if rows else None


def phase_seconds(seconds: float) -> str:
    """Format a phase's seconds; a time below `SHORTEST_PHASE_SECONDS` is `< 1 ms`."""
    return figures.seconds(seconds) if seconds >= SHORTEST_PHASE_SECONDS else "< 1 ms"


def remarks(result: Result) -> tuple[str, ...]:
    """Return sentences about disturbed rounds and missing verdicts, with advice."""
    return (*advice.describe_disturbed_rounds(result), *advice.advise_on_missing_verdicts(result))


def _why_stopped(result: Result, stopped: StopReason) -> str:
    """Return in a few words why no more rounds were measured; empty if a report need not mention the reason."""
    limit = f"{result.case.measurement.time_limit_seconds} s"
    launched_rounds = result.rounds + len(result.quarantined)
    total_seconds = float(result.overhead.get("total", 0))
    duration_text = ""  # ` (about 12 s)` after `another round`; empty if the duration of a round is unknown
    if launched_rounds and total_seconds:
        duration_text = f" (about {figures.duration(total_seconds / launched_rounds)})"
    # Observations have no intervals, so for them TARGET_MET only means the minimum number of rounds.
    return {
        StopReason.TARGET_MET: "" if result.observations else "target met",
        StopReason.MAXIMUM_ROUNDS_REACHED: "the maximum",
        StopReason.TIME_LIMIT_REACHED: f"time limit of {limit} reached",
        StopReason.NO_TIME_FOR_ROUND: f"another round{duration_text} would not fit the limit of {limit}",
        StopReason.INTERRUPTED: "interrupted",
        StopReason.NOTHING_TO_COMPARE: "nothing left to compare",
    }[stopped]


def measurement_summary(result: Result) -> str:
    """Summarize the measurement: its rounds, discarded rounds, confidence and duration.

    For example `8 rounds (target met), 1 discarded, 95 % confidence over all comparisons, 42 s`.
    """
    texts = [_describe_rounds(result)]
    if result.quarantined:
        texts.append(f"{len(result.quarantined)} discarded")
    if result.observations:
        texts.append("nothing timed")
    if any(comparison.lower for comparison in result.comparisons):
        confidence = figures.percent(float(result.case.measurement.confidence))
        texts.append(f"{confidence} confidence over all comparisons")
    if total_seconds := result.overhead.get("total"):
        texts.append(figures.duration(float(total_seconds)))
    return ", ".join(texts)


def _describe_rounds(result: Result) -> str:
    """Return the number of rounds, and why there were no more: `8 rounds (target met)`."""
    rounds = "1 round" if result.rounds == 1 else f"{result.rounds} rounds"
    if result.rounds == 0:
        rounds = "no valid round"
    why = _why_stopped(result, result.stopped) if result.stopped else ""
    if not why:
        return rounds
    # Avoid parentheses inside parentheses.
    return f"{rounds}: {why}" if "(" in why else f"{rounds} ({why})"


def time_notes(result: Result) -> tuple[str, ...]:
    """Return a note on what the times mean, and one on each speedup that is not the ratio of the printed times.

    A variant's time is over all its rounds, but a speedup is only over the rounds that both variants have. If one of
    the variants has other rounds too, the note gives both times over the common rounds.
    """
    if not any(variant.seconds for variant in result.variants):
        return ()
    # A result without a protocol, or with one that defines no time, is described as `steady`.
    definition_of_time = TIME.get(result.protocol or "steady", TIME["steady"])
    lines = [f"time per {result.unit}: {definition_of_time}"]
    for comparison in result.comparisons:
        times = compared_seconds(result, comparison)
        if times is None or not comparison.speedup or not _has_unpaired_rounds(result, comparison):
            continue
        baseline_seconds, variant_seconds = times
        digits = figures.digits_that_agree([(baseline_seconds, variant_seconds, float(comparison.speedup))])
        rounds = "1 round" if comparison.rounds == 1 else f"{comparison.rounds} rounds"
        lines.append(
            f"{comparison.variant} is compared over the {rounds} that both have: "
            f"{comparison.baseline} took {figures.seconds(baseline_seconds, digits)} "
            f"and {comparison.variant} {figures.seconds(variant_seconds, digits)}"
        )
    return tuple(lines)

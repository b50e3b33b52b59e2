"""Reduce a BenchmarkResult to a summary, the only form in which the operator keeps results in memory.

Any program may have written the result, so a summary has at most one comparison for each variant of the case, and each
of its texts has a maximum length.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from accelbench import frameworks
from accelbench.api.case import Case
from accelbench.api.numbers import MEASURED
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Comparison, Result, VariantResult
from accelbench.api.run import MAXIMUM_VARIANTS
from accelbench.cluster_api.kinds import RESULT
from accelbench.document import on_one_line, shorten
from accelbench.plan.names import result_name
from accelbench.verdict.redaction import redact_invalid, step_seconds
from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.observed import created_at, run_uid_of

MAXIMUM_NAME, MAXIMUM_TEXT = 128, 512
"""Maximum characters of a name or a digest, and of a sentence."""
MAXIMUM_CHECKS = 32
"""Maximum number of different checks."""
MAXIMUM_EXPECTATIONS = 32
"""Maximum number of expectations of a run."""

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """Summarize one variant's measurement; every `seconds` is per unit of work."""

    name: str
    framework: str
    seconds: float | None
    """The geometric mean over launches; None without a complete round, or if a check rejects the variant."""
    lower: float | None = None
    """Lower end of the confidence interval of `seconds`, which is not paired with the baseline."""
    upper: float | None = None
    """Upper end of that interval."""
    lower_p99: float | None = None
    """Lower end of the same interval of the 99th percentile; None unless calls are timed one by one."""
    upper_p99: float | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each phase of a launch: `compile`, `first-step`, and so on."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Measured values that have a metric, by field of `Numbers`."""
    failure: FailureReason | None = None
    not_compiled: FailureReason | None = None
    """Reason why the variant could not be compiled for a target, if another variant could; this is no failure."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summarize one BenchmarkResult."""

    namespace: str
    name: str
    uid: str
    run: str
    run_uid: str
    series: str
    case: str
    workload: str
    accelerator: str
    """Name of the profile, or of the target that the case was compiled for."""
    unit: str
    currency: str
    """Currency of its prices; empty without any."""
    complete: bool
    valid: bool
    rounds: int
    quarantined: int
    """Number of disturbed rounds, which count for no variant."""
    noisy: bool
    """True if disturbed rounds count, because the run accepts noise."""
    variants: tuple[VariantSummary, ...]
    comparisons: tuple[Comparison, ...]
    observations: tuple[str, ...] = ()
    """If nothing was timed: what was observed of each variant or its compilation, in a few words."""
    failed_checks: tuple[str, ...] = ()
    checks_not_passed: tuple[tuple[str, str, int], ...] = ()
    """Check, outcome, and count: one for each variant, or one for all of them."""
    node: str = ""
    """Node that it was measured on."""
    source: str = ""
    """Digest of the workload's file."""
    created_timestamp: float = 0.0
    """When it was stored, by the API server's clock, in seconds since 1970."""
    margin: float = 0.0
    """Relative difference up to which its verdicts are `equivalent`."""
    shortcoming: str = ""
    """Why it is incomplete, from its notes; empty if it is complete."""
    not_met: tuple[str, ...] = ()
    """One sentence for each expectation that is not met or undecided, as evaluated when the result was stored."""

    @property
    def key(self) -> Key:
        """Return the key of the BenchmarkResult."""
        return Key(RESULT.name, self.namespace, self.name, self.uid)

    @property
    def owner(self) -> str:
        """Return the UID of the run, which the store treats as the owner of the result."""
        return self.run_uid

    @property
    def only_noisy(self) -> bool:
        """Return True if noise, which the run accepts, is the only reason why comparisons have no verdict."""
        return self.noisy and all(comparison.verdict or comparison.noisy for comparison in self.comparisons)

    @property
    def log_is_needed(self) -> bool:
        """Return True if something failed, so that the log may explain it; accepted noise is no failure."""
        return not self.valid and not self.only_noisy

    def outcome(self, comparison: Comparison) -> str:
        """Return the comparison's verdict, or a word for why it has none."""
        if comparison.verdict:
            return comparison.verdict
        compared_names = {comparison.variant, comparison.baseline}
        for variant in self.variants:
            if variant.name in compared_names and (variant.failure or variant.not_compiled):
                return "failed"
        if comparison.invalid:
            return "invalid"
        return "noisy" if comparison.noisy else "none"


def observe_result(body: Manifest) -> Summary | None:
    """Return the summary of a BenchmarkResult; None if it belongs to no run.

    Raise ValueError if the result is invalid.
    """
    key, run_uid = Key.of(RESULT.name, body), run_uid_of(body["metadata"])
    if not run_uid:
        return None
    result = Result.model_validate(body["result"], extra="ignore")
    # The name proves that the result is of this run, because labels can be changed and names cannot.
    if key.name != result_name(result.case.origin.run, run_uid, result.case.name):
        return None
    expectations = body.get("expectations") or ()
    messages = (entry.get("message", "") for entry in expectations if entry.get("outcome") != "met")
    not_met = tuple(shorten(message, MAXIMUM_TEXT) for message in itertools.islice(messages, MAXIMUM_EXPECTATIONS))
    node = (body.get("summary") or {}).get("node") or ""
    return summarize(result, key, run_uid, not_met, created=created_at(body["metadata"]), node=node)


def summarize(
    result: Result,
    key: Key,
    run_uid: str,
    not_met: tuple[str, ...] = (),
    created: datetime | None = None,
    node: str = "",
) -> Summary:
    """Return the summary of a result.

    `not_met` has a sentence for each expectation of the run that the result does not meet. `created` is when the result
    was stored.
    """
    result = redact_invalid(result)  # without timings of variants that a check rejects
    case = result.case
    failed_names = {variant.name for variant in result.failed_variants}
    return Summary(
        namespace=key.namespace,
        name=key.name,
        uid=key.uid,
        run=case.origin.run,
        run_uid=run_uid,
        series=case.origin.series,
        case=case.name,
        workload=case.workload,
        accelerator=shorten(case.accelerator.label, MAXIMUM_NAME),
        unit=shorten(result.unit, MAXIMUM_NAME),
        currency=case.accelerator.currency,
        complete=result.complete,
        valid=result.valid,
        rounds=result.rounds,
        quarantined=len(result.quarantined),
        noisy=bool(result.noisy),
        variants=tuple(
            _summarize_variant(variant, has_failed=variant.name in failed_names)
            for variant in _one_of_each(case, result.variants, variant_of=lambda variant: variant.name)
        ),
        comparisons=tuple(
            _summarize_comparison(comparison)
            for comparison in _one_of_each(case, result.comparisons, variant_of=lambda comparison: comparison.variant)
        ),
        observations=tuple(
            shorten(headline, MAXIMUM_TEXT)
            for _, headline in _one_of_each(case, _observed_headlines(result), variant_of=lambda pair: pair[0])
        ),
        failed_checks=_failed_checks(result),
        checks_not_passed=_checks_not_passed(result),
        node=on_one_line(node),
        source=result.fingerprint.get("workloadSource", "")[:MAXIMUM_NAME],
        # The last note of an incomplete result is the reason.
        shortcoming=shorten(result.notes[-1], MAXIMUM_TEXT) if result.notes and not result.complete else "",
        not_met=not_met,
        margin=float(case.measurement.equivalence_margin),
        created_timestamp=created.timestamp() if created else 0.0,
    )


def _one_of_each(case: Case, entries: Iterable[Entry], variant_of: Callable[[Entry], str]) -> Iterator[Entry]:
    """Yield the first entry about each variant of the case.

    Any program may have written the result, so entries may repeat, or be about variants that the case does not have.
    """
    names = {variant.name for variant in case.variants}
    for entry in entries:
        if variant_of(entry) in names:
            names.remove(variant_of(entry))
            yield entry


def _observed_headlines(result: Result) -> Iterator[tuple[str, str]]:
    """Yield each variant's name with a line about its observations, or about its compilation."""
    for observations in result.observations:
        yield observations.variant, observations.headline
    for compiled in result.compiled:
        yield compiled.variant, compiled.headline


def _summarize_comparison(comparison: Comparison) -> Comparison:
    """Return a comparison without its sentence, which only the BenchmarkResult shows, and with shortened texts."""
    invalid = tuple(shorten(check, MAXIMUM_NAME) for check in comparison.invalid[:MAXIMUM_CHECKS])
    baseline = shorten(comparison.baseline, MAXIMUM_NAME)
    fields = dict(comparison) | {"sentence": "", "invalid": invalid, "baseline": baseline}
    # Not `model_copy`: each copy would have a set of field names of its own, while new objects share one.
    return Comparison(**fields)


def _summarize_variant(variant: VariantResult, *, has_failed: bool) -> VariantSummary:
    """Return the summary of a variant.

    If the target that the case is compiled for does not support a variant, its result has a `failure` too, but
    `has_failed` is False.
    """
    reason = variant.failure.reason if variant.failure else None
    numbers: dict[str, float] = {}
    for field_name, number in MEASURED.items():
        value = variant.numbers.value(field_name)
        if number.metric and value is not None:
            numbers[field_name] = value
    return VariantSummary(
        name=variant.name,
        framework=frameworks.name_of(variant.use),
        seconds=step_seconds(variant),
        lower=_optional_float(variant.spread.lower_seconds) if variant.spread else None,
        upper=_optional_float(variant.spread.upper_seconds) if variant.spread else None,
        lower_p99=_optional_float(variant.spread.lower_p99_seconds) if variant.spread else None,
        upper_p99=_optional_float(variant.spread.upper_p99_seconds) if variant.spread else None,
        phase_seconds={phase.phase: float(phase.median_seconds) for phase in variant.phases},
        numbers=numbers,
        failure=reason if has_failed else None,
        not_compiled=None if has_failed else reason,
    )


def _checks_not_passed(result: Result) -> tuple[tuple[str, str, int], ...]:
    """Return each name and outcome of checks that did not pass, with their number; at most `MAXIMUM_CHECKS`."""
    counts = Counter((check.name, check.outcome) for check in result.certificate.checks if check.outcome != "passed")
    first_counts = sorted(counts.items())[:MAXIMUM_CHECKS]
    return tuple((shorten(name, MAXIMUM_NAME), outcome, count) for (name, outcome), count in first_counts)


def _failed_checks(result: Result) -> tuple[str, ...]:
    """Return the names of failed checks, each as often as the check failed, because a metric counts the failures."""
    counts = Counter(check.name for check in result.certificate.checks if check.outcome == "failed")
    names: list[str] = []
    for name, count in itertools.islice(counts.items(), MAXIMUM_CHECKS):
        # A check fails at most once for each variant. Any program may have written the result, so enforce that.
        names += [shorten(name, MAXIMUM_NAME)] * min(count, MAXIMUM_VARIANTS)
    return tuple(names)


def _optional_float(text: str | None) -> float | None:
    """Convert a decimal string to a number; return None for None."""
    return None if text is None else float(text)

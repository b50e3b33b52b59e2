"""Reduce a BenchmarkResult to a summary, the only form in which the operator keeps results in memory."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from accelbench.api.numbers import MEASURED
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Comparison, Result, VariantResult
from accelbench.cluster_api.kinds import RESULT
from accelbench.document import on_one_line
from accelbench.plan.names import result_name
from accelbench.verdict.redaction import redact_invalid, step_seconds
from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.observed import created_at, run_uid_of

MAXIMUM_SOURCE = 128
"""Maximum characters of a digest; any program may have written the result."""
MAXIMUM_CHECKS = 32
"""Maximum number of different checks in a summary, for the same reason."""


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
    finished_timestamp: float
    """Seconds since 1970, UTC."""
    complete: bool
    valid: bool
    rounds: int
    quarantined: int
    """Disturbed rounds, which count for no variant."""
    noisy: bool
    """Disturbed rounds count, because the run accepts noise."""
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
    """Why it is not complete, from its notes."""
    not_met: tuple[str, ...] = ()
    """One sentence for each expectation that is not met or undecided, as evaluated when the result was stored."""

    @property
    def key(self) -> Key:
        """Return the key of the BenchmarkResult."""
        return Key(RESULT.name, self.namespace, self.name, self.uid)

    @property
    def owner(self) -> str:
        """Return the UID of the run."""
        return self.run_uid

    @property
    def only_noisy(self) -> bool:
        """Return True if every missing verdict is due to noise."""
        return self.noisy and all(comparison.verdict or comparison.noisy for comparison in self.comparisons)

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
    """Return the summary of a BenchmarkResult, if it belongs to a run.

    Raise ValueError if the result is invalid.
    """
    key, run_uid = Key.of(RESULT.name, body), run_uid_of(body["metadata"])
    if not run_uid:
        return None
    result = Result.model_validate(body["result"], extra="ignore")
    # Labels can be changed, names cannot.
    if key.name != result_name(result.case.origin.run, run_uid, result.case.name):
        return None
    expectations = body.get("expectations") or ()
    not_met = tuple(entry.get("message", "") for entry in expectations if entry.get("outcome") != "met")
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

    `not_met` has a sentence for each expectation that is not met.
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
        accelerator=case.accelerator.label,
        unit=result.unit,
        currency=case.accelerator.currency,
        finished_timestamp=datetime.fromisoformat(result.finished).timestamp(),
        complete=result.complete,
        valid=result.valid,
        rounds=result.rounds,
        quarantined=len(result.quarantined),
        noisy=bool(result.noisy),
        variants=tuple(
            _summarize_variant(variant, has_failed=variant.name in failed_names) for variant in result.variants
        ),
        comparisons=result.comparisons,
        observations=(
            *(observation.headline for observation in result.observations),
            *(compiled.headline for compiled in result.compiled),
        ),
        failed_checks=_failed_checks(result),
        checks_not_passed=_checks_not_passed(result),
        node=on_one_line(node),
        source=result.fingerprint.get("workloadSource", "")[:MAXIMUM_SOURCE],
        # The last note of an incomplete result is the reason.
        shortcoming=result.notes[-1] if result.notes and not result.complete else "",
        not_met=not_met,
        margin=float(case.measurement.equivalence_margin),
        created_timestamp=created.timestamp() if created else 0.0,
    )


def _summarize_variant(variant: VariantResult, *, has_failed: bool) -> VariantSummary:
    reason = variant.failure.reason if variant.failure else None
    numbers: dict[str, float] = {}
    for field_name, number in MEASURED.items():
        value = variant.numbers.value(field_name)
        if number.metric and value is not None:
            numbers[field_name] = value
    return VariantSummary(
        name=variant.name,
        framework=variant.use.partition("/")[0],
        seconds=step_seconds(variant),
        lower=_optional_float(variant.spread.lower_seconds) if variant.spread else None,
        upper=_optional_float(variant.spread.upper_seconds) if variant.spread else None,
        phase_seconds={phase.phase: float(phase.median_seconds) for phase in variant.phases},
        numbers=numbers,
        failure=reason if has_failed else None,
        not_compiled=None if has_failed else reason,
    )


def _checks_not_passed(result: Result) -> tuple[tuple[str, str, int], ...]:
    """Return the name, outcome and count of checks that did not pass."""
    counts = Counter((check.name, check.outcome) for check in result.certificate.checks if check.outcome != "passed")
    first_counts = sorted(counts.items())[:MAXIMUM_CHECKS]
    return tuple((name, outcome, count) for (name, outcome), count in first_counts)


def _failed_checks(result: Result) -> tuple[str, ...]:
    """Return the names of failed checks; a name can repeat."""
    failed_names = [check.name for check in result.certificate.checks if check.outcome == "failed"]
    kept_names = list(dict.fromkeys(failed_names))[:MAXIMUM_CHECKS]
    return tuple(name for name in failed_names if name in kept_names)


def _optional_float(text: str | None) -> float | None:
    return None if text is None else float(text)

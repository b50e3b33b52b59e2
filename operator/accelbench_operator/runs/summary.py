"""Reduce a BenchmarkResult to its headline, all that the operator keeps of one in memory."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from accelbench.api.numbers import MEASURED
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Comparison, Result
from accelbench.cluster_api.kinds import RESULT
from accelbench.document import on_one_line
from accelbench.plan.names import result_name
from accelbench.verdict.redaction import redact_invalid, step_seconds
from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.observed import created_at, run_uid_of

MAXIMUM_SOURCE = 128
MAXIMUM_CHECKS = 32
"""Maximum numbers of characters and of checks that a summary holds, because any program may have written a result."""


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """Summarize one variant's measurement; every `seconds` is per unit of work."""

    name: str
    framework: str
    seconds: float | None
    """The geometric mean over launches; None without a complete round, or where a check rejects the variant."""
    lower: float | None = None
    """Lower end of the interval of its own time, which is not paired with the baseline."""
    upper: float | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each phase of a launch: `compile`, `first-step`, and so on."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Exported numbers, by field of `Numbers`."""
    failure: FailureReason | None = None
    not_compiled: FailureReason | None = None
    """Reason why it could not be compiled for a target for which another variant could: a finding, not a failure."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Hold the headline of one BenchmarkResult."""

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
        """Key of the BenchmarkResult."""
        return Key(RESULT.name, self.namespace, self.name, self.uid)

    @property
    def owner(self) -> str:
        """UID of its run."""
        return self.run_uid

    @property
    def only_noisy(self) -> bool:
        """Return True if accepted noise is the only reason why comparisons have no verdict."""
        return self.noisy and all(comparison.verdict or comparison.noisy for comparison in self.comparisons)

    def outcome(self, comparison: Comparison) -> str:
        """Return the verdict of one of its comparisons, or `failed`, `invalid`, `noisy` or `none`."""
        if comparison.verdict:
            return comparison.verdict
        sides = {comparison.variant, comparison.baseline}
        if any(variant.name in sides and (variant.failure or variant.not_compiled) for variant in self.variants):
            return "failed"
        return "invalid" if comparison.invalid else "noisy" if comparison.noisy else "none"


def observe_result(body: Manifest) -> Summary | None:
    """Return the headline of a BenchmarkResult; None if it belongs to no run. Raise ValueError if it cannot be read.

    Its label names the run, because a result can outlive its owner. Its name has to match: names cannot be changed.
    """
    key, run_uid = Key.of(RESULT.name, body), run_uid_of(body["metadata"])
    if not run_uid:
        return None
    result = Result.model_validate(body["result"], extra="ignore")
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
    """Return the headline of a result that is stored under `key`, since `created`."""
    result = redact_invalid(result)
    case = result.case
    failed = {variant.name for variant in result.failed_variants}
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
            VariantSummary(
                name=variant.name,
                framework=variant.use.partition("/")[0],
                seconds=step_seconds(variant),
                lower=_optional_float(variant.spread.lower_seconds) if variant.spread else None,
                upper=_optional_float(variant.spread.upper_seconds) if variant.spread else None,
                phase_seconds={phase.phase: float(phase.median_seconds) for phase in variant.phases},
                numbers={
                    field: value
                    for field, number in MEASURED.items()
                    if number.metric and (value := variant.numbers.value(field)) is not None
                },
                failure=variant.failure.reason if variant.failure and variant.name in failed else None,
                not_compiled=variant.failure.reason if variant.failure and variant.name not in failed else None,
            )
            for variant in result.variants
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
        shortcoming="" if result.complete else next(iter(result.notes[-1:]), ""),
        not_met=not_met,
        margin=float(case.measurement.equivalence_margin),
        created_timestamp=created.timestamp() if created else 0.0,
    )


def _checks_not_passed(result: Result) -> tuple[tuple[str, str, int], ...]:
    """Count the checks that did not pass, by name and outcome; at most `MAXIMUM_CHECKS` entries."""
    checks = Counter((check.name, check.outcome) for check in result.certificate.checks if check.outcome != "passed")
    return tuple((*check, count) for check, count in sorted(checks.items())[:MAXIMUM_CHECKS])


def _failed_checks(result: Result) -> tuple[str, ...]:
    """Return a name for each failed check, of at most `MAXIMUM_CHECKS` different names."""
    failed = [check.name for check in result.certificate.checks if check.outcome == "failed"]
    names = list(dict.fromkeys(failed))[:MAXIMUM_CHECKS]
    return tuple(name for name in failed if name in names)


def _optional_float(text: str | None) -> float | None:
    return None if text is None else float(text)

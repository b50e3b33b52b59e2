"""Assemble the result document from launches and an assessment: pure, no clock and no file.

Numbers are plain floats here; the models of the result round them to the digits of their fields. A quarantined round is
one that other load has disturbed, so that it does not count.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import get_args

from accelbench import targets
from accelbench.api.case import Case, CaseVariant
from accelbench.api.compiled import CompiledVariant
from accelbench.api.number import DISPATCHED
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.observation import MAXIMUM_DIFFERING, Observation, Observations, ObservationType, ObservedValue
from accelbench.api.operation_times import OperationTime, OperationTimes
from accelbench.api.reasons import StopReason
from accelbench.api.result import (
    MAXIMUM_BYTES,
    Certificate,
    Comparison,
    Failure,
    LaunchSummary,
    Phase,
    PhaseTime,
    Quantiles,
    Result,
    Spread,
    VariantResult,
)
from accelbench.catalogue.observations import Scalar, format_value
from accelbench.delivery.killed import without_verdict
from accelbench.document import shorten
from accelbench.launch.fact import value_or_none
from accelbench.launch.facts import CompiledFor
from accelbench.launch.record import LaunchRecord, PhaseRecord, WarmProbe
from accelbench.machine import fingerprint
from accelbench.stats.summary import geometric_mean, has_tail, quantile
from accelbench.verdict.redaction import redact_invalid
from accelbench_runner.judge_protocol import Assessment
from accelbench_runner.supervisor.notes import notes_on
from accelbench_runner.supervisor.numbers import reported_numbers, request_numbers, unit_cost, worst_parity

PARTS = ("import", "trace", "lower", "dynamo", "backend")
"""Names that adapters give to parts of the phase `compile`. Parts with other names are left out of the result."""
WARM_PHASES = {"compile", "first-step"}
"""The phases that a compile cache can shorten."""
MAXIMUM_UNIT_CHARACTERS = 63
SHORT_CHARACTERS = 240
"""Maximum length of a reading or a failure's message in a result that would be too large otherwise."""


@dataclass(frozen=True)
class CaseTiming:
    """Describe when a case ran, how long each part took and why it stopped.

    Times are RFC 3339 in UTC, durations are seconds.
    """

    started: str
    finished: str
    total_seconds: float
    judge_seconds: float
    complete: bool = False
    stopped: StopReason | None = None
    host: Mapping[str, str] = field(default_factory=dict)
    """The host's part of the fingerprint."""
    notes: tuple[str, ...] = ()
    discarded: tuple[LaunchRecord, ...] = ()
    """Launches that count only as overhead: those of incomplete rounds, and those repeated because a probe failed."""
    explained: tuple[LaunchRecord, ...] = ()
    """Launches under a profiler, after all that are timed."""


def assemble(case: Case, launches: Sequence[LaunchRecord], assessment: Assessment | None, timing: CaseTiming) -> Result:
    """Return the result of everything measured so far.

    `launches` are all failed launches, and the launches of rounds that count. `assessment` is the judge's last
    assessment; None if there was none.
    """
    quarantined = assessment.quarantined if assessment else ()
    counted_launches = _launches_that_count(launches, {disturbed.round for disturbed in quarantined})
    spread_by_variant = assessment.spread if assessment else {}
    variants = []
    for variant in case.variants:
        variant_launches = [launch for launch in counted_launches if launch.variant == variant.name]
        spread = spread_by_variant.get(variant.name)
        operation_times = _operation_times([launch for launch in timing.explained if launch.variant == variant.name])
        variants.append(_variant_result(case, variant, variant_launches, launches, spread, operation_times))
    result = Result(
        case=case,
        complete=timing.complete,
        stopped=timing.stopped,
        unit=_unit_name(launches),
        started=timing.started,
        finished=timing.finished,
        rounds=assessment.rounds if assessment else 0,
        quarantined=quarantined,
        noisy=assessment.noisy if assessment else (),
        variants=tuple(variants),
        protocol=next((launch.protocol for launch in launches if launch.failure is None), None),
        comparisons=_comparisons(launches, assessment.comparisons if assessment else ()),
        tail_comparisons=_comparisons(launches, assessment.tail_comparisons if assessment else ()),
        observations=_observations(case, launches),
        compiled=_compiled_variants(case, launches),
        certificate=assessment.certificate if assessment else Certificate(),
        fingerprint={
            **timing.host,
            **fingerprint.of_launches(case, launches),
            **fingerprint.of_environments(case),
        },
        overhead=_time_spent([*launches, *timing.discarded, *timing.explained], timing),
        notes=(*timing.notes, *notes_on(case, launches, timing.discarded, timing.stopped)),
    )
    return limit_size(redact_invalid(result))


def limit_size(result: Result) -> Result:
    """Return `result`, made smaller if its JSON exceeds `MAXIMUM_BYTES`.

    First the packages of environments are left out, then the times of operations, then the spread inside each launch,
    then the ends of long texts. Raises ValueError if the result is still too large.
    """
    size = _size_bytes(result)
    smaller, left_out = result, ""  # `left_out` is a note on everything that was left out
    for shrink, loss in (
        (_without_packages, "the packages of environments"),
        (_without_operation_times, "the times of operations"),
        (_without_launch_quantiles, "the spread inside each launch"),
        (_with_short_texts, "the ends of long texts"),
    ):
        if size <= MAXIMUM_BYTES:
            break
        shrunk = shrink(smaller)
        if shrunk != smaller:
            left_out = f"{left_out}; {loss}" if left_out else f"left out, to fit {MAXIMUM_BYTES // 1024} KiB: {loss}"
            smaller = shrunk.model_copy(update={"notes": (*result.notes, left_out)})
            size = _size_bytes(smaller)
    if size > MAXIMUM_BYTES:
        raise ValueError(
            f"the result takes {size} bytes, and {MAXIMUM_BYTES} are the limit: compare fewer variants, or lower "
            "measurement.rounds.max"
        )
    return smaller


def _size_bytes(result: Result) -> int:
    """Return the size of the result as a JSON document."""
    return len(result.to_json().encode())


def _without_packages(result: Result) -> Result:
    """Return the result without the list of packages of each environment; their digest stays."""
    environments = (environment.model_copy(update={"packages": {}}) for environment in result.case.environments)
    return result.model_copy(update={"case": result.case.model_copy(update={"environments": tuple(environments)})})


def _without_operation_times(result: Result) -> Result:
    """Return the result without the operations that take most of each variant's time."""
    variants = (variant.model_copy(update={"operation_times": None}) for variant in result.variants)
    return result.model_copy(update={"variants": tuple(variants)})


def _without_launch_quantiles(result: Result) -> Result:
    """Return the result without the 5th and 95th percentile of each launch."""

    def without_quantiles(variant: VariantResult) -> VariantResult:
        """Return the variant's result without the quantiles of its launches."""
        launches = (launch.model_copy(update={"p5_seconds": None, "p95_seconds": None}) for launch in variant.launches)
        return variant.model_copy(update={"launches": tuple(launches)})

    return result.model_copy(update={"variants": tuple(map(without_quantiles, result.variants))})


def _with_short_texts(result: Result) -> Result:
    """Return the result with each check's reading and each failure's message cut to `SHORT_CHARACTERS`."""
    checks = (
        check.model_copy(update={"reading": shorten(check.reading, SHORT_CHARACTERS)})
        for check in result.certificate.checks
    )
    variants = (
        variant.model_copy(update={"failure": _with_short_message(variant.failure)}) for variant in result.variants
    )
    return result.model_copy(update={"certificate": Certificate(checks=tuple(checks)), "variants": tuple(variants)})


def _with_short_message(failure: Failure | None) -> Failure | None:
    """Return the failure with its message cut to `SHORT_CHARACTERS`; None for None."""
    if failure is None:
        return None
    return failure.model_copy(update={"message": shorten(failure.message, SHORT_CHARACTERS)})


def _launches_that_count(launches: Sequence[LaunchRecord], quarantined_rounds: AbstractSet[int]) -> list[LaunchRecord]:
    """Return the launches that count: all failed launches, and those of rounds that are not quarantined.

    If every successful launch is in a quarantined round, all launches count.
    """
    counted = [launch for launch in launches if launch.failure or launch.round not in quarantined_rounds]
    if any(launch.failure is None for launch in counted):
        return counted
    return list(launches)  # times from disturbed rounds are better than none


def _comparisons(launches: Iterable[LaunchRecord], assessed: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the judge's comparisons; those with a variant that failed have no verdict."""
    failures = {launch.variant: launch.failure for launch in launches if launch.failure}
    return tuple(_without_verdict_after_failure(comparison, failures) for comparison in assessed)


def _without_verdict_after_failure(comparison: Comparison, failures: Mapping[str, Failure]) -> Comparison:
    """Return the comparison, without a verdict if its variant or baseline is one of the variants in `failures`."""
    if comparison.verdict:
        for side in (comparison.baseline, comparison.variant):
            if side in failures:
                return without_verdict(comparison, side, failures[side])
    return comparison


def _variant_result(
    case: Case,
    variant: CaseVariant,
    launches: Sequence[LaunchRecord],
    all_launches: Sequence[LaunchRecord],
    spread: Spread | None,
    operation_times: OperationTimes | None,
) -> VariantResult:
    """Return the result of one variant.

    `launches` are the variant's launches that count, and `all_launches` are those of all variants. `spread` is the
    judge's; it is None if the variant has no times. `operation_times` is None if no profiler recorded any.
    """
    failure = next((launch.failure for launch in launches if launch.failure), None)
    measured = [launch for launch in launches if launch.failure is None and launch.seconds() is not None]
    if not measured:
        successful = [launch for launch in launches if launch.failure is None]
        # A launch that only compiles for a target has phases, although it has no times.
        return VariantResult(
            name=variant.name,
            use=variant.use,
            failure=failure,
            phases=_phase_times([launch.phases for launch in successful if launch.protocol == "compile"]),
            numbers=Numbers(**reported_numbers(successful)),
        )
    # Use the rounded times of the summaries, so that readers can calculate the same mean.
    summaries = tuple(map(_launch_summary, measured))
    times = [float(summary.seconds) for summary in summaries]
    seconds = geometric_mean(times)
    cost = unit_cost(case, measured, all_launches, seconds)
    return VariantResult(
        name=variant.name,
        use=variant.use,
        failure=failure,
        seconds=Quantiles(
            geometric_mean_seconds=seconds,
            p5_seconds=quantile(times, 5),
            p25_seconds=quantile(times, 25),
            median_seconds=statistics.median(times),
            p75_seconds=quantile(times, 75),
            p95_seconds=quantile(times, 95),
        ),
        phases=_phase_times([launch.phases for launch in measured]),
        warm_phases=_warm_phase_times([launch.warm for launch in measured if launch.warm]),
        launches=summaries,
        spread=spread,
        numbers=Numbers(
            **reported_numbers(measured),
            parity=worst_parity(measured),
            **cost.numbers,
            **request_numbers(case, measured),
        ),
        bound=cost.bound,
        limits=cost.limits,
        operation_times=operation_times,
    )


def _operation_times(launches: Sequence[LaunchRecord]) -> OperationTimes | None:
    """Return what a variant's launch under the profiler found; None if there is no such launch, or if it failed."""
    recorded = (value_or_none(launch.facts.profiled_calls) for launch in launches if launch.failure is None)
    calls = next((calls for calls in recorded if calls is not None), None)
    if calls is None:
        return None
    return OperationTimes(
        seconds_per_call=calls.seconds_per_call,
        calls=calls.calls,
        busy_share=calls.busy_share,
        operations=tuple(
            OperationTime(
                name=operation.name,
                source=operation.source or None,
                merged=operation.merged,
                runs=operation.runs,
                seconds=operation.seconds,
            )
            for operation in calls.operations
        ),
        left_out=calls.left_out,
    )


def _launch_summary(launch: LaunchRecord) -> LaunchSummary:
    """Summarise a launch by its time and by quantiles of its timed blocks, in seconds per unit of work."""
    seconds = launch.seconds_of_blocks()
    return LaunchSummary(
        round=launch.round,
        seconds=launch.seconds(),
        p99_seconds=quantile(seconds, 99) if has_tail(launch.protocol) else None,
        p5_seconds=quantile(seconds, 5),
        p95_seconds=quantile(seconds, 95),
        blocks=len(launch.blocks),
        units_per_block=round(statistics.median(block.units for block in launch.blocks)),
    )


def _phase_times(phases_by_launch: Sequence[Sequence[PhaseRecord]]) -> tuple[PhaseTime, ...]:
    """Return the median, minimum and maximum over launches of the seconds of each phase that was reported."""
    times = []
    records_of_all_phases = list(itertools.chain.from_iterable(phases_by_launch))
    for name in get_args(Phase):
        records = [record for record in records_of_all_phases if record.phase == name]
        if records:
            seconds = [record.seconds for record in records]
            times.append(
                PhaseTime(
                    phase=name,
                    median_seconds=statistics.median(seconds),
                    min_seconds=min(seconds),
                    max_seconds=max(seconds),
                    parts=_part_medians(records),
                )
            )
    return tuple(times)


def _part_medians(phases: Sequence[PhaseRecord]) -> dict[str, float]:
    """Return the median seconds of each part of a phase over launches, without the parts that take no time."""
    medians = {}
    for name in PARTS:
        median = statistics.median(phase.parts.get(name, 0.0) for phase in phases)
        if 0 < median < math.inf:  # a launch's message may contain infinity
            medians[name] = median
    return medians


def _warm_phase_times(probes: Sequence[WarmProbe]) -> tuple[PhaseTime, ...]:
    """Return the times of the phases that a warm compile cache can shorten, over the starts that were warm."""
    # After a cache miss, a start compiled something, so it was not warm.
    all_cached = [probe for probe in probes if probe.failure is None and probe.has_only_hits]
    times = _phase_times([probe.phases for probe in all_cached])
    return tuple(time for time in times if time.phase in WARM_PHASES)


def _observations(case: Case, launches: Sequence[LaunchRecord]) -> tuple[Observations, ...]:
    """Return the observations of each variant, merged over its launches, in the case's order of variants."""
    observations = []
    for variant in case.variants:
        observations_by_launch = []
        for launch in launches:
            if launch.variant == variant.name and launch.failure is None and launch.observes:
                values = value_or_none(launch.facts.observations)
                if values is not None:
                    observations_by_launch.append(values)
        if observations_by_launch:
            merged = tuple(_merge_observations(observations_by_launch))
            observations.append(Observations(variant=variant.name, launches=len(observations_by_launch), found=merged))
    return tuple(observations)


def _merge_observations(observations_by_launch: Sequence[Mapping[str, Scalar]]) -> Iterable[Observation]:
    """Yield each observation once, with its most frequent values and the number of launches that observed each.

    If the values have different types, the observation's type is `text`.
    """
    names = dict.fromkeys(itertools.chain.from_iterable(observations_by_launch))  # each once, in order
    for name in names:
        values = [observations[name] for observations in observations_by_launch if name in observations]
        counts = Counter(map(format_value, values)).most_common(MAXIMUM_DIFFERING)
        types = {_observation_type(value) for value in values}
        yield Observation(
            name=name,
            type=types.pop() if len(types) == 1 else "text",
            values=tuple(ObservedValue(value=value, launches=count) for value, count in counts),
        )


def _observation_type(value: Scalar) -> ObservationType:
    """Return the name that results use for the type of an observed value."""
    if isinstance(value, bool):  # before numbers, because a bool is an int as well
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _compiled_variants(case: Case, launches: Sequence[LaunchRecord]) -> tuple[CompiledVariant, ...]:
    """Return the outcome of each variant that was compiled for the case's target; empty if the case has no target.

    A target is a kind of device, which this machine need not have.
    """
    if case.accelerator.target is None:
        return ()
    target = targets.find(case.accelerator.target)
    compiled: dict[str, CompiledVariant] = {}
    for launch in launches:
        outcome = value_or_none(launch.facts.compiled)
        if launch.failure is None and outcome is not None:
            compiled[launch.variant] = _compiled_variant(target, launch, outcome)
    return tuple(compiled[variant.name] for variant in case.variants if variant.name in compiled)


def _compiled_variant(target: targets.Target, launch: LaunchRecord, outcome: CompiledFor) -> CompiledVariant:
    """Return the result of a launch that compiled its variant for the target, or dispatched its operations one by one.

    In both cases, nothing ran on the target's device.
    """
    size = value_or_none(launch.facts.executable)
    # Which numbers are only estimates depends on the platform. A program whose operations were dispatched one by one
    # instead of compiled counts as a platform of its own.
    platform = DISPATCHED if outcome.dispatched else target.platform
    return CompiledVariant(
        variant=launch.variant,
        target=target.name,
        devices=target.devices,
        fits=bool(outcome.fits),  # launches report 1 or 0
        peak_bytes=size.peak_bytes if size else None,
        device_memory_bytes=outcome.device_memory_bytes,
        refused=outcome.refused,
        divided=outcome.divided,
        dispatched=outcome.dispatched,
        fused=tuple(outcome.fused),
        estimates=tuple(number.name for number in MEASURED.values() if platform in number.estimated_for),
    )


def _time_spent(launches: Iterable[LaunchRecord], timing: CaseTiming) -> dict[str, float]:
    """Return the seconds that the case spent on each phase, on each activity outside the phases, and on the rest.

    `process` is the launches' time outside of phases and activities. `blocks` is a part of the phase `steady`; all
    other entries add up to `total`.
    """
    part_seconds: dict[str, float] = {}
    launch_seconds = block_seconds = warm_probe_seconds = 0.0
    for launch in launches:
        launch_seconds += launch.wall_seconds
        warm_probe_seconds += launch.warm.wall_seconds if launch.warm else 0.0
        block_seconds += sum(block.seconds for block in launch.blocks)
        for name, seconds in launch.asides.items():  # activities outside the phases
            part_seconds[name] = part_seconds.get(name, 0.0) + seconds
        for phase in launch.phases:
            part_seconds[phase.phase] = part_seconds.get(phase.phase, 0.0) + phase.seconds
    return {
        "total": timing.total_seconds,
        "blocks": block_seconds,
        **part_seconds,
        "process": launch_seconds - sum(part_seconds.values()),
        "warm-probe": warm_probe_seconds,
        "judge": timing.judge_seconds,
        "supervisor": timing.total_seconds - launch_seconds - warm_probe_seconds - timing.judge_seconds,
    }


def _unit_name(launches: Iterable[LaunchRecord]) -> str:
    """Return the name of a unit of work, as launches report it; `step` if none does."""
    for launch in launches:
        unit = value_or_none(launch.facts.unit)
        if unit:
            return unit[:MAXIMUM_UNIT_CHARACTERS]
    return "step"

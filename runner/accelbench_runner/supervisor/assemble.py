"""Assemble the result document from launches and an assessment: pure, no clock and no file.

Numbers are plain floats here; the models of the result round them to the digits of their fields.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import get_args

from accelbench import targets
from accelbench.api.case import Case, CaseVariant
from accelbench.api.compiled import CompiledVariant
from accelbench.api.number import DISPATCHED
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.api.observation import MAXIMUM_DIFFERING, Observation, Observations, ObservationType, ObservedValue
from accelbench.api.reasons import StopReason
from accelbench.api.result import (
    MAXIMUM_BYTES,
    Certificate,
    Comparison,
    LaunchSummary,
    Phase,
    PhaseTime,
    Quantiles,
    Result,
    Spread,
    VariantResult,
)
from accelbench.catalogue.observations import Scalar, format_value
from accelbench.delivery.killed import without_finding
from accelbench.launch.fact import known
from accelbench.launch.facts import CompiledFor
from accelbench.launch.record import LaunchRecord, PhaseRecord, WarmProbe
from accelbench.machine import fingerprint
from accelbench.stats.summary import geometric_mean, quantile
from accelbench.verdict.redaction import redact_invalid
from accelbench_runner.judge_protocol import Assessment
from accelbench_runner.supervisor.numbers import cost, reported_numbers, worst_parity

PARTS = ("import", "trace", "lower", "dynamo", "backend")
"""Parts of the phase `compile`, as the adapters name them; other names are left out of the result."""
WARM_PHASES = {"compile", "first-step"}
"""The phases that a compile cache can shorten."""
MAXIMUM_PRINTED_BYTES = 16 * 1024
"""Maximum bytes that one launch may print, while its steps repeat, without a note; one or two warnings take less."""
UNIT_CHARACTERS = 63


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
    """Launches that count only as overhead: of incomplete rounds, or repeated without a probe of accelbench's own."""


def assemble(case: Case, launches: Sequence[LaunchRecord], assessment: Assessment | None, timing: CaseTiming) -> Result:
    """Return the result of everything measured so far.

    `launches` are those of counted rounds and all that failed. Times of a variant whose parity is unknown, or which a
    check rejects, are left out.
    """
    quarantined = assessment.quarantined if assessment else ()
    counted_launches = _counted_launches(launches, {disturbed.round for disturbed in quarantined})
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
        variants=tuple(
            _variant_result(
                case,
                variant,
                [launch for launch in counted_launches if launch.variant == variant.name],
                launches,
                assessment.spread.get(variant.name) if assessment else None,
            )
            for variant in case.variants
        ),
        protocol=next((launch.protocol for launch in launches if launch.failure is None), None),
        comparisons=_comparisons(launches, assessment.comparisons if assessment else ()),
        tail_comparisons=_comparisons(launches, assessment.tail_comparisons if assessment else ()),
        observations=_observations(case, launches),
        compiled=_compiled_variants(case, launches),
        certificate=assessment.certificate if assessment else Certificate(),
        fingerprint={**timing.host, **fingerprint.of_launches(launch.facts for launch in launches)},
        overhead=_overhead([*launches, *timing.discarded], timing),
        notes=tuple(_notes(case, launches, timing)),
    )
    return limit_size(redact_invalid(result))


def limit_size(result: Result) -> Result:
    """Return `result`, if necessary without the quantiles inside each launch; raise ValueError if it stays too large.

    Verdicts, intervals, checks and the time of every launch are never left out.
    """
    if _size(result) <= MAXIMUM_BYTES:
        return result
    smaller = result.model_copy(
        update={
            "variants": tuple(map(_without_launch_quantiles, result.variants)),
            "notes": (*result.notes, f"left out, to fit {MAXIMUM_BYTES // 1024} KiB: the spread inside each launch"),
        }
    )
    if (size := _size(smaller)) > MAXIMUM_BYTES:
        raise ValueError(
            f"the result takes {size} bytes, and {MAXIMUM_BYTES} are the limit: compare fewer variants, or lower "
            "measurement.rounds.max"
        )
    return smaller


def _size(result: Result) -> int:
    return len(result.to_json().encode())


def _without_launch_quantiles(variant: VariantResult) -> VariantResult:
    launches = (launch.model_copy(update={"p5_seconds": None, "p95_seconds": None}) for launch in variant.launches)
    return variant.model_copy(update={"launches": tuple(launches)})


def _notes(case: Case, launches: Sequence[LaunchRecord], timing: CaseTiming) -> Iterator[str]:
    """Yield notes on what was discarded, was not measured, or is measured with a reservation."""
    yield from timing.notes
    yield from _notes_on_discarded(timing.discarded)
    if timing.stopped == StopReason.TIME_LIMIT_REACHED:
        limit = case.measurement.time_limit_seconds
        reached = {launch.variant for launch in (*launches, *timing.discarded) if not launch.unfinished}
        for variant in case.variants:
            if variant.name not in reached:
                yield (
                    f"{variant.name} was not measured: the time limit of {limit} s came first; raise timeLimitSeconds"
                )
    yield from _notes_on_own_reference(launches)
    yield from _notes_on_printing(launches)
    if any(launch.facts.cold is False for launch in launches):
        yield "the workload asks for cold data, and its device's caches could not be emptied between blocks"


def _notes_on_own_reference(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note if a variant's own program is the reference, because the workload has none."""
    for variant in {launch.parity.own_program for launch in launches if launch.parity and launch.parity.own_program}:
        yield (
            f"the workload has no reference(): outputs were compared with those of {variant}'s own program in float64 "
            "on the CPU, so an error in that program is not found"
        )


def _notes_on_printing(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each variant that prints more than `MAXIMUM_PRINTED_BYTES` in one launch."""
    for variant in dict.fromkeys(launch.variant for launch in launches):
        printed = max(launch.printed_bytes for launch in launches if launch.variant == variant)
        if printed > MAXIMUM_PRINTED_BYTES:
            yield (
                f"{variant} printed {printed / 1e6:.3g} MB in one launch while its steps ran again and again: "
                f"printing takes time, which is measured as the step's"
            )


def _notes_on_discarded(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each launch that an own probe of accelbench ended, and for each round that was not completed."""
    for launch in launches:
        if launch.ended_by and launch.unfinished == "probe":
            yield f"{launch.unchecked[launch.ended_by]}: {launch.variant} was launched again without it"
    incomplete = [launch for launch in launches if launch.unfinished != "probe"]
    for round_number in sorted({launch.round for launch in incomplete}):
        in_round = [launch for launch in incomplete if launch.round == round_number]
        ending = "interrupted" if any(launch.unfinished == "interrupted" for launch in in_round) else "not completed"
        launches_were = "launch was" if len(in_round) == 1 else "launches were"
        yield f"round {round_number} was {ending}: {len(in_round)} {launches_were} discarded"


def _counted_launches(launches: Sequence[LaunchRecord], quarantined: AbstractSet[int]) -> list[LaunchRecord]:
    """Return the launches of undisturbed rounds and all failures; every launch if no undisturbed one succeeded."""
    undisturbed = [launch for launch in launches if launch.failure or launch.round not in quarantined]
    return undisturbed if any(launch.failure is None for launch in undisturbed) else list(launches)


def _comparisons(launches: Iterable[LaunchRecord], assessed: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons, without verdicts on a variant or baseline that failed after the last assessment."""
    failures = {launch.variant: launch.failure for launch in launches if launch.failure}
    comparisons = list(assessed)
    for index, comparison in enumerate(assessed):
        for side in (comparison.variant, comparison.baseline):
            if comparison.verdict and side in failures:
                comparisons[index] = without_finding(comparison, side, failures[side])
    return tuple(comparisons)


def _variant_result(
    case: Case,
    variant: CaseVariant,
    launches: Sequence[LaunchRecord],
    all_launches: Sequence[LaunchRecord],
    spread: Spread | None,
) -> VariantResult:
    """Return the result of one variant by its counted `launches`; device limits come from `all_launches`."""
    failure = next((launch.failure for launch in launches if launch.failure), None)
    measured = [launch for launch in launches if launch.failure is None and launch.seconds() is not None]
    if not measured:
        successful = [launch for launch in launches if launch.failure is None]
        return VariantResult(
            name=variant.name,
            use=variant.use,
            failure=failure,
            phases=_phases([launch.phases for launch in successful if launch.protocol == "compile"]),
            numbers=Numbers(**reported_numbers(successful)),
        )
    # The stored times are rounded; the variant's time is made from what is stored, so that readers find the same.
    summaries = tuple(map(_launch_summary, measured))
    times = [float(summary.seconds) for summary in summaries]
    seconds = geometric_mean(times)
    roofline = cost(case, measured, all_launches, seconds)
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
        phases=_phases([launch.phases for launch in measured]),
        warm_phases=_warm_phases([launch.warm for launch in measured if launch.warm]),
        launches=summaries,
        spread=spread,
        numbers=Numbers(**reported_numbers(measured), parity=worst_parity(measured), **roofline.numbers),
        bound=roofline.bound,
        limits=roofline.limits,
    )


def _launch_summary(launch: LaunchRecord) -> LaunchSummary:
    """Return a launch's time and quantiles in seconds per unit; p99 only for the protocol `latency`."""
    seconds = [block.seconds / block.units for block in launch.blocks]
    return LaunchSummary(
        round=launch.round,
        seconds=launch.seconds(),
        p99_seconds=quantile(seconds, 99) if launch.protocol == "latency" else None,
        p5_seconds=quantile(seconds, 5),
        p95_seconds=quantile(seconds, 95),
        blocks=len(launch.blocks),
        units_per_block=round(statistics.median(block.units for block in launch.blocks)),
    )


def _phases(launches: Sequence[Sequence[PhaseRecord]]) -> tuple[PhaseTime, ...]:
    """Return the time of each phase, in the order in which a launch goes through them."""
    times = []
    for name in get_args(Phase):
        records = [phase for phases in launches for phase in phases if phase.phase == name]
        if records:
            seconds = [phase.seconds for phase in records]
            times.append(
                PhaseTime(
                    phase=name,
                    median_seconds=statistics.median(seconds),
                    min_seconds=min(seconds),
                    max_seconds=max(seconds),
                    parts=_parts(records),
                )
            )
    return tuple(times)


def _parts(phases: Sequence[PhaseRecord]) -> dict[str, float]:
    """Return the median seconds of each part; a launch that does not name a part spent no time on it."""
    names = [name for name in PARTS if any(name in phase.parts for phase in phases)]
    medians = {name: statistics.median(phase.parts.get(name, 0.0) for phase in phases) for name in names}
    return {name: seconds for name, seconds in medians.items() if 0 < seconds < float("inf")}


def _warm_phases(probes: Sequence[WarmProbe]) -> tuple[PhaseTime, ...]:
    """Return the phases that a cache can shorten, from the probes that found everything in the cache."""
    all_cached = [probe for probe in probes if probe.failure is None and probe.answered]
    return tuple(time for time in _phases([probe.phases for probe in all_cached]) if time.phase in WARM_PHASES)


def _observations(case: Case, launches: Sequence[LaunchRecord]) -> tuple[Observations, ...]:
    """Return the merged observations of each variant, in the case's order."""
    observations = []
    for variant in case.variants:
        observations_by_launch = [
            values
            for launch in launches
            if launch.variant == variant.name and launch.failure is None and launch.observes
            if (values := known(launch.facts.observations)) is not None
        ]
        if observations_by_launch:
            merged = tuple(_merge_observations(observations_by_launch))
            observations.append(Observations(variant=variant.name, launches=len(observations_by_launch), found=merged))
    return tuple(observations)


def _merge_observations(launches: Sequence[Mapping[str, Scalar]]) -> Iterable[Observation]:
    """Merge the observations of several launches: the most frequent values first, each with its number of launches.

    At most `MAXIMUM_DIFFERING` values of an observation are returned.
    """
    for name in dict.fromkeys(name for launch in launches for name in launch):
        values = [launch[name] for launch in launches if name in launch]
        counts = Counter(map(format_value, values)).most_common(MAXIMUM_DIFFERING)
        types = {_observation_type(value) for value in values}
        yield Observation(
            name=name,
            type=types.pop() if len(types) == 1 else "text",
            values=tuple(ObservedValue(value=value, launches=count) for value, count in counts),
        )


def _observation_type(value: Scalar) -> ObservationType:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _compiled_variants(case: Case, launches: Sequence[LaunchRecord]) -> tuple[CompiledVariant, ...]:
    """Return each variant that was compiled for the case's target, in the case's order; empty without a target."""
    if case.accelerator.target is None:
        return ()
    target = targets.find(case.accelerator.target)
    compiled = {
        launch.variant: (launch, fact)
        for launch in launches
        if launch.failure is None and (fact := known(launch.facts.compiled)) is not None
    }
    names = [variant.name for variant in case.variants if variant.name in compiled]
    return tuple(_compiled_variant(name, target, *compiled[name]) for name in names)


def _compiled_variant(variant: str, target: targets.Target, launch: LaunchRecord, fact: CompiledFor) -> CompiledVariant:
    """Return the result of a launch that compiled the variant for the target."""
    size, counted_for = known(launch.facts.executable), DISPATCHED if fact.dispatched else target.platform
    return CompiledVariant(
        variant=variant,
        target=target.name,
        devices=target.devices,
        fits=bool(fact.fits),
        peak_bytes=size.peak_bytes if size else None,
        device_memory_bytes=fact.device_memory_bytes,
        refused=fact.refused,
        divided=fact.divided,
        dispatched=fact.dispatched,
        fused=tuple(fact.fused),
        estimates=tuple(number.name for number in MEASURED.values() if counted_for in number.estimated_for),
    )


def _overhead(launches: Iterable[LaunchRecord], timing: CaseTiming) -> dict[str, float]:
    """Return the wall seconds of phases, asides, starting and ending processes, warm probes, the judge, and the rest.

    `blocks` is the part of `steady` inside timed blocks.
    """
    seconds_by_name: dict[str, float] = {}
    processes = blocks = probes = 0.0
    for launch in launches:
        processes += launch.wall_seconds
        probes += launch.warm.wall_seconds if launch.warm else 0.0
        for name, seconds in launch.asides.items():
            seconds_by_name[name] = seconds_by_name.get(name, 0.0) + seconds
        blocks += sum(block.seconds for block in launch.blocks)
        for phase in launch.phases:
            seconds_by_name[phase.phase] = seconds_by_name.get(phase.phase, 0.0) + phase.seconds
    return {
        "total": timing.total_seconds,
        "blocks": blocks,
        **seconds_by_name,
        "process": processes - sum(seconds_by_name.values()),
        "warm-probe": probes,
        "judge": timing.judge_seconds,
        "supervisor": timing.total_seconds - processes - probes - timing.judge_seconds,
    }


def _unit_name(launches: Iterable[LaunchRecord]) -> str:
    """Return the workload's name for a unit of work, as the first launch that reports it."""
    units = (unit for launch in launches if (unit := known(launch.facts.unit)))
    return next(units, "step")[:UNIT_CHARACTERS]

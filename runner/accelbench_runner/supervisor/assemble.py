"""From launches and an assessment to the result document: pure, and never more than a result may hold."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import get_args

from accelbench.api.case import Case, CaseVariant
from accelbench.api.reasons import StopReason
from accelbench.api.result import (
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
from accelbench.delivery.killed import without_finding
from accelbench.document import decimal_string
from accelbench.launch.fact import known
from accelbench.launch.record import LaunchRecord, PhaseRecord, WarmProbe
from accelbench.machine import fingerprint
from accelbench.stats.summary import TIME_DIGITS, geometric_mean, quantile
from accelbench.verdict.redaction import redact_invalid
from accelbench_runner.judge_protocol import Assessment
from accelbench_runner.supervisor.compiled import compiled
from accelbench_runner.supervisor.numbers import cost, reported, worst_parity
from accelbench_runner.supervisor.observed import observed
from accelbench_runner.supervisor.size_limit import fit

PARTS = ("import", "trace", "lower", "dynamo", "backend")
"""What compiling is made of: parts that the adapters name. Launches may name anything."""
PRINTS_BYTES = 16 * 1024
"""Printed by one launch while its steps repeat; a warning or two is less."""


@dataclass(frozen=True)
class Course:
    """How the case went, apart from what was measured. Times are RFC 3339, UTC; the rest is in seconds."""

    started: str
    finished: str
    total_seconds: float
    judge_seconds: float
    complete: bool = False
    stopped: StopReason | None = None
    host: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    discarded: tuple[LaunchRecord, ...] = ()
    """They cost time and count for nothing: of a round that was cut short, or made again without a probe of ours."""


def assemble(case: Case, launches: Sequence[LaunchRecord], assessment: Assessment | None, course: Course) -> Result:
    """The result of what is known so far; `launches` are those that count, and all that failed.

    What was timed of a variant whose parity is not known, or which a check rejects, is left out.
    """
    notes = course.notes
    notes += tuple(_discarded(course.discarded))
    if course.stopped == StopReason.TIME_LIMIT_REACHED:
        limit = case.measurement.time_limit_seconds
        reached = {launch.variant for launch in (*launches, *course.discarded) if not launch.unfinished}
        notes += tuple(
            f"{variant.name} was not measured: the time limit of {limit} s came first; raise timeLimitSeconds"
            for variant in case.variants
            if variant.name not in reached
        )
    notes += (*_own_reference(launches), *_printing(launches))
    if any(launch.facts.cold is False for launch in launches):
        notes += ("the workload asks for cold data, and its device's caches could not be emptied between blocks",)
    quarantined = assessment.quarantined if assessment else ()
    counted = _counted(launches, {each.round for each in quarantined})
    result = redact_invalid(
        Result(
            case=case,
            complete=course.complete,
            stopped=course.stopped,
            unit=_unit(launches),
            started=course.started,
            finished=course.finished,
            rounds=assessment.rounds if assessment else 0,
            quarantined=quarantined,
            noisy=assessment.noisy if assessment else (),
            variants=tuple(
                _variant_result(
                    case,
                    variant,
                    [launch for launch in counted if launch.variant == variant.name],
                    launches,
                    assessment.spread.get(variant.name) if assessment else None,
                )
                for variant in case.variants
            ),
            protocol=next((launch.protocol for launch in launches if launch.failure is None), None),
            comparisons=_comparisons(launches, assessment.comparisons if assessment else ()),
            tail_comparisons=_comparisons(launches, assessment.tail_comparisons if assessment else ()),
            observations=observed(case, launches),
            compiled=compiled(case, launches),
            certificate=assessment.certificate if assessment else Certificate(),
            fingerprint={**course.host, **fingerprint.of_launches(launch.facts for launch in launches)},
            overhead=_overhead([*launches, *course.discarded], course),
            notes=notes,
        )
    )
    return fit(result)


def _own_reference(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """A note on what outputs were compared with, where the workload does not say what is right."""
    for variant in {launch.parity.own_program for launch in launches if launch.parity and launch.parity.own_program}:
        yield (
            f"the workload has no reference(): outputs were compared with those of {variant}'s own program in float64 "
            "on the CPU, so an error in that program is not found"
        )


def _printing(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """A note on each variant whose steps print."""
    for variant in dict.fromkeys(launch.variant for launch in launches):
        printed = [launch.printed_bytes for launch in launches if launch.variant == variant]
        if max(printed) > PRINTS_BYTES:
            yield (
                f"{variant} printed {max(printed) / 1e6:.3g} MB in one launch while its steps ran again and again: "
                f"printing takes time, which is measured as the step's"
            )


def _discarded(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """What became of launches that count for nothing: those in which a probe of ours hung, and those of rounds cut."""
    for launch in launches:
        if launch.ended_by and launch.unfinished == "probe":
            yield f"{launch.unchecked[launch.ended_by]}: {launch.variant} was launched again without it"
    cut = [launch for launch in launches if launch.unfinished != "probe"]
    for number in sorted({launch.round for launch in cut}):
        lost = [launch for launch in cut if launch.round == number]
        how = "interrupted" if any(launch.unfinished == "interrupted" for launch in lost) else "not completed"
        yield f"round {number} was {how}: {len(lost)} {'launch was' if len(lost) == 1 else 'launches were'} discarded"


def _counted(launches: Sequence[LaunchRecord], quarantined: AbstractSet[int]) -> list[LaunchRecord]:
    """Those of rounds that nothing disturbed, and all that failed; all of them where there is no such round."""
    clean = [launch for launch in launches if launch.failure or launch.round not in quarantined]
    return clean if any(launch.failure is None for launch in clean) else list(launches)


def _comparisons(launches: Iterable[LaunchRecord], judged: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """What was judged, less what has failed since: a case may be interrupted before the judge hears of a failure."""
    failures = {launch.variant: launch.failure for launch in launches if launch.failure}
    comparisons = list(judged)
    for index, comparison in enumerate(judged):
        for side in (comparison.variant, comparison.baseline):
            if comparison.verdict and side in failures:
                comparisons[index] = without_finding(comparison, side, failures[side])
    return tuple(comparisons)


def seconds_per_unit(launch: LaunchRecord) -> list[float]:
    """One number for each block."""
    return [block.seconds / block.units for block in launch.blocks]


def _variant_result(
    case: Case,
    variant: CaseVariant,
    launches: Sequence[LaunchRecord],
    everyone: Sequence[LaunchRecord],
    spread: Spread | None,
) -> VariantResult:
    failure = next((launch.failure for launch in launches if launch.failure), None)
    measured = [launch for launch in launches if launch.failure is None and launch.seconds() is not None]
    if not measured:
        sound = [launch for launch in launches if launch.failure is None]
        return VariantResult(
            name=variant.name,
            use=variant.use,
            failure=failure,
            phases=_phases([launch.phases for launch in sound if launch.protocol == "compile"]),
            numbers=reported(sound),
        )
    summaries = tuple(map(_launch_summary, measured))
    times = [float(launch.seconds) for launch in summaries]
    seconds = geometric_mean(times)
    told = cost(case, measured, everyone, seconds)
    numbers = {"parity": worst_parity(measured), **told.numbers}
    return VariantResult(
        name=variant.name,
        use=variant.use,
        failure=failure,
        seconds=Quantiles(
            geometric_mean_seconds=decimal_string(seconds, TIME_DIGITS),
            p5_seconds=decimal_string(quantile(times, 5)),
            p25_seconds=decimal_string(quantile(times, 25)),
            median_seconds=decimal_string(statistics.median(times)),
            p75_seconds=decimal_string(quantile(times, 75)),
            p95_seconds=decimal_string(quantile(times, 95)),
        ),
        phases=_phases([launch.phases for launch in measured]),
        warm_phases=_warm_phases([launch.warm for launch in measured if launch.warm]),
        launches=summaries,
        spread=spread,
        numbers=reported(measured).model_copy(update=numbers),
        bound=told.bound,
        limits=told.limits,
    )


def _phases(launches: Sequence[Sequence[PhaseRecord]]) -> tuple[PhaseTime, ...]:
    """Phases in the order in which a launch goes through them."""
    times = []
    for name in get_args(Phase):
        seconds = [phase.seconds for phases in launches for phase in phases if phase.phase == name]
        if seconds:
            times.append(
                PhaseTime(
                    phase=name,
                    median_seconds=decimal_string(statistics.median(seconds)),
                    min_seconds=decimal_string(min(seconds)),
                    max_seconds=decimal_string(max(seconds)),
                    parts=_parts([phase for phases in launches for phase in phases if phase.phase == name]),
                )
            )
    return tuple(times)


def _parts(phases: Sequence[PhaseRecord]) -> dict[str, str]:
    """Median seconds of each part; a launch that did not name it spent nothing on it."""
    named = [name for name in PARTS if any(name in phase.parts for phase in phases)]
    medians = {name: statistics.median(phase.parts.get(name, 0.0) for phase in phases) for name in named}
    return {name: decimal_string(seconds) for name, seconds in medians.items() if 0 < seconds < float("inf")}


def _warm_phases(probes: Sequence[WarmProbe]) -> tuple[PhaseTime, ...]:
    """Those that a cache can change, of probes that it has answered."""
    sound = [probe for probe in probes if probe.failure is None and probe.answered]
    return tuple(each for each in _phases([probe.phases for probe in sound]) if each.phase in {"compile", "first-step"})


def _launch_summary(launch: LaunchRecord) -> LaunchSummary:
    seconds = seconds_per_unit(launch)
    return LaunchSummary(
        round=launch.round,
        seconds=decimal_string(launch.seconds() or 0.0, TIME_DIGITS),
        p99_seconds=decimal_string(quantile(seconds, 99), TIME_DIGITS) if launch.protocol == "latency" else None,
        p5_seconds=decimal_string(quantile(seconds, 5)),
        p95_seconds=decimal_string(quantile(seconds, 95)),
        blocks=len(launch.blocks),
        units_per_block=round(statistics.median(block.units for block in launch.blocks)),
    )


def _overhead(launches: Iterable[LaunchRecord], course: Course) -> dict[str, str]:
    """Where the wall seconds went: phases and process start and end of all launches, the judge, and the rest.

    `blocks` is the part of `steady` that was inside timed blocks; what is done beside the phases has names of its own.
    """
    spent: dict[str, float] = {}
    processes = blocks = probes = 0.0
    for launch in launches:
        processes += launch.wall_seconds
        probes += launch.warm.wall_seconds if launch.warm else 0.0
        for name, seconds in launch.asides.items():
            spent[name] = spent.get(name, 0.0) + seconds
        blocks += sum(block.seconds for block in launch.blocks)
        for phase in launch.phases:
            spent[phase.phase] = spent.get(phase.phase, 0.0) + phase.seconds
    inside = sum(spent.values())
    spent |= {
        "process": processes - inside,
        "warm-probe": probes,
        "judge": course.judge_seconds,
        "supervisor": course.total_seconds - processes - probes - course.judge_seconds,
    }
    ordered = {"total": course.total_seconds, "blocks": blocks, **spent}
    return {name: decimal_string(seconds, digits=4) for name, seconds in ordered.items()}


def _unit(launches: Iterable[LaunchRecord]) -> str:
    named = (unit for launch in launches if (unit := known(launch.facts.unit)))
    return next(named, "step")[:63]

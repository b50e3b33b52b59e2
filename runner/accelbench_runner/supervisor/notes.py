"""Write the notes of a result: which measurements are missing, and which ones a reader has a reason to doubt."""

from collections.abc import Iterable, Iterator, Sequence

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.launch.fact import value_or_none
from accelbench.launch.record import LaunchRecord
from accelbench.validity import work_present

MAXIMUM_PRINTED_BYTES = 16 * 1024
"""Maximum bytes that one launch may print, while its steps repeat, without a note; one or two warnings take less."""
MAXIMUM_NAMES = 3
"""Maximum number of names in a note on what calls change."""


def notes_on(
    case: Case, launches: Sequence[LaunchRecord], discarded: Sequence[LaunchRecord], stopped: StopReason | None
) -> Iterator[str]:
    """Yield notes on missing measurements, and on reasons to doubt those that were made.

    `discarded` are launches that do not count, and `stopped` is why measuring ended.
    """
    yield from _notes_on_discarded(discarded)
    if stopped == StopReason.TIME_LIMIT_REACHED:
        yield from _notes_on_time_limit(case, (*launches, *discarded))
    yield from _notes_on_reference(launches)
    yield from _notes_on_canonical(launches)
    yield from work_present.describe_unlike_counts(case, launches)
    yield from _notes_on_setups(launches)
    yield from _notes_on_changes(launches)
    yield from _notes_on_printing(launches)
    if any(launch.facts.cold is False for launch in launches):  # without a request, `cold` is not reported
        yield "the workload asks for cold data, and its device's caches could not be emptied between blocks"


def _notes_on_time_limit(case: Case, launches: Iterable[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each variant that was not measured before the time limit."""
    finished_variants = {launch.variant for launch in launches if not launch.unfinished}
    limit = case.measurement.time_limit_seconds
    for variant in case.variants:
        if variant.name not in finished_variants:
            yield f"{variant.name} was not measured: the time limit of {limit} s came first; raise timeLimitSeconds"


def _notes_on_reference(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each variant whose own program in float64 was the reference, because the workload has none."""
    reference_variants = {
        launch.parity.own_program for launch in launches if launch.parity and launch.parity.own_program
    }
    for variant in sorted(reference_variants):
        yield (
            f"the workload has no reference(): outputs were compared with those of {variant}'s own program in float64 "
            "on the CPU, so an error in that program is not found"
        )


def _notes_on_canonical(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each function that brought all outputs into another form before they were compared."""
    functions = {launch.parity.canonical for launch in launches if launch.parity and launch.parity.canonical}
    for function in sorted(functions):
        yield f"{function} changed all outputs, also the reference's, to the form in which they were compared"


def _notes_on_setups(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each function that a variant calls once, before its timed calls, to make their arguments."""
    for variant in dict.fromkeys(launch.variant for launch in launches):
        functions = {value_or_none(launch.facts.setup_function) for launch in launches if launch.variant == variant}
        for function in sorted(filter(None, functions)):
            yield f"{variant}: {function} runs once before the calls, and what it does is not in their time"


def _notes_on_changes(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each variant whose calls, in its last launch, changed objects that its function captures."""
    changed = {launch.variant: value_or_none(launch.facts.changed) for launch in launches}
    for variant, names in changed.items():
        if names:
            more = f" and {len(names) - MAXIMUM_NAMES} more" if len(names) > MAXIMUM_NAMES else ""
            yield (
                f"each call of {variant} changes {', '.join(names[:MAXIMUM_NAMES])}{more}, and the next call begins "
                "with that: outputs agree only if the other variants do the same"
            )


def _notes_on_printing(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each variant that printed more than `MAXIMUM_PRINTED_BYTES` while its steps were repeated."""
    for variant in dict.fromkeys(launch.variant for launch in launches):
        printed_bytes = max(launch.printed_bytes for launch in launches if launch.variant == variant)
        if printed_bytes > MAXIMUM_PRINTED_BYTES:
            yield (
                f"{variant} printed {printed_bytes / 1e6:.3g} MB in one launch while its steps ran again and again: "
                f"printing takes time, which is measured as the step's"
            )


def _notes_on_discarded(launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a note for each launch that was repeated because a probe ended it, and for each incomplete round."""
    for launch in launches:
        if launch.ended_by and launch.unfinished == "probe":
            yield f"{launch.unchecked[launch.ended_by]}: {launch.variant} was launched again without it"
    other_launches = [launch for launch in launches if launch.unfinished != "probe"]
    for round_number in sorted({launch.round for launch in other_launches}):
        round_launches = [launch for launch in other_launches if launch.round == round_number]
        was_interrupted = any(launch.unfinished == "interrupted" for launch in round_launches)
        ending = "interrupted" if was_interrupted else "not completed"
        launches_were = "launch was" if len(round_launches) == 1 else "launches were"
        yield f"round {round_number} was {ending}: {len(round_launches)} {launches_were} discarded"

"""Cases that are compiled for a target: one launch of each variant, nothing to judge, facts into the result."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from accelbench import targets
from accelbench.api.case import Case
from accelbench.api.compiled import Compiled
from accelbench.api.numbers import DISPATCHED, MEASURED
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate
from accelbench.launch.fact import known
from accelbench.launch.facts import CompiledFor
from accelbench.launch.record import LaunchRecord
from accelbench.machine import memory
from accelbench_runner.judge_protocol import Assessment

MOST_MEMORY_BYTES = 8 * 1024**3
"""For one compiler: the largest that was seen took 1.55 GiB, for 256 chips (docs/adr/0043)."""
SHARE_OF_MEMORY = 0.8
"""Of what the container or machine has: the supervisor has to survive the compiler."""
LEAST_MEMORY_BYTES = 1024**3


def memory_limit() -> int:
    """Bytes of data that a launch may hold while it compiles."""
    there = memory.available()
    return (
        MOST_MEMORY_BYTES
        if there is None
        else max(LEAST_MEMORY_BYTES, min(MOST_MEMORY_BYTES, int(SHARE_OF_MEMORY * there)))
    )


class NothingToJudge:
    """In place of the judge: no outputs, no times. One round is all; a compiler gives the same program again."""

    def assess(
        self, case: Case, launches: Sequence[LaunchRecord], outputs: Mapping[str, Path], *, limit_seconds: float
    ) -> Assessment:
        """One round, nothing compared, no check made."""
        del case, launches, outputs, limit_seconds
        return Assessment(certificate=Certificate(), comparisons=(), rounds=1, stop=StopReason.COMPILED)


def compiled(case: Case, launches: Sequence[LaunchRecord]) -> tuple[Compiled, ...]:
    """Of each variant that was compiled, in the case's order."""
    if case.accelerator.target is None:
        return ()
    target = targets.find(case.accelerator.target)
    found = {
        launch.variant: (launch, fact)
        for launch in launches
        if launch.failure is None and (fact := known(launch.facts.compiled)) is not None
    }
    return tuple(_of(variant.name, target, *found[variant.name]) for variant in case.variants if variant.name in found)


def _of(variant: str, target: targets.Target, launch: LaunchRecord, fact: CompiledFor) -> Compiled:
    size, how = known(launch.facts.executable), DISPATCHED if fact.dispatched else target.platform
    return Compiled(
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
        estimates=tuple(each.name for each in MEASURED.values() if how in each.estimated_for),
    )

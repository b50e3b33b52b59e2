"""Check that the work is done: compilers hoist it out of loops, fold constants and drop unused results.

If the workload declares its minimum of products and convolutions, these are counted. Otherwise floating-point
operations are counted: in the program as written, in the optimised program, and in the other variants
(docs/method/counting-work.md).
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.facts import Arithmetic, OperationCounts
from accelbench.launch.record import LaunchRecord
from accelbench.validity import depends_on_inputs
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, most_severe, passed, percent, untested
from accelbench.validity.evidence import Evidence

UNCOUNTED = (
    "the workload declares no operations, and those that run cannot be counted: "
    "a loop's length or a branch depends on data, or code runs outside of the compiled program"
)
REPEATED = "the rest repeats earlier work, and the compiler hoisted it"
DROPPED = "no output depends on the rest, and the compiler dropped it"
CONSTANT = "the rest depends on no input, and the compiler computed it in advance"
SIMPLIFIED = "the compiler simplified the rest"
MINIMUM_LEFT_SHARE = 0.4
"""Minimum share of the written operations that must be left after optimisation. Compilers leave 52 % or more of the
catalogue's programs, and a few per cent of a hoisted loop."""
MINIMUM_OPERATIONS = 100
"""Minimum difference between two counts that is judged: compilers fold a few numbers in every program."""
MINIMUM_COUNT_SHARE = 0.15
"""Minimum operations as a share of cost(), or of another variant's count; frameworks count differently."""
MAXIMUM_COUNT_MULTIPLE = 2.5
"""Maximum operations as a multiple of another variant's count."""
UNLIKE_COUNTS = 1.5
"""Minimum ratio of two variants' counts that a note reports. It decides nothing, because compilers can remove up to
48 % of a program."""
MAXIMUM_IDLE_SHARE = 0.5
"""Maximum idle share of the blocks' time, without the time for which a thread waits for a CPU."""


class _Program(NamedTuple):
    """Hold the floating-point operations of a variant for a unit of work."""

    variant: str
    written: float
    """Operations that its author wrote; if they are unknown, the same as `run`."""
    run: float
    """Operations that are left in the optimised program."""


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Judge each variant by its operations, its idle time and the units of work that a step claims to do."""
    programs = [program for program in map(_program_of, evidence.launches) if program is not None]
    for variant in evidence.variants:
        # Each finding is stored with the number of its round.
        findings: list[tuple[int, Finding]] = []
        doubt_findings: list[tuple[int, Finding]] = []
        for launch in evidence.launches_of(variant):
            if is_reported(launch.facts.operations):  # the workload declares its products and convolutions
                findings.append((launch.round, _judge_declared(launch)))
            elif is_reported(launch.facts.arithmetic):
                findings.append((launch.round, _judge_counted(evidence.case, launch, programs)))
            doubts = (_idle_doubt(launch), _unit_doubt(launch))
            doubt_findings += [(launch.round, untested(doubt)) for doubt in doubts if doubt]
        # Among equally severe findings the first is reported, so those on operations come first.
        all_findings = findings + doubt_findings
        yield variant, most_severe(all_findings) if all_findings else untested(UNCOUNTED)


def _program_of(launch: LaunchRecord) -> _Program | None:
    """Return the floating-point operations of the launch's program for a unit of work; None if they are unknown."""
    arithmetic, units = launch.facts.arithmetic, launch.facts.units_per_call
    if isinstance(arithmetic, Unreadable) or arithmetic.run is None or isinstance(units, Unreadable):
        return None
    written = arithmetic.written or arithmetic.run  # if only the operations that run are known, they stand for both
    return _Program(launch.variant, written / units, arithmetic.run / units)


def _judge_counted(case: Case, launch: LaunchRecord, programs: Sequence[_Program]) -> Finding:
    """Judge whether a launch does the work of its program, and about as much as the other variants' `programs`."""
    arithmetic, program = launch.facts.arithmetic, _program_of(launch)
    if isinstance(arithmetic, Unreadable) or program is None:
        return untested(UNCOUNTED)
    reading = f"{arithmetic.run:.3g} floating-point operations in a call, in {arithmetic.source}"
    others = [other for other in programs if other.variant != launch.variant]
    shortfall = _judge_shortfall(case, launch, arithmetic, program, others)
    if shortfall.outcome != "passed":
        return Finding(shortfall.outcome, reading + shortfall.reading)
    doubt = _count_doubt(program, launch.facts.flops_per_unit, others)
    if doubt:
        # If it is unknown how many operations are written, `program.written` is the same as `program.run`.
        written_clause = f", of {arithmetic.written:.3g} written" if program.written != program.run else ""
        return untested(f"{reading}{written_clause}, {doubt}")
    return passed(reading + shortfall.reading)


def _judge_shortfall(
    case: Case, launch: LaunchRecord, arithmetic: Arithmetic, program: _Program, others: Sequence[_Program]
) -> Finding:
    """Fail if the compiler removed most of the written operations because they need not run.

    `arithmetic` and `program` are the launch's, `others` are the other variants' programs. The reading is the end of a
    sentence, such as `, of 2e+06 written: ...`; it is empty if hardly any operation is missing.
    """
    needed = (arithmetic.written or 0.0) - arithmetic.unneeded  # without `written`, nothing can be missing
    run = arithmetic.run or 0.0
    if run >= MINIMUM_LEFT_SHARE * needed or needed - run < MINIMUM_OPERATIONS:
        return passed("")
    clause = f", of {needed:.3g} written"
    operations_by_reason = {
        REPEATED: arithmetic.repeated,
        DROPPED: arithmetic.dropped,
        CONSTANT: arithmetic.constant,
    }
    # If too few operations are left without those that the compiler removed for these reasons, the reasons explain it.
    if needed - sum(operations_by_reason.values()) < MINIMUM_LEFT_SHARE * needed:
        main_reason = max(operations_by_reason, key=lambda reason: operations_by_reason[reason])
        clause += f": {main_reason}"
        equal_variant = _find_equal_without_compiler(program, others)
        return untested(f"{clause}; {equal_variant} runs as much uncompiled") if equal_variant else failed(clause)
    # Otherwise the compiler simplified arithmetic, or the program left work out. Assume that the compiler did, if the
    # program runs not much less than the other variants and its outputs on other inputs are right.
    largest_count = max((other.run for other in others), default=0.0)
    runs_as_much = bool(others) and program.run >= MINIMUM_COUNT_SHARE * largest_count
    if runs_as_much and depends_on_inputs.CHECK.evaluate(case, launch).outcome == "passed":
        return passed(f"{clause}: {SIMPLIFIED}")
    return untested(f"{clause}: {SIMPLIFIED}, or left work out")


def _find_equal_without_compiler(program: _Program, others: Sequence[_Program]) -> str:
    """Return the name of another variant that runs all its written operations, and not many more than `program` runs.

    Such a variant shows that the work needs no more operations than `program` runs. Empty if there is none.
    """
    for other in others:
        runs_all = other.run >= other.written
        if runs_all and MINIMUM_LEFT_SHARE * other.run <= program.run:
            return other.variant
    return ""


def _count_doubt(program: _Program, flops: float | Unreadable, others: Sequence[_Program]) -> str:
    """Describe a doubt if a program runs far fewer or more operations than cost() or another variant; else empty.

    A difference from another variant counts only if both the written operations and those that run differ: of equal
    programs, a compiler may leave less of one. `flops` is what cost() declares for a unit of work.
    """
    if not isinstance(flops, Unreadable) and program.run < MINIMUM_COUNT_SHARE * flops:
        return f"{percent(program.run / flops)} of what cost() says: a better algorithm, or work left out"
    for other in others:
        if abs(program.written - other.written) < MINIMUM_OPERATIONS:  # both are written alike
            continue
        ratios = (_ratio(program.written, other.written), _ratio(program.run, other.run))
        if max(ratios) < MINIMUM_COUNT_SHARE:
            return f"{percent(max(ratios))} of {other.variant}'s: a better algorithm, or work left out"
        if MAXIMUM_COUNT_MULTIPLE < min(ratios) < math.inf:
            return f"{min(ratios):.2g} times {other.variant}'s: a worse algorithm, or unnecessary work"
    return ""


def describe_unlike_counts(case: Case, launches: Sequence[LaunchRecord]) -> Iterator[str]:
    """Yield a sentence for each variant that performs far fewer or more operations than the baseline.

    Both the operations that are written and those that run differ by a factor of `UNLIKE_COUNTS` or more. The outputs
    may agree nevertheless: a solver that has converged gives the same result after half of the iterations.
    """
    # One program for each variant: that of its last launch.
    programs = {program.variant: program for program in map(_program_of, launches) if program is not None}
    baseline = programs.get(case.baseline)
    if baseline is None:
        return
    for variant in case.variants:
        program = programs.get(variant.name)
        if program is None or abs(program.written - baseline.written) < MINIMUM_OPERATIONS:
            continue
        written_ratio = _ratio(program.written, baseline.written)
        run_ratio = _ratio(program.run, baseline.run)
        runs_far_fewer = max(written_ratio, run_ratio) <= 1 / UNLIKE_COUNTS
        runs_far_more = UNLIKE_COUNTS <= min(written_ratio, run_ratio) < math.inf
        if runs_far_fewer or runs_far_more:
            yield (
                f"{program.variant} performs {run_ratio:.2g} times the operations of {baseline.variant}: "
                f"{program.run:.3g} and {baseline.run:.3g} floating-point operations in a unit of work"
            )


def _ratio(operations: float, others: float) -> float:
    """Return the first number of operations over the second; infinity if the second is 0."""
    return operations / others if others else math.inf


def _idle_doubt(launch: LaunchRecord) -> str:
    """Describe a doubt about the launch's times if it was idle for too long; empty if it was not."""
    idle = launch.facts.idle
    if isinstance(idle, Unreadable):
        return ""
    seconds = idle.seconds
    if launch.protocol == "arrivals" and launch.blocks:
        # Count only the time of requests, because a server is idle between them. Their median leaves out the few that
        # waited for a processor.
        seconds = len(launch.blocks) * statistics.median(block.seconds for block in launch.blocks)
    if idle.busy_seconds >= (1 - MAXIMUM_IDLE_SHARE) * seconds:
        return ""
    share = percent(1 - idle.busy_seconds / seconds)
    return f"idle for {share} of the time: it sleeps, or waits for other processes"


def _unit_doubt(launch: LaunchRecord) -> str:
    """Describe a doubt if a step claims several units of work and its outputs do not show how many; else empty.

    There is no doubt if operations are declared, because `_judge_declared` expects those of all units.
    """
    units = launch.facts.units_per_step
    if isinstance(units, Unreadable) or units == 1 or is_reported(launch.facts.operations):
        return ""
    if launch.parity is None or launch.parity.counts_units:  # then half as many units would give other outputs
        return ""
    return f"a step claims to do {units} units, and half as many give the same outputs"


def _judge_declared(launch: LaunchRecord) -> Finding:
    """Fail if fewer products or convolutions were counted than declared; untested if they cannot be counted."""
    operations = launch.facts.operations
    if isinstance(operations, Unreadable):
        return failed(operations)
    declared, counted = operations.declared, operations.counted
    if counted is None:
        return untested(f"{_format_counts(declared)} are declared, and how many run cannot be counted")
    reading = f"{_format_counts(counted)} of {_format_counts(declared)} in {operations.source}"
    has_too_few = counted.products < declared.products or counted.convolutions < declared.convolutions
    return failed(reading) if has_too_few else passed(reading)


def _format_counts(counts: OperationCounts) -> str:
    """Format counts: `4 products and 2 convolutions`, or `none`."""
    texts = []
    if counts.products:
        texts.append(f"{counts.products} products")
    if counts.convolutions:
        texts.append(f"{counts.convolutions} convolutions")
    return " and ".join(texts) or "none"


CHECK = CaseCheck(
    name="work-present",
    threshold=(
        "at least the operations that the workload declares for one call. If it declares none: at least "
        f"{MINIMUM_LEFT_SHARE:.0%} of those written, if the rest is repeated, dropped or constant; at least "
        f"{MINIMUM_COUNT_SHARE:.0%} of cost() and of what another variant's author wrote, and at most "
        f"{MAXIMUM_COUNT_MULTIPLE:g} times as many. Outputs show how many units a step "
        f"did, if it claims several. Blocks are idle for at most {MAXIMUM_IDLE_SHARE:.0%}"
    ),
    reason="a scan of 200 identical products took the time of four, and a product of constants took none",
    evaluate=_evaluate,
    remedy=(
        "return every result that has to be computed, let each iteration of a loop use the result of the one before, "
        "and pass numbers as arrays: a compiler drops what nobody uses and computes in advance what never changes"
    ),
)

"""Check that a step computes on its arguments: on inputs it has not seen, the outputs follow the inputs.

A step that closes over an array computes the right result as long as it gets that same array, and a compiler treats the
array as a constant, whose results it may compute in advance.

`parity` checks how exactly a step computes, on fixed inputs. This check uses other inputs in every case. Where a
computation chooses (relu, max-pool, the sign of Adam's first step), some of these inputs lie at a kink, and a correct
program may choose differently than the reference: docs/method/unseen-inputs.md.
"""

from collections.abc import Mapping

from accelbench.api.case import Case, Precision
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import CANONICAL, MISMATCH, REFERENCE, LaunchRecord, ParityReading, UnseenReading
from accelbench.validity import formula, parity
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

TOLERANCES: Mapping[Precision, float] = {"float64": 16, "float32": 16, "tf32": 1.5, "bfloat16": 1.5, "float16": 1.5}
"""Maximum error on unseen inputs, as a multiple of parity's tolerance, by precision.

Of 80 correct trainings of a CNN in float32, four were off by up to 6.6; of 8 of a decoder in bfloat16, two by up to
1.2. A program that does not read its inputs is off by the size of its outputs: with the spreads from which parity's
factors were chosen, 300 or more in float32 and 2 or more in bfloat16.
"""


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the step raises an error or gives wrong outputs on inputs that it was not built from.

    The check is untested if these outputs could not be compared because of another variant's program, or if wrong
    outputs have another cause. If the workload's own reference fails on these inputs, every variant fails.
    """
    dependence = launch.facts.dependence
    if isinstance(dependence, Unreadable):
        return failed(dependence)
    # Name the arrays that the step uses besides its arguments.
    captured = f"; captured: {', '.join(dependence.captured)}" if dependence.captured else ""
    if dependence.raised:
        return failed(f"it raises on inputs that it was not built from: {dependence.raised}{captured}")
    if dependence.unable or launch.parity is None or launch.parity.unseen is None:
        return untested(dependence.unable or "its outputs on other inputs were not compared")
    if problem := _problem_on_original_inputs(case, launch, launch.parity):
        return untested(f"{problem}{captured}")
    unseen = launch.parity.unseen
    if culprit := unseen.reading.failed_reference:
        is_to_blame = culprit in {REFERENCE, CANONICAL, launch.variant}
        return Finding("failed" if is_to_blame else "untested", f"on unseen inputs: {unseen.reading.detail}{captured}")
    finding = _judge_unseen(unseen, TOLERANCES[case.arithmetic])
    return Finding(finding.outcome, finding.reading + captured)


def _problem_on_original_inputs(case: Case, launch: LaunchRecord, reading: ParityReading) -> str:
    """Return why the outputs on the original inputs are wrong, or not known to be right; empty if they are right.

    If they are wrong, outputs on other inputs do not show whether the step reads its inputs.
    """
    if reading.failed_reference:
        return "whether its outputs are right is unknown, because there is no reference (parity)"
    if not reading.finite:
        return "its outputs are not finite on the inputs that it was built from (non-finite)"
    if parity.CHECK.evaluate(case, launch).outcome == "failed":
        return "its outputs are wrong on the inputs that it was built from (parity)"
    if formula.judge(launch).outcome == "failed":
        return "its outputs in float64 are wrong on the inputs that it was built from (formula)"
    return ""


def _judge_unseen(unseen: UnseenReading, maximum_ratio: float) -> Finding:
    """Fail if the outputs on unseen inputs are wrong; untested if right outputs are the same as on the original inputs.

    `maximum_ratio` is the largest allowed error, in multiples of the tolerance.
    """
    reading = unseen.reading
    if not (reading.finite and reading.compared):
        return untested(f"on unseen inputs: {reading.detail}")
    if reading.worst_ratio >= MISMATCH:  # no tolerance allows it, such as a wrong shape
        return failed(f"on unseen inputs: {reading.detail}")
    if reading.worst_ratio > maximum_ratio and not reading.less_exact:
        return failed(
            f"wrong on unseen inputs, by {reading.worst_ratio:.2g} times the tolerance (limit {maximum_ratio:g})"
        )
    if not unseen.changes:
        return untested("other inputs give the same outputs, so whether the step reads its inputs is unknown")
    if reading.worst_ratio <= 1:
        return passed(f"{reading.worst_ratio:.2g} of the tolerance on unseen inputs")
    if reading.less_exact:
        excuse = "(by a rounding of the largest output): it is less exact there"
    else:
        excuse = f"(limit {maximum_ratio:g}): the program may choose differently there"
    return passed(f"{reading.worst_ratio:.2g} times the tolerance on unseen inputs {excuse}")


CHECK = LaunchCheck(
    name="depends-on-inputs",
    threshold="on inputs that the program was not built from, error at most 16 tolerances; 1.5 in narrow types",
    reason="a step that closed over its starting array was once certified as 5 times as fast",
    evaluate=_evaluate,
    include_quarantined=True,
    remedy=(
        "compute with the arrays that the program is given: take what it captures as an argument (of the function, or "
        "in the state or a batch), keep no results, and let it accept any numbers of the same shapes"
    ),
    fact=lambda facts: facts.dependence,
)

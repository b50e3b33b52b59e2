"""Check that every variant computes the same thing: its outputs agree with the float64 reference."""

from accelbench import frameworks
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import CANONICAL, REFERENCE, LaunchRecord, ParityReading
from accelbench.validity import formula
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

MAXIMUM_GROWTH = 16.0
"""Maximum error of a less exact algorithm in scales (the error that rounding makes), as a multiple of its error in
scales of float64. Of correct programs it was up to 6: functions may be less exact in float32 than in float64."""
MAXIMUM_LESS_EXACT_SHARE = 0.1
"""Maximum share of outputs beyond their tolerance for which a less exact algorithm is the reason. There may be more if
they are as many in float64: in a convolution by FFT, every output may err by a rounding of the largest one."""
MAXIMUM_SHARE_OVER_FLOAT64 = 1.5
"""Maximum share of outputs beyond their tolerance, as a multiple of that share in float64. Of the one program that was
seen to need it, a convolution by FFT, it was 1.01; the limit was chosen after that."""
MAXIMUM_RATIO_OF_RIGHT_FORMULA = 8.0
"""Maximum error of a program in float32 whose formula is right, as a multiple of the tolerance; in float64 as well.
The tolerance allows for the reference's roundings only. Of correct programs, optax's Adam was off by up to 1.4
tolerances (it computes 1 - 0.999^t in float32), and a difference of cumulative sums by up to 7. A fault that occurs in
float32 but not in float64 is usually larger: products in TF32 round 8192 times as coarsely, and a tolerance is 32
roundings. Many elements must have such errors: a wrong number in a few places is no rounding."""
MINIMUM_RANDOM_DIFFERENCE = 1e-3
"""Minimum relative difference of two runs that rounding in another order does not explain."""
RANDOM = (
    "the outputs are random, or depend on earlier calls. Compare what does not depend on the draw, or take the mask, "
    'the noise or the state as an array; or let their moments be compared: measure = {"random": "moments"}'
)


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if an output differs from the reference by more than its tolerance, unless its formula is right.

    A right formula may be less exact than the reference (`_describe_largest_error`). The check is untested if outputs
    cannot be compared, or if the reference may have the variant's mistake.
    """
    reading = launch.parity
    if reading is None:
        return failed("its outputs were not compared with the reference")
    if reading.failed_reference:
        return _judge_without_reference(launch.variant, reading)
    if not (reading.finite and reading.compared):
        detail = reading.detail if reading.finite else f"cannot be compared: {reading.detail}"
        # Outputs that are not finite fail the check `non-finite`, whose reading has the diagnosis.
        diagnosis = reading.diagnosis if reading.finite else ""
        return untested("; ".join(filter(None, (detail, diagnosis))))
    if reading.worst_ratio <= 1:
        text = f"{reading.detail}, {reading.worst_ratio:.2g} of the tolerance"
        text += _format_resolution(reading) + _describe_form(reading)
        return _judge_agreement(case, launch, text)
    largest_error = _describe_largest_error(case, reading)
    if largest_error:
        share = f"{reading.off:,} of {reading.elements:,} outputs"
        return passed(
            f"right formula, less exact than the reference: {share} are beyond the tolerance, and none by more than "
            f"{largest_error}; {reading.detail}{_describe_form(reading)}"
        )
    sentences = (reading.describe_error(), reading.diagnosis, _describe_randomness(launch))
    return failed("; ".join(filter(None, sentences)))


def _describe_largest_error(case: Case, reading: ParityReading) -> str:
    """Describe the largest error of a program whose formula is right but less exact; empty if the outputs are wrong."""
    if reading.less_exact and _is_also_less_exact_in_float64(case, reading):
        return "a rounding of the largest output"
    is_exact_in_float64 = formula.agrees(reading.formula, MAXIMUM_RATIO_OF_RIGHT_FORMULA)
    is_slightly_off = reading.worst_ratio <= MAXIMUM_RATIO_OF_RIGHT_FORMULA
    if case.measurement.precision == "float32" and is_exact_in_float64 and is_slightly_off and reading.rounds_more:
        return f"{MAXIMUM_RATIO_OF_RIGHT_FORMULA:g} tolerances, and many others err as much: it rounds more often"
    return ""


def _is_also_less_exact_in_float64(case: Case, reading: ParityReading) -> bool:
    """Return True if the program is less exact in float64 too: then the reason is its algorithm, not a wrong kernel.

    Its outputs in float64 must agree with the reference. Its error must be at most `MAXIMUM_GROWTH` times its error in
    float64, each as a multiple of the rounding error in its own precision. It may err in few outputs, or in about as
    many as in float64.
    """
    if case.measurement.precision == "float64":  # then `reading` itself is that in float64
        return True
    in_float64 = reading.formula
    if in_float64 is None or not formula.agrees(in_float64):
        return False
    maximum_share = max(MAXIMUM_LESS_EXACT_SHARE, MAXIMUM_SHARE_OVER_FLOAT64 * in_float64.off_share)
    return reading.off_share <= maximum_share and reading.worst_scales <= MAXIMUM_GROWTH * in_float64.worst_scales


def _describe_randomness(launch: LaunchRecord) -> str:
    """Describe by how much two runs of the program on the same inputs differ; empty if by no more than rounding."""
    dependence = launch.facts.dependence
    replay = None if isinstance(dependence, Unreadable) else dependence.replay
    if replay is None or replay.untimed is None or replay.untimed < MINIMUM_RANDOM_DIFFERENCE:
        return ""
    return f"two runs of it on the same inputs differ by {replay.untimed:.2g} of their size: {RANDOM}"


def _judge_without_reference(variant: str, reading: ParityReading) -> Finding:
    """Judge outputs that cannot be compared, because computing the reference failed.

    A failure of the workload's own `reference()` or `canonical()` fails every variant. A failure of the baseline's own
    program, which replaces a missing reference, fails the baseline alone: whether other variants are right is unknown.
    """
    culprit = reading.failed_reference
    if culprit in {REFERENCE, CANONICAL, variant}:
        return failed(reading.detail)
    return untested(f"there is no reference to compare with: {reading.detail}")


def _format_resolution(reading: ParityReading) -> str:
    """Format the relative errors that the comparison detects, after a semicolon; empty if there are no floats."""
    if reading.sees_in_half is None or reading.sees_in_most is None:
        return ""
    return f"; detects {reading.sees_in_half:.0e} in half and {reading.sees_in_most:.0e} in 90 % of the outputs"


def _describe_form(reading: ParityReading) -> str:
    """Describe the canonical form in which outputs were compared, and the errors that it hides; empty without one."""
    if not reading.canonical:
        return ""
    hidden = f", which hides {reading.hidden_errors}" if reading.hidden_errors else ""
    return f"; compared after {CANONICAL}{hidden}"


def _judge_agreement(case: Case, launch: LaunchRecord, reading: str) -> Finding:
    """Pass outputs that agree with the reference, unless the reference uses the variant's framework.

    Such a reference may have the same mistake as the variant. `reading` is the text of the finding.
    """
    if launch.parity and launch.parity.own_program:  # the baseline's program replaces a missing reference
        return passed(f"{reading}; the reference is {launch.parity.own_program}'s own program in float64 on the CPU")
    use = next(variant.use for variant in case.variants if variant.name == launch.variant)
    framework = frameworks.name_of(use)
    if launch.parity and framework in launch.parity.reference_frameworks:
        return untested(f"the reference is computed with {framework} too and may have the same mistake: use NumPy")
    return passed(reading)


CHECK = LaunchCheck(
    name="parity",
    threshold="each output within its tolerance, and the median error of outputs of like size within a smaller one",
    reason=(
        "the tolerance is how far the reference's own output moves if numbers are rounded, times a factor: "
        "docs/method/parity-by-element.md"
    ),
    evaluate=_evaluate,
    remedy=(
        "mend what the reading shows, or else compare the variant's formula, and the defaults of its functions, with "
        "those of the reference"
    ),
    include_quarantined=True,
)

"""Check that arithmetic has the requested precision: the policy and the type of arrays, as read back."""

from accelbench.api.case import Case, PrecisionPolicy
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

ARRAY_TYPES: dict[PrecisionPolicy, str] = {
    "float64": "float64",
    "float32": "float32",
    "tf32": "float32",  # TF32 is how products are computed; arrays stay float32
    "default": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
}
STEP_TYPES: dict[PrecisionPolicy, set[str]] = {
    "float64": {"float64"},
    "float32": {"float32"},
    "tf32": {"float32"},
    "default": {"float32"},
    "bfloat16": {"bfloat16", "float32"},
    "float16": {"float16", "float32"},
}
"""Types that arrays may have inside a step. Sums of narrow numbers, and weights with small updates, stay in float32."""
MAXIMUM_FLOAT64_SHARE = 0.1
"""Maximum share of a step's numbers in float64, which makes no program faster; `torch.quantile` ranks in float64.
No number may have any other type that was not requested."""
TF32_SETTINGS = {"tf32", "tensorfloat32"}
"""Framework settings for products of float32 arrays in TF32."""
FULL_PRECISION_SETTINGS = {"ieee", "highest", "float32"}
"""Framework settings for products of float32 arrays in full precision."""


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the launch used another precision than requested, or an unknown one.

    Untested if its program sets flags of frameworks.
    """
    requested = case.measurement.precision
    precision = launch.facts.precision
    if isinstance(precision, Unreadable):
        return failed(precision)
    if precision.policy != requested:
        return failed(f"{precision.policy} was set, {requested} was requested")
    if precision.dtype != ARRAY_TYPES[requested]:
        return failed(f"arrays are {precision.dtype}, {requested} needs {ARRAY_TYPES[requested]}")
    if requested == "default":
        settings = ", ".join(f"{setting} {value or 'unset'}" for setting, value in precision.matmul.items())
        return _judge_step(launch, requested) or passed(f"the framework's own settings: {settings}")
    fitting_settings = TF32_SETTINGS if requested == "tf32" else FULL_PRECISION_SETTINGS
    for setting, value in precision.matmul.items():
        if value not in fitting_settings:
            return failed(f"{setting} is {value}, which is not {requested}")
    return _judge_step(launch, requested) or passed(f"{requested}, arrays {precision.dtype}")


def _judge_step(launch: LaunchRecord, requested: PrecisionPolicy) -> Finding | None:
    """Return a finding if the step computes in other types than requested, or its program sets flags; else None."""
    arithmetic, meddling = launch.facts.arithmetic, launch.facts.meddling
    if not isinstance(arithmetic, Unreadable):
        other_types = {name: share for name, share in arithmetic.types.items() if name not in STEP_TYPES[requested]}
        float64_share = other_types.pop("float64", 0.0)  # a small share is allowed of this type only
        if float64_share > MAXIMUM_FLOAT64_SHARE:
            return failed(f"the step computes in float64, {requested} was requested")
        if other_types:
            return failed(f"the step computes in {', '.join(sorted(other_types))}, {requested} was requested")
    if not isinstance(meddling, Unreadable) and meddling.flags:
        return untested(f"the program sets {', '.join(meddling.flags)}, whose effect on arithmetic is unknown")
    return None


CHECK = LaunchCheck(
    name="precision",
    threshold=(
        "the requested policy, read back; arrays inside a step have its types, but for at most "
        f"{MAXIMUM_FLOAT64_SHARE:.0%} of their numbers in float64"
    ),
    reason="TF32 or bfloat16 on one side only makes that side several times faster",
    evaluate=_evaluate,
    remedy="set the precision only in measurement.precision, and create the arrays inside a step with its type",
    observed=True,
)

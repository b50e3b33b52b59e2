"""The arithmetic is the one asked for: policy and type of the arrays, as read back."""

from accelbench.api.case import Case
from accelbench.api.case import Precision as Policy
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

DTYPES: dict[Policy, str] = {
    "float64": "float64",
    "float32": "float32",
    "tf32": "float32",  # TF32 is how products are computed; arrays stay float32
    "bfloat16": "bfloat16",
    "float16": "float16",
}
TYPES: dict[Policy, set[str]] = {
    "float64": {"float64"},
    "float32": {"float32"},
    "tf32": {"float32"},
    "bfloat16": {"bfloat16", "float32"},
    "float16": {"float16", "float32"},
}
"""What arrays may be inside a step: sums of narrow numbers, and weights that small updates must move, are float32."""
PRODUCTS: dict[bool, set[str]] = {True: {"tf32", "tensorfloat32"}, False: {"ieee", "highest", "float32"}}
"""What frameworks call products of float32 arrays in TF32, and in full."""


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    asked = case.measurement.precision
    precision = launch.facts.precision
    if isinstance(precision, Unreadable):
        return failed(precision)
    if precision.policy != asked:
        return failed(f"{precision.policy} was set, {asked} was asked for")
    if precision.dtype != DTYPES[asked]:
        return failed(f"arrays are {precision.dtype}, {asked} needs {DTYPES[asked]}")
    for setting, value in precision.matmul.items():
        if value not in PRODUCTS[asked == "tf32"]:
            return failed(f"{setting} is {value}, which is not {asked}")
    return _inside(launch, asked) or passed(f"{asked}, arrays {precision.dtype}")


def _inside(launch: LaunchRecord, asked: Policy) -> Finding | None:
    """What the program does about it by itself."""
    arithmetic, meddling = launch.facts.arithmetic, launch.facts.meddling
    if not isinstance(arithmetic, Unreadable) and (others := sorted(set(arithmetic.types) - TYPES[asked])):
        return failed(f"the step computes in {', '.join(others)}, {asked} was asked for")
    if not isinstance(meddling, Unreadable) and meddling.flags:
        return untested(f"the program sets {', '.join(meddling.flags)}, and nobody knows what that does to arithmetic")
    return None


CHECK = LaunchCheck(
    name="precision",
    threshold="the policy asked for, read back; arrays inside a step are of its types",
    reason="TF32 or bfloat16 on one side only is several times faster",
    evaluate=_evaluate,
    remedy="set the precision in measurement.precision alone, and make the arrays inside a step of its type",
    observed=True,
)

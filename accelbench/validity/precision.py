"""The arithmetic is the one asked for: policy and type of the arrays, as read back."""

from accelbench.api.case import Case
from accelbench.api.case import Precision as Policy
from accelbench.validity.check import Finding, LaunchCheck, failed, passed
from accelbench.validity.evidence import Launch, Precision, Unreadable, fact

DTYPES: dict[Policy, str] = {
    "float64": "float64",
    "float32": "float32",
    "tf32": "float32",  # TF32 is how products are computed; arrays stay float32
    "bfloat16": "bfloat16",
    "float16": "float16",
}
PRODUCTS: dict[bool, set[str]] = {True: {"tf32", "tensorfloat32"}, False: {"ieee", "highest", "float32"}}
"""What frameworks call products of float32 arrays in TF32, and in full."""


def _look(case: Case, launch: Launch) -> Finding:
    asked = case.measurement.precision
    precision = fact(launch, "precision", Precision)
    if isinstance(precision, Unreadable):
        return failed(precision)
    if precision.policy != asked:
        return failed(f"{precision.policy} was set, {asked} was asked for")
    if precision.dtype != DTYPES[asked]:
        return failed(f"arrays are {precision.dtype}, {asked} needs {DTYPES[asked]}")
    for setting, value in precision.matmul.items():
        if value not in PRODUCTS[asked == "tf32"]:
            return failed(f"{setting} is {value}, which is not {asked}")
    return passed(f"{asked}, arrays {precision.dtype}")


CHECK = LaunchCheck(
    name="precision",
    threshold="the policy asked for, read back",
    reason="TF32 or bfloat16 on one side alone is several times faster",
    look=_look,
    observed=True,
)

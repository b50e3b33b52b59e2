"""The case document: everything a runner needs to measure one case, and nothing that it has to look up.

Written by the plan, carried to the pod in an annotation (or to the child process in a file), read by
`python -m accelbench_runner CASE`, and kept inside the result, so that a result says what was asked.
"""

from typing import Annotated, Literal

from pydantic import Field

from accelbench.document import DecimalString, Document

Precision = Literal["float64", "float32", "tf32", "bfloat16", "float16"]
Platform = Literal["cpu", "cuda", "tpu"]
ParameterValue = int | str


class CaseVariant(Document):
    """One competitor: `use` names framework and mode; `name` is unique in the run."""

    name: str
    use: str
    options: dict[str, ParameterValue] = {}


class CaseMeasurement(Document):
    """How the case is measured. Ratios are plain decimals here: `0.01` for the spec's `1%`."""

    precision: Precision = "float32"
    rounds_min: Annotated[int, Field(ge=2)] = 5
    rounds_max: int = 20
    target_relative_error: DecimalString = "0.01"
    confidence: DecimalString = "0.95"
    equivalence_margin: DecimalString = "0.02"
    time_limit_seconds: int = 600
    seed: int = 0


class CaseAccelerator(Document):
    """Where it runs: the profile's name, what the framework's device must turn out to be, and how many."""

    profile: str = "cpu"
    platform: Platform = "cpu"
    devices: int = 1


class CaseOrigin(Document):
    """Where the case came from, for labels and reports; on a laptop the namespace and the UID are empty."""

    run: str
    series: str
    namespace: str = ""
    uid: str = ""
    attempt: int = 1


class Case(Document):
    """One combination of swept parameters: one case is one Job and yields one result."""

    format: Literal["accelbench.dev/case/v1alpha1"] = "accelbench.dev/case/v1alpha1"
    name: str
    origin: CaseOrigin
    workload: str
    parameters: dict[str, ParameterValue] = {}
    """As the spec and the sweep give them; the workload's own model fills in defaults and checks bounds."""
    swept: dict[str, ParameterValue] = {}
    """The parameters that the sweep varies, for a reader to tell the cases apart."""
    variants: tuple[CaseVariant, ...]
    baseline: str
    comparisons_in_run: int = 1
    """All comparisons of the run, which share its confidence (Bonferroni)."""
    measurement: CaseMeasurement = CaseMeasurement()
    accelerator: CaseAccelerator = CaseAccelerator()

"""The case document: everything a runner needs to measure one case, and nothing that it has to look up.

Written by the plan, carried to the pod in an annotation (or to the child process in a file), read by
`python -m accelbench_runner CASE`, and kept inside the result, so that a result says what was asked.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from accelbench.api import rules
from accelbench.document import DecimalString, Document, Line, on_one_line

Precision = Literal["float64", "float32", "tf32", "bfloat16", "float16"]
ParameterValue = (
    Annotated[int, Field(ge=1 - 2**53, le=2**53 - 1)]
    | Annotated[str, Field(max_length=256), AfterValidator(on_one_line)]
)
"""An integer that every JSON reader can hold, or a string."""
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339, UTC."""

PricePerHour = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)? [A-Z]{3}$", max_length=40)]
"""An amount and its currency, by the code of ISO 4217: `11.06 USD`."""


class CaseVariant(Document):
    """One competitor."""

    name: Line = Field(description="Unique in the run.")
    use: Line = Field(description="Framework and mode.")
    options: dict[Line, ParameterValue] = Field(default={}, description="Options of the mode.")


class MeasurementSettings(Document):
    """Hold the settings that a run hands to each of its cases as they are."""

    precision: Precision = Field(default="float32", description="The same arithmetic for every variant.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Seed of the input data and of the rounds' order.")
    accept_noise: bool = Field(
        default=False,
        description="Keep rounds that other load disturbed. The result is then noisy: intervals, but no verdict.",
    )


class CaseMeasurement(MeasurementSettings):
    """Settings of a case's measurement. Ratios are decimals: `0.01` for the spec's `1%`."""

    rounds_min: int = Field(default=5, ge=2, description="The least number of rounds.")
    rounds_max: int = Field(default=20, description="The greatest number of rounds.")
    target_relative_error: DecimalString = Field(
        default="0.01", description="Half-width of the speedup's interval at which measuring may stop."
    )
    confidence: DecimalString = Field(default="0.95", description="Confidence, shared by all comparisons of the run.")
    equivalence_margin: DecimalString = Field(default="0.02", description="Speedups this close to 1 are equivalent.")
    time_limit_seconds: int = Field(default=600, description="Time limit of the whole case.")


class CaseAccelerator(Document):
    """Where it runs: the profile, the kind of device that the framework must find, and how many."""

    profile: Line = Field(default="cpu", description="The administrator's name for a kind of node.")
    platform: Line = Field(default="cpu", description="The kind of device that the framework must find.")
    devices: int = Field(default=1, description="Devices that each variant uses.")
    target: Line | None = Field(
        default=None, description="What it is compiled for, instead of being measured on the profile's devices."
    )
    price_per_hour: PricePerHour | None = Field(
        default=None,
        description="Price of what the case has to itself, with a currency: for reports, never for a verdict.",
    )

    @property
    def label(self) -> str:
        """What its facts are about: the target, or where it was measured."""
        return self.target or self.profile

    @property
    def price_per_second(self) -> float | None:
        """In its currency; None: nobody said."""
        return float(self.price_per_hour.split()[0]) / 3600 if self.price_per_hour else None

    @property
    def currency(self) -> str:
        """By the code of ISO 4217; empty without a price."""
        return self.price_per_hour.split()[1] if self.price_per_hour else ""


class CaseOrigin(Document):
    """Where the case came from, for labels and reports; on a laptop the namespace and the UID are empty."""

    run: Line = Field(description="The BenchmarkRun's name.")
    series: Line = Field(description="The series that the result belongs to.")
    namespace: Line = Field(default="", description="The BenchmarkRun's namespace.")
    uid: Line = Field(default="", description="The BenchmarkRun's UID.")
    attempt: int = Field(default=1, description="1 for the first attempt at this case.")


SCRIPT_SUFFIX = ".py"


def name_of_file(file: str) -> str:
    """The name of the workload that a file defines: of `my_filter.py` it is `my-filter`."""
    return file.removesuffix(SCRIPT_SUFFIX).replace("_", "-")


ScriptFile = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.py$", max_length=63)]
"""The name of a workload's own file."""


class ConfigMapKey(Document):
    """A key of a ConfigMap in the run's namespace, that holds a workload's file."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)] = Field(
        description="The ConfigMap's name."
    )
    key: ScriptFile = Field(description="The file's name: my_filter.py becomes the workload my-filter.")


class Script(Document):
    """A workload of one's own: a Python file with functions, or one class that inherits accelbench.workload.Workload.

    On a laptop the file lies beside the manifest, whichever of the two names it.
    """

    file: Annotated[ScriptFile | None, rules.ON_A_LAPTOP] = Field(
        default=None, description="On a laptop: the file, next to the manifest. my_filter.py is the workload my-filter."
    )
    config_map_key_ref: ConfigMapKey | None = Field(
        default=None,
        description="Where the file is in a cluster: kubectl create configmap NAME --from-file=my_filter.py",
    )

    @property
    def file_name(self) -> str:
        """Of the file, wherever it is."""
        return self.config_map_key_ref.key if self.config_map_key_ref else self.file or ""


class Case(Document):
    """One combination of swept parameters: one case is one Job and yields one result."""

    format: Literal["accelbench.dev/case/v1alpha1"] = "accelbench.dev/case/v1alpha1"
    name: Line = Field(description="Unique in the run.")
    origin: CaseOrigin
    workload: Line = Field(description="The workload's name, in the catalogue or from its script's file.")
    script: Script | None = Field(
        default=None,
        description="Where a script's file came from; the fingerprint's workloadSource identifies its content.",
    )
    parameters: dict[Line, ParameterValue] = Field(
        default={},
        description="From spec and sweep; the workload's own model fills in defaults and checks bounds.",
    )
    swept: dict[Line, ParameterValue] = Field(
        default={}, description="The parameters that the sweep varies, so that a reader can tell the cases apart."
    )
    variants: tuple[CaseVariant, ...] = Field(description="The variants to compare.")
    baseline: Line = Field(description="The variant that the others are compared with.")
    comparisons_in_run: int = Field(
        default=1, description="All comparisons of the run, which share its confidence (Bonferroni)."
    )
    measurement: CaseMeasurement = CaseMeasurement()
    accelerator: CaseAccelerator = CaseAccelerator()

"""Define the case document: everything that a runner needs to measure one case, without looking anything up.

The plan writes it, an annotation carries it to the pod (or a file to the child process), `python -m accelbench_runner
CASE` reads it, and the result contains it, so that a result shows what was requested.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from accelbench import platforms
from accelbench.api import rules
from accelbench.api.environment import CaseEnvironment
from accelbench.document import DecimalString, Document, Line, on_one_line

Precision = Literal["float64", "float32", "tf32", "bfloat16", "float16"]
"""Arithmetic that a program computes in."""
PrecisionPolicy = Literal["float64", "float32", "tf32", "bfloat16", "float16", "default"]
"""Arithmetic that a run requests of all variants; `default`: float32 arrays, with each framework's default products."""
ParameterValue = (
    Annotated[int, Field(ge=1 - 2**53, le=2**53 - 1)]
    | Annotated[str, Field(max_length=256), AfterValidator(on_one_line)]
)
"""Integer that every JSON reader can represent, or a string."""
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339, in UTC."""

PricePerHour = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)? [A-Z]{3}$", max_length=40)]
"""Amount and ISO 4217 currency code: `11.06 USD`."""


class CaseVariant(Document):
    """Name one variant of the comparison, its framework, mode and options."""

    name: Line = Field(description="Unique in the run.")
    use: Line = Field(description="Framework and mode.")
    options: dict[Line, ParameterValue] = Field(default={}, description="Options of the mode.")
    environment: Line | None = Field(default=None, description="The environment that it runs in; none: accelbench's.")


class Arrivals(Document):
    """Define when requests arrive: at the same times for every variant of a round, however fast it serves them."""

    rate_per_second: int = Field(
        ge=1, le=10_000, description="Mean requests in a second: the same for all variants, so that they have one load."
    )
    process: Literal["poisson", "constant"] = Field(
        default="poisson",
        description="poisson: independent requests, at random intervals. constant: at equal intervals.",
    )
    requests: int = Field(default=1000, ge=100, le=10_000, description="Requests in a launch.")

    @property
    def seconds(self) -> float:
        """Return about how long the requests of one launch take to arrive."""
        return self.requests / self.rate_per_second


class MeasurementSettings(Document):
    """Hold the settings that a run passes on to each of its cases unchanged."""

    precision: PrecisionPolicy = Field(
        default="float32",
        description="The same arithmetic for every variant; or default: arrays in float32, and products as each "
        "framework computes them by default, which on NVIDIA GPUs is not the same arithmetic.",
    )
    protocol: Literal["steady", "latency", "arrivals"] | None = Field(
        default=None,
        description="steady: blocks of many calls. latency: call by call, p50 and p99. arrivals: requests that arrive "
        "at times of their own and may have to wait, p50 and p99 of their response. Default: the workload's own.",
    )
    arrivals: Arrivals | None = Field(default=None, description="When requests arrive; for the protocol arrivals only.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Seed of the input data and of the rounds' order.")
    accept_noise: bool = Field(
        default=False,
        description="Keep rounds that other load disturbed. The result is then noisy: intervals, but no verdict.",
    )
    explain: bool | None = Field(
        default=None,
        description="Launch each variant once more, under its framework's profiler, after all that is timed: the "
        "report then shows the operations that take most. Default: false.",
    )


OVERTIME_SECONDS = 3600
"""Seconds beyond the case's time limit in which a runner may start and deliver its result, before it ends itself."""


class CaseMeasurement(MeasurementSettings):
    """Hold the settings of a case's measurement; ratios are decimals: `0.01` for the spec's `1%`."""

    rounds_min: int = Field(default=5, ge=2, description="The minimum number of rounds.")
    rounds_max: int = Field(default=20, description="The maximum number of rounds.")
    target_relative_error: DecimalString = Field(
        default="0.01", description="Half-width of the speedup's interval at which measuring may stop."
    )
    confidence: DecimalString = Field(default="0.95", description="Confidence, shared by all comparisons of the run.")
    equivalence_margin: DecimalString = Field(default="0.02", description="Speedups this close to 1 are equivalent.")
    time_limit_seconds: int = Field(default=600, description="Time limit of the whole case.")

    @property
    def runner_limit_seconds(self) -> int:
        """Return the seconds after which the runner ends itself, whatever it is doing."""
        return self.time_limit_seconds + OVERTIME_SECONDS


class CaseAccelerator(Document):
    """Describe where the case runs: the profile, the platform that the framework must find, the devices."""

    profile: Line = Field(default="cpu", description="The administrator's name for a kind of node.")
    platform: Line = Field(default="cpu", description="The platform that the framework must find: cpu, cuda, tpu.")
    devices: int = Field(default=1, description="Devices that each variant uses.")
    target: Line | None = Field(
        default=None, description="The target to compile for, instead of measuring on the profile's devices."
    )
    price_per_hour: PricePerHour | None = Field(
        default=None,
        description="Price of the devices or the node that the case occupies, with a currency; only for reports.",
    )

    @property
    def label(self) -> str:
        """Return the target that the case is compiled for; without a target, the profile."""
        return self.target or self.profile

    @property
    def price_per_second(self) -> float | None:
        """Return the price per second, an amount of `currency`; None without a price."""
        if not self.price_per_hour:
            return None
        amount, _currency = self.price_per_hour.split()
        return float(amount) / 3600

    @property
    def currency(self) -> str:
        """Return the price's ISO 4217 currency code, such as `USD`; empty without a price."""
        if not self.price_per_hour:
            return ""
        _amount, currency = self.price_per_hour.split()
        return currency


class CaseOrigin(Document):
    """Name the run that the case belongs to; on a laptop namespace and UID are empty."""

    run: Line = Field(description="The BenchmarkRun's name.")
    series: Line = Field(description="The series that the result belongs to.")
    namespace: Line = Field(default="", description="The BenchmarkRun's namespace.")
    uid: Line = Field(default="", description="The BenchmarkRun's UID.")
    attempt: int = Field(default=1, description="1 for the first attempt at this case.")


SCRIPT_SUFFIX = ".py"


def workload_name_from_file(file: str) -> str:
    """Return the name of a file's workload: `my-filter` for `my_filter.py`, `01-fft` for `01-FFT.py`."""
    return re.sub("[^a-z0-9]", "-", file.removesuffix(SCRIPT_SUFFIX).lower()).strip("-")


SCRIPT_NAME = r"^[A-Za-z0-9][-A-Za-z0-9._]*\.py$"
"""Pattern of the names that a script's file may have."""
ScriptFile = Annotated[str, Field(pattern=SCRIPT_NAME, max_length=63)]
"""File name of a user's own workload."""


class ConfigMapKey(Document):
    """Select a key of a ConfigMap in the run's namespace that holds a workload's file."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)] = Field(
        description="The ConfigMap's name."
    )
    key: ScriptFile = Field(description="The file's name: my_filter.py becomes the workload my-filter.")


class Script(Document):
    """Use your own workload: a Python file with functions, or a class that inherits accelbench.workload.Workload.

    On a laptop the file is next to the manifest, whichever of the two fields names it.
    """

    file: Annotated[ScriptFile | None, rules.LAPTOP_ONLY] = Field(
        default=None, description="On a laptop: the file, next to the manifest. my_filter.py is the workload my-filter."
    )
    config_map_key_ref: ConfigMapKey | None = Field(
        default=None,
        description="Where the file is in a cluster: kubectl create configmap NAME --from-file=my_filter.py",
    )

    @property
    def file_name(self) -> str:
        """Return the name of the script's file; empty if there is none."""
        if self.config_map_key_ref:
            return self.config_map_key_ref.key
        return self.file or ""


class Case(Document):
    """Describe one combination of swept parameters: a case has one Job and gives one result."""

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
        default={}, description="The parameters that the sweep varies, which distinguish the cases."
    )
    variants: tuple[CaseVariant, ...] = Field(description="The variants to compare.")
    environments: tuple[CaseEnvironment, ...] = Field(default=(), description="The environments of its variants.")
    baseline: Line = Field(description="The variant that the others are compared with.")
    comparisons_in_run: int = Field(
        default=1, description="All comparisons of the run, which share its confidence (Bonferroni)."
    )
    measurement: CaseMeasurement = CaseMeasurement()
    accelerator: CaseAccelerator = CaseAccelerator()

    def environment_of(self, variant: str) -> CaseEnvironment | None:
        """Return the environment that the named variant runs in; None if that is accelbench's own."""
        environment_names = {case_variant.name: case_variant.environment for case_variant in self.variants}
        name = environment_names.get(variant)
        return next((environment for environment in self.environments if environment.name == name), None)

    @property
    def arithmetic(self) -> Precision:
        """Return the arithmetic for the tolerance of outputs; for `default`, the least exact that a framework uses."""
        precision = self.measurement.precision
        if precision != "default":
            return precision
        return platforms.find(self.accelerator.platform).default_arithmetic

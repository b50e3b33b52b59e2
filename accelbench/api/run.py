"""`BenchmarkRun`, group `accelbench.dev/v1alpha1`: what a user writes, and what the operator reports back.

The CRD is generated from these models (`accelbench.api.crd`); the rules that span fields stand in
`accelbench.api.rules`.
No floats: durations are integers named `...Seconds`, percentages and ratios are strings.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from accelbench.api.case import ParameterValue, Precision
from accelbench.document import DecimalString, Document

GROUP = "accelbench.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

MAXIMUM_CASES = 256
MAXIMUM_VARIANTS = 16
MAXIMUM_ROUNDS = 50

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)]
VariantName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9./]*[a-z0-9])?$", min_length=1, max_length=63)
]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
Percentage = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}(\.[0-9]{1,4})?%$")]


class WorkloadReference(Document):
    """Which computation, with which parameters."""

    name: Name = Field(description="A workload of the catalogue: `accelbench workloads` lists them.")
    parameters: dict[ParameterName, ParameterValue] = Field(
        default={}, max_length=64, description="The workload's parameters; those left out take their defaults."
    )


class Variant(Document):
    """One competitor."""

    use: VariantName = Field(description="Framework and mode, e.g. jax/jit or pytorch/compile.")
    name: VariantName | None = Field(default=None, description="Unique in the run; default: `use`.")
    options: dict[ParameterName, ParameterValue] = Field(
        default={}, max_length=16, description="Options of the mode, e.g. mode: max-autotune for pytorch/compile."
    )

    @property
    def label(self) -> str:
        """The variant's name in results: `name`, or `use` where none was given."""
        return self.name or self.use


class SweepAxis(Document):
    """One parameter and the values it takes; axes multiply."""

    name: ParameterName
    values: tuple[ParameterValue, ...] = Field(min_length=1, max_length=MAXIMUM_CASES)


class Rounds(Document):
    """How many rounds: at least `min`, at most `max`; between them the interval's width decides."""

    min: int = Field(default=5, ge=3, le=MAXIMUM_ROUNDS)
    max: int = Field(default=20, ge=3, le=MAXIMUM_ROUNDS)


class Measurement(Document):
    """How each case is measured, and how sure the verdict has to be."""

    precision: Precision = Field(default="float32", description="The same arithmetic for every variant.")
    rounds: Rounds = Rounds()
    target_relative_error: Percentage = Field(
        default="1%", description="Half-width of the speedup's interval at which measuring may stop."
    )
    confidence: Percentage = Field(default="95%", description="Of the interval, shared by all comparisons of the run.")
    equivalence_margin: Percentage = Field(default="2%", description="Speedups this close to 1 count as equivalent.")
    time_limit_seconds: int = Field(default=600, ge=10, le=86400, description="Per case.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Of the input data and of the rounds' order.")


class Accelerator(Document):
    """Which nodes, by the administrator's profile name."""

    profile: Name = "cpu"
    devices_per_node: int = Field(default=1, ge=1, le=16)
    nodes: int = Field(default=1, ge=1, le=1, description="More than one node is not supported yet.")


class Expectation(Document):
    """An assertion on every case's result that decides whether the run succeeded."""

    metric: Literal["speedup", "seconds", "compileSeconds"]
    variant: VariantName
    at_least: DecimalString | None = None
    at_most: DecimalString | None = None


class RunPolicy(Document):
    """How the run is executed; the only part of the spec that can change, and only where it says so."""

    suspend: bool = Field(default=False, description="May change; true discards the case in flight.")
    cancel: bool = Field(default=False, description="May change to true, once; the run then finishes as cancelled.")
    parallelism: int = Field(default=1, ge=1, le=64, description="Cases in flight at once.")
    infrastructure_retries: int = Field(
        default=1, ge=0, le=10, description="New attempts per case after a failure that no variant caused."
    )
    start_deadline_seconds: int | None = Field(default=None, ge=1, description="A case's pod must start within this.")
    active_deadline_seconds: int | None = Field(
        default=None, ge=1, description="Of the whole run; default: derived from cases, parallelism and time limits."
    )
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, description="The run is deleted after this.")


class BenchmarkRunSpec(Document):
    """What is to be compared, on what, and how surely."""

    series: Name | None = Field(default=None, description="Results of the same benchmark over time; default: the name.")
    workload: WorkloadReference
    variants: tuple[Variant, ...] = Field(min_length=1, max_length=MAXIMUM_VARIANTS)
    baseline: VariantName | None = Field(default=None, description="A variant's name; default: the first variant.")
    sweep: tuple[SweepAxis, ...] = Field(default=(), max_length=4)
    measurement: Measurement = Measurement()
    accelerator: Accelerator = Accelerator()
    pod_template: dict[str, Any] = Field(default={}, description="A PodTemplateSpec fragment, merged over ours.")
    expectations: tuple[Expectation, ...] = Field(default=(), max_length=32)
    run_policy: RunPolicy = RunPolicy()


class Condition(Document):
    """A `metav1.Condition`."""

    type: Literal["Accepted", "Finished", "Succeeded"]
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int = 0


class CaseCounts(Document):
    """How many cases are where."""

    total: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class Attempt(Document):
    """The latest attempt at a case; recorded before its Job is created, so that nothing is created twice."""

    case: str
    number: int
    job: str
    started: str
    job_uid: str | None = Field(default=None, description="Set once the Job is there: from then on, none is lost.")
    retries: int = Field(default=0, description="How many attempts before this one the infrastructure lost.")
    failure: str | None = Field(default=None, description="Why the attempt before this one, or this one, was lost.")
    finished: bool = False


class Headline(Document):
    """One comparison as `kubectl get` shows it; the rest is in the BenchmarkResult named."""

    case: str
    variant: str
    verdict: str
    speedup: str | None = None
    interval: str | None = None
    rounds: int = 0
    result: str


class BenchmarkRunStatus(Document):
    """What the operator reports; derived from attempts and results, so that a restart shows the same."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)

    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    phase: str = Field(default="", description="One word for `kubectl get`: the reason of the telling condition.")
    cases: CaseCounts = CaseCounts()
    headline: str = Field(default="", description="The finding in a few words, for `kubectl get`.")
    started: str | None = None
    finished: str | None = None
    active_since: str | None = Field(default=None, description="Since when a case runs; unset while none does.")
    active_seconds: int = Field(default=0, description="Time active before that; queued and suspended time is none.")
    attempts: tuple[Attempt, ...] = Field(default=(), max_length=MAXIMUM_CASES)
    comparisons: tuple[Headline, ...] = Field(default=(), max_length=64)
    comparisons_omitted: int = 0


class ObjectMeta(Document):
    """The part of Kubernetes' metadata that accelbench reads; the rest is kept as it came."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    name: str = Field(default="", max_length=253)
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class BenchmarkRun(Document):
    """A paired experiment as an API object."""

    api_version: Literal["accelbench.dev/v1alpha1"]
    kind: Literal["BenchmarkRun"]
    metadata: ObjectMeta
    spec: BenchmarkRunSpec
    status: BenchmarkRunStatus = BenchmarkRunStatus()

    @property
    def series(self) -> str:
        """The series that its results belong to."""
        return self.spec.series or self.metadata.name

    @property
    def baseline(self) -> str:
        """The baseline variant's name."""
        return self.spec.baseline or self.spec.variants[0].label

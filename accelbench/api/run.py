"""Define `BenchmarkRun` of `accelbench.dev/v1alpha1`: what a user writes, and what the operator reports.

The CRD is generated from these models (`accelbench.api.crd`); what bounds and patterns cannot express is a rule of
`accelbench.api.rules`, annotated on its field. `accelbench.api.manifest` reads manifests and checks both as the API
server does. There are no floats: durations are integers named `...Seconds`, percentages and ratios are strings.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints

from accelbench.api import rules
from accelbench.api.case import MeasurementSettings, ParameterValue, Script, Timestamp, workload_name_from_file
from accelbench.api.environment import Environment
from accelbench.api.metadata import Name, ObjectMeta
from accelbench.api.number_registry import EXPECTED, NUMBERS, ExpectedNumber
from accelbench.api.pod_template import PodTemplateFragment
from accelbench.api.profiles import Profile
from accelbench.document import Document

MAXIMUM_CASES = 256
MAXIMUM_SPEC_BYTES = 64 * 1024
"""Maximum size of a spec's JSON. Each case's Job and result has a copy of most of it, and a result has 256 KiB."""
MAXIMUM_VARIANTS = 16
MAXIMUM_ENVIRONMENTS = MAXIMUM_VARIANTS
MAXIMUM_ROUNDS = 50
MAXIMUM_AXES = 4
MAXIMUM_CONDITIONS = 32
MAXIMUM_TARGETS = 16

VariantName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$", min_length=1, max_length=63)
]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=63)]
ObservationName = Annotated[str, StringConstraints(pattern=r"^[a-z][A-Za-z0-9]*$", max_length=32)]
TargetName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[0-9]+)?$", max_length=32)]
Percentage = Annotated[str, StringConstraints(max_length=8)]
Bound = Annotated[str, StringConstraints(pattern=rules.BOUND, max_length=40)]
MAXIMUM_SECONDS = 2**31 - 1


def _list_with_keys(*fields: str) -> dict[str, JsonValue]:
    """Return the schema keywords for a list in which no two items have the same values of `fields`."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(fields)}


class WorkloadReference(Document):
    """Select the computation to measure, and its parameters."""

    name: Name | None = Field(
        default=None, description="A workload of the catalogue: `accelbench workloads` lists them."
    )
    script: Annotated[Script | None, rules.one_of("file", "configMapKeyRef")] = Field(
        default=None, description="Your own workload, instead of a name."
    )
    parameters: dict[str, ParameterValue] = Field(
        default={}, max_length=64, description="The workload's parameters; omitted ones have their defaults."
    )

    @property
    def label(self) -> str:
        """Return the workload's name, or the name that a script's file gives it; empty without both."""
        if self.name:
            return self.name
        return workload_name_from_file(self.script.file_name) if self.script else ""


class Variant(Document):
    """Define one variant to compare: a framework in a mode, with options."""

    use: VariantName = Field(
        description="Framework and mode, e.g. jax/jit or pytorch/compile. A script's function jax_scan is jax_scan/jit."
    )
    name: VariantName | None = Field(default=None, description="Unique in the run; default: `use`.")
    options: dict[str, ParameterValue] = Field(
        default={}, max_length=16, description="Options of the mode, e.g. mode: max-autotune for pytorch/compile."
    )
    environment: Name | None = Field(
        default=None, description="The environment that it runs in, of spec.environments; default: accelbench's own."
    )

    @property
    def label(self) -> str:
        """Return the variant's name in results: `name`, or else `use`."""
        return self.name or self.use


class SweepAxis(Document):
    """Vary one parameter over values; with several axes, each combination is a case."""

    name: ParameterName = Field(description="A parameter of the workload that is not in workload.parameters.")
    values: tuple[ParameterValue, ...] = Field(
        min_length=1,
        max_length=MAXIMUM_CASES,
        description="The values, in the order in which they are measured.",
        # In CEL, comparing 256 values with each other exceeds the cost limit; the API server checks sets itself.
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


class Rounds(Document):
    """Bound the number of rounds; within the bounds, measuring stops when the intervals are narrow enough."""

    min: int = Field(default=5, ge=3, le=MAXIMUM_ROUNDS, description="The minimum number of rounds.")
    max: int = Field(default=20, ge=3, le=MAXIMUM_ROUNDS, description="The maximum number of rounds.")


class Measurement(MeasurementSettings):
    """Define how each case is measured, and how certain the verdict must be."""

    rounds: Annotated[Rounds, rules.MIN_AT_MOST_MAX] = Rounds()
    target_relative_error: Annotated[Percentage, rules.percentage("0", "50", "1%", excludes_minimum=True)] = Field(
        default="1%", description="Half-width of the speedup's interval at which measuring may stop."
    )
    confidence: Annotated[Percentage, rules.percentage("50", "99.99", "95%")] = Field(
        default="95%", description="Confidence of the intervals, shared by all comparisons of the run."
    )
    equivalence_margin: Annotated[Percentage, rules.percentage("0", "50", "2%")] = Field(
        default="2%", description="Speedups this close to 1 count as equivalent; with 0% none does."
    )
    time_limit_seconds: int = Field(default=600, ge=10, le=86400, description="Time limit of each case.")


class Accelerator(Document):
    """Select the nodes to use, by the administrator's profile name."""

    profile: Name = Field(default="cpu", description="The administrator's name for a kind of node.")
    devices_per_node: Annotated[int, rules.AT_MOST_ONE] = Field(
        default=1, ge=1, le=16, description="Devices that each variant uses on a node: one, for now."
    )
    nodes: Annotated[int, rules.AT_MOST_ONE] = Field(
        default=1, ge=1, le=16, description="Nodes that each variant uses: one, for now."
    )
    targets: tuple[TargetName, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAXIMUM_TARGETS,
        description="Compile for these instead of measuring: h100x8, v5e-16. Each target is a separate case for each "
        "combination of the sweep; default: the profile's target.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


DEFAULT_CLASS = "accelbench"
ResultRetentionPolicy = Literal["Retain", "Delete"]


class Expectation(Document):
    """Assert something about every case's result; the run succeeds only if all expectations are met."""

    metric: ExpectedNumber | None = Field(
        default=None,
        description=" ".join(f"{name}: {NUMBERS[name].meaning}" for name in EXPECTED),
    )
    observation: ObservationName | None = Field(
        default=None, description="An untimed observation of the workload, e.g. compilations or raised."
    )
    variant: VariantName = Field(description="A variant's name.")
    at_least: Bound | None = Field(default=None, description="A decimal, as a string.")
    at_most: Bound | None = Field(default=None, description="A decimal, as a string.")
    equals: str | None = Field(
        default=None,
        max_length=120,
        description="The observation's value in every launch; numbers are compared as numbers.",
    )
    target: TargetName | None = Field(
        default=None, description="Applies only to cases that are compiled for this target; default: to every case."
    )

    @property
    def subject(self) -> str:
        """Return the name of the expected metric or observation; empty if neither is set."""
        return self.metric or self.observation or ""


class RunPolicy(Document):
    """Define how the run is executed. Only fields marked `may change` can be changed later."""

    suspend: bool = Field(default=False, description="May change; true discards the case in flight.")
    cancel: Annotated[bool, rules.CANCEL_IS_FINAL] = Field(
        default=False, description="May change to true, once; the run then finishes as cancelled."
    )
    parallelism: int = Field(default=1, ge=1, le=64, description="Cases in flight at once; may change, like a Job's.")
    infrastructure_retries: int = Field(
        default=1, ge=0, le=10, description="New attempts per case after a failure of the infrastructure."
    )
    disruption_retries: int = Field(
        default=10,
        ge=0,
        le=100,
        description="New attempts per case after its node was reclaimed or drained, or its pod preempted.",
    )
    start_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=MAXIMUM_SECONDS,
        description="A case's pod must start within this time, queues included; may change. Default: 24 hours, which "
        "start when a queue has admitted the case.",
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=MAXIMUM_SECONDS,
        description="Deadline of the whole run; may change; default: derived from cases, parallelism and time limits.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=MAXIMUM_SECONDS,
        description="The run is deleted after this time, and so are its results if resultRetentionPolicy is Delete; "
        "may change; default: never.",
    )
    failed_jobs_history_limit: int = Field(
        default=3,
        ge=0,
        le=MAXIMUM_CASES,
        description="The latest Jobs of cases without a valid result that stay after their end, with pods and logs; "
        "may change.",
    )
    failed_jobs_history_seconds: int = Field(
        default=3600,
        ge=0,
        le=MAXIMUM_SECONDS,
        description="Seconds that those Jobs stay after their end; may change.",
    )
    result_retention_policy: ResultRetentionPolicy = Field(
        default="Retain",
        description="What happens to its results when the run is deleted. Retain: they stay as long as the operator "
        "keeps them. Delete: they are deleted with the run.",
    )


Sweep = Annotated[tuple[SweepAxis, ...], rules.UNIQUE_AXES, rules.at_most_cases(MAXIMUM_CASES, MAXIMUM_AXES)]
Environments = Annotated[
    tuple[Annotated[Environment, rules.REQUIREMENTS_OR_INTERPRETER], ...],
    rules.UNIQUE_ENVIRONMENTS,
    rules.ENVIRONMENTS_ON_LAPTOPS,
]
Expectations = tuple[
    Annotated[
        Expectation,
        rules.one_of("metric", "observation"),
        rules.EXPECTATION_HAS_A_BOUND,
        rules.EXPECTATION_CAN_BE_MET,
        rules.EQUALS_NEEDS_OBSERVATION,
        rules.EQUALS_EXCLUDES_BOUNDS,
    ],
    ...,
]


class BenchmarkRunSpec(Document):
    """Define what to compare, where, and how certain the result must be."""

    class_name: Name = Field(
        default=DEFAULT_CLASS,
        description="The operator with the same className handles the run; others ignore it.",
    )
    series: Name | None = Field(
        default=None, description="Groups results of the same benchmark over time; default: the run's name."
    )
    workload: Annotated[WorkloadReference, rules.one_of("name", "script")]
    variants: Annotated[tuple[Variant, ...], rules.UNIQUE_VARIANTS] = Field(
        min_length=1, max_length=MAXIMUM_VARIANTS, description="The variants to compare, each a framework in a mode."
    )
    environments: Environments = Field(
        default=(),
        max_length=MAXIMUM_ENVIRONMENTS,
        description="Python environments for variants, other than accelbench's own; on a laptop only.",
    )
    baseline: VariantName | None = Field(default=None, description="A variant's name; default: the first variant.")
    sweep: Sweep = Field(
        default=(), max_length=MAXIMUM_AXES, description="Each combination is a case; the last axis varies fastest."
    )
    measurement: Annotated[Measurement, rules.ARRIVALS_WITH_THEIR_PROTOCOL] = Measurement()
    accelerator: Accelerator = Accelerator()
    pod_template: PodTemplateFragment = Field(
        default={}, description="A PodTemplateSpec fragment, merged over the operator's."
    )
    expectations: Expectations = Field(
        default=(), max_length=32, description="What every case's result must show for the run to succeed."
    )
    run_policy: RunPolicy = RunPolicy()


Spec = Annotated[
    BenchmarkRunSpec,
    rules.BASELINE_IS_A_VARIANT,
    rules.SWEPT_OR_FIXED,
    rules.EXPECTATIONS_NAME_VARIANTS,
    rules.BASELINE_NOT_OVER_ITSELF,
    rules.ARRIVALS_FIT_THE_LIMIT,
    rules.ENVIRONMENTS_ARE_DEFINED,
]
_ONE_EXPERIMENT = "a run is one experiment; apply it under another name"
_IN_FLIGHT = "all cases of a run share it; apply the run under another name"
_RETAINED = "results are stored with it; apply the run under another name"
IMMUTABLE_FIELDS = (
    *(
        rules.immutable_unless_refused(f"spec.{field.alias or name}", _ONE_EXPERIMENT)
        for name, field in BenchmarkRunSpec.model_fields.items()
        if name != "run_policy"
    ),
    rules.immutable_unless_refused("spec.runPolicy.infrastructureRetries", _IN_FLIGHT),
    rules.immutable_unless_refused("spec.runPolicy.disruptionRetries", _IN_FLIGHT),
    rules.immutable_unless_refused("spec.runPolicy.resultRetentionPolicy", _RETAINED),
)
"""Rules that forbid changes of a run's fields; they belong to the schema of the whole object."""


_CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
"""Pattern of metav1.Condition."""


class Condition(Document):
    """Report one aspect of the run's state, as a `metav1.Condition`."""

    type: Annotated[str, Field(max_length=316, pattern=_CONDITION_TYPE)] = Field(
        description="The kind of condition; other controllers' conditions are kept."
    )
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="The reason in one word, for programs.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="The reason and what to do, for people.")
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    # Not 0: `kubectl wait` ignores a condition that is older than the object.
    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that it describes."
    )


class CaseCounts(Document):
    """Count the cases in each state."""

    total: int = Field(default=0, ge=0, description="All cases of the run.")
    active: int = Field(default=0, ge=0, description="Cases with a Job in flight.")
    measured: int = Field(default=0, ge=0, description="Cases with a result, even if a variant failed.")
    failed: int = Field(default=0, ge=0, description="Cases that ended without a result.")


class UsedRunner(Document):
    """Record what the run's pods are made from; later changes of the operator's settings do not apply."""

    image: str = Field(description="The profile's image for runners, or the operator's; podTemplate can name another.")
    profile: Profile = Field(description="The profile when the run was accepted.")
    pod_template: Annotated[dict[str, Any], Field(json_schema_extra={rules.ANY_FIELDS_KEYWORD: True})] = Field(
        default={}, description="The administrator's defaults for pods when the run was accepted."
    )


class Attempt(Document):
    """Record the latest attempt at a case, before its Job is created, so that no Job is created twice."""

    case: str = Field(description="The case's name.")
    number: int = Field(ge=1, description="1 for the first attempt.")
    job: str = Field(description="The Job's name.")
    start_time: Timestamp = Field(description="When the attempt was recorded.")
    job_uid: str | None = Field(
        default=None, description="Set once the Job exists; from then on, a missing Job was deleted."
    )
    retries: int = Field(
        default=0, ge=0, description="Number of earlier attempts that failed because of the infrastructure."
    )
    disruptions: int = Field(
        default=0, ge=0, description="Number of earlier attempts that ended because the cluster took their node or pod."
    )
    reason: str | None = Field(
        default=None, description="Why this attempt or the one before it failed: one word, for programs."
    )
    message: str = Field(default="", description="The reason and what to do, for people.")
    not_before: Timestamp | None = Field(
        default=None, description="When the next attempt starts, after one that failed because of the infrastructure."
    )
    finished: bool = Field(default=False, description="True: no result will come.")
    completion_time: Timestamp | None = Field(default=None, description="When finished became true.")
    pod: str | None = Field(default=None, description="The pod's name, once it exists.")
    node: str | None = Field(default=None, description="The node that the pod is on.")
    image: str | None = Field(default=None, description="The pod's image, by digest if the node reports one.")


class ComparisonStatus(Document):
    """Summarise one comparison for `kubectl get`; the named BenchmarkResult has the rest."""

    case: str = Field(description="The case's name.")
    variant: str = Field(description="The variant that is compared with the baseline.")
    verdict: str = Field(
        description="faster, slower, equivalent or inconclusive; without a verdict: failed, invalid, noisy or none."
    )
    speedup: str | None = Field(default=None, description="Baseline seconds / variant seconds.")
    interval: str | None = Field(default=None, description="Interval of the speedup, at the run's confidence.")
    rounds: int = Field(default=0, ge=0, description="Complete pairs of launches behind the interval.")
    result: str = Field(description="The BenchmarkResult's name.")


class BenchmarkRunStatus(Document):
    """Report the run's progress, derived from attempts and results, so that it survives restarts."""

    observed_generation: int = Field(default=0, ge=0, description="The metadata.generation that was last acted on.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        max_length=MAXIMUM_CONDITIONS,
        description="Accepted: the spec can be run. Finished: nothing more will happen. "
        "Succeeded: every case has a valid result that meets the expectations. For kstatus, only while they are True: "
        "Reconciling: the run is unfinished and not suspended. Stalled: it finished without success.",
        json_schema_extra=_list_with_keys("type"),
    )
    phase: str = Field(default="", description="One word for `kubectl get`: the reason of the Finished condition.")
    cases: CaseCounts = CaseCounts()
    headline: str = Field(default="", description="The finding in a few words, for `kubectl get`.")
    start_time: Timestamp | None = Field(default=None, description="When the first case's Job was created.")
    completion_time: Timestamp | None = Field(default=None, description="When the run finished.")
    active_start_time: Timestamp | None = Field(
        default=None, description="Since when a case has been running; unset while none is."
    )
    active_seconds: int = Field(
        default=0, ge=0, description="Seconds active before activeStartTime; queued and suspended time does not count."
    )
    runner: UsedRunner | None = Field(
        default=None, description="What its pods are made from, fixed when it was accepted."
    )
    workload_source: str = Field(
        default="",
        description="The digest of the workload's file; several if the file changed between cases.",
    )
    measured_cases: tuple[str, ...] = Field(
        default=(),
        max_length=MAXIMUM_CASES,
        description="The cases whose BenchmarkResult was stored, in the order of the sweep.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    attempts: tuple[Attempt, ...] = Field(
        default=(),
        max_length=MAXIMUM_CASES,
        description="The latest attempt at each case that has begun and has no result: in progress, to be retried, "
        "or failed.",
        json_schema_extra=_list_with_keys("case"),
    )
    comparisons: tuple[ComparisonStatus, ...] = Field(
        default=(),
        max_length=64,
        description="The first comparisons; the BenchmarkResults have all of them.",
        json_schema_extra=_list_with_keys("case", "variant"),
    )
    comparisons_omitted: int = Field(default=0, ge=0, description="Comparisons that are not listed here.")


class BenchmarkRun(Document):
    """Compare implementations of a computation in a paired experiment."""

    api_version: Literal["accelbench.dev/v1alpha1"]
    kind: Literal["BenchmarkRun"]
    metadata: ObjectMeta
    spec: Spec
    status: BenchmarkRunStatus = BenchmarkRunStatus()

    @property
    def series(self) -> str:
        """Return the series of the run's results: `spec.series`, or else the run's name."""
        return self.spec.series or self.metadata.name

    @property
    def baseline(self) -> str:
        """Return the baseline's name in results: `spec.baseline`, or else the first variant."""
        return self.spec.baseline or self.spec.variants[0].label

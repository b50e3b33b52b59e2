"""Accept a run: turn its manifest into a plan, or into the problems that its author has to solve."""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Self

from pydantic import ValidationError

from accelbench import catalogue, platforms
from accelbench.api import labels
from accelbench.api.case import OVERTIME_SECONDS, Case, ConfigMapKey
from accelbench.api.metadata import ObjectMeta
from accelbench.api.pod_template import PodTemplate
from accelbench.api.profiles import Profile, Profiles, UnknownProfileError
from accelbench.api.run import DEFAULT_CLASS, BenchmarkRun, RunPolicy, UsedRunner
from accelbench.catalogue import workload_checks
from accelbench.machine import memory
from accelbench.plan.cases import TooManyCasesError, case_names, plan_case, with_target
from accelbench.plan.problems import check_platform, check_run, check_targets, laptop_only_problems
from accelbench.problem import Problem
from accelbench_operator.runs.job import SCRIPT_DIRECTORY, WORK_DIRECTORY, memory_limit, pod_deadline_seconds, script_of

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
"""Beginning of the annotations that choose a container's AppArmor profile."""
DEFAULT_POLICY = RunPolicy()
_RETENTION_FIELDS = ("ttlSecondsAfterFinished", "failedJobsHistoryLimit", "failedJobsHistorySeconds")
"""Fields of `spec.runPolicy` that `RunRetention` reads."""
RUNNER_DIRECTORIES = (posixpath.dirname(labels.CASE_FILE), WORK_DIRECTORY, SCRIPT_DIRECTORY)
"""Directories that the runner uses, so that no volume of a run may be mounted inside them."""


@dataclass(frozen=True)
class RunSettings:
    """Hold the settings of the operator that affect runs."""

    runner_image: str
    """`ACCELBENCH_RUNNER_IMAGE`."""
    profiles: Profiles
    """Ready profiles and those of the file that `ACCELBENCH_PROFILES` names."""
    pod_template: Mapping[str, Any] = field(default_factory=dict)
    """The file that `ACCELBENCH_POD_TEMPLATE` names: fields of `spec.podTemplate` that neither run nor profile sets."""
    class_name: str = DEFAULT_CLASS
    """`ACCELBENCH_CLASS_NAME`: the class of the runs that this operator reconciles."""
    history_limit: int = 0
    """`ACCELBENCH_RUNS_HISTORY_LIMIT`: see `history.RunHistory`."""


@dataclass(frozen=True)
class RunRetention:
    """Define how long a finished run and its failed Jobs are kept."""

    ttl: timedelta | None = None
    """Time from the run's end to its deletion; None if it is never deleted."""
    failed_jobs: int = DEFAULT_POLICY.failed_jobs_history_limit
    """Maximum number of Jobs of cases without a valid result."""
    failed_jobs_time: timedelta = timedelta(seconds=DEFAULT_POLICY.failed_jobs_history_seconds)
    """Time from the end of a failed Job to its deletion."""

    @classmethod
    def of(cls, policy: RunPolicy) -> Self:
        """Return the retention of a run with that policy."""
        seconds = policy.ttl_seconds_after_finished
        return cls(
            ttl=None if seconds is None else timedelta(seconds=seconds),
            failed_jobs=policy.failed_jobs_history_limit,
            failed_jobs_time=timedelta(seconds=policy.failed_jobs_history_seconds),
        )

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> Self:
        """Return the retention from a run's manifest, even if other fields of the manifest are invalid.

        The fields that are read here are valid, because the API server validates them.
        """
        policy = (manifest.get("spec") or {}).get("runPolicy") or {}
        retention_fields = {name: policy[name] for name in _RETENTION_FIELDS if name in policy}
        return cls.of(RunPolicy.model_validate(retention_fields))


@dataclass(frozen=True)
class Plan:
    """Hold an accepted run.

    The run is kept as JSON, and its cases are planned at each access. As objects, the run and its cases would take many
    times the memory, and each garbage collection would block the event loop several times longer.
    """

    metadata: ObjectMeta
    policy: RunPolicy
    script: ConfigMapKey | None
    """ConfigMap key with the workload's file; None if the image contains the workload."""
    runner_limit: timedelta
    """Maximum time of each runner process, from the start of its container."""
    runner: UsedRunner
    """Image, profile and default pod template that all pods of the run are made from."""
    manifest: bytes
    """The run, as JSON."""
    names: tuple[str, ...]
    """Names of the cases, in order."""

    @classmethod
    def of(cls, run: BenchmarkRun, runner: UsedRunner) -> Self:
        """Return the plan of a run; raise TooManyCasesError if it has too many cases."""
        # A runner ends by itself when it has exceeded the case's time limit by `OVERTIME_SECONDS`.
        runner_limit_seconds = run.spec.measurement.time_limit_seconds + OVERTIME_SECONDS
        return cls(
            metadata=run.metadata,
            policy=run.spec.run_policy,
            script=script_of(run.spec.workload),
            runner_limit=timedelta(seconds=runner_limit_seconds),
            runner=runner,
            manifest=run.to_json().encode(),
            # A profile can have a target that its cases are compiled for; each target makes cases of its own.
            names=case_names(with_target(run, runner.profile.target)),
        )

    @property
    def run(self) -> BenchmarkRun:
        """Return the run; parse its JSON at each access, to save memory."""
        return BenchmarkRun.model_validate_json(self.manifest)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return all cases; plan them at each access, to save memory."""
        return tuple(self.each_case())

    def each_case(self) -> Iterator[Case]:
        """Yield the cases in order, and plan each only when it is needed."""
        run = with_target(self.run, self.profile.target)
        return (self._case(run, index) for index in range(len(self.names)))

    def case(self, name: str) -> Case:
        """Return the case with that name; plan it at each access, to save memory."""
        return self._case(with_target(self.run, self.profile.target), self.names.index(name))

    def _case(self, run: BenchmarkRun, index: int) -> Case:
        """Return the case at that place in `names`; `run` must have the profile's compile target already."""
        return plan_case(run, index, self.profile.platform, self.profile.price_per_hour)

    @property
    def pod_deadline(self) -> timedelta:
        """Return the `activeDeadlineSeconds` of each pod, which count from its acceptance by a kubelet."""
        return timedelta(seconds=pod_deadline_seconds(int(self.runner_limit.total_seconds()), self.policy))

    @property
    def retention(self) -> RunRetention:
        """Return how long the finished run and its failed Jobs are kept."""
        return RunRetention.of(self.policy)

    @property
    def profile(self) -> Profile:
        """Return the profile, which chooses the nodes and devices of the pods."""
        return self.runner.profile


@dataclass(frozen=True)
class Refused:
    """Hold the problems of a run that is not measured."""

    problems: tuple[Problem, ...]
    retention: RunRetention = RunRetention()

    @property
    def message(self) -> str:
        """Return all problems in one line."""
        return "; ".join(str(problem) for problem in self.problems)


@dataclass(frozen=True)
class FinishedRun:
    """Replace the plan of a finished run, because the plans of thousands of runs would fill the memory."""

    retention: RunRetention = RunRetention()


def accept(
    manifest: Mapping[str, Any],
    profiles: Profiles,
    image: str,
    runner: UsedRunner | None = None,
    *,
    pod_template: Mapping[str, Any] = MappingProxyType({}),
) -> Plan | Refused:
    """Return the plan of a run, or the problems of its manifest.

    `image` is the operator's runner image, for profiles without one, and `pod_template` has the administrator's
    defaults. `runner` is the one that the run's status records; None before the first step of the run. A recorded
    runner is used instead of `profiles`, `image` and `pod_template`.
    """

    def choose_runner(run: BenchmarkRun) -> UsedRunner:
        """Return the runner that the run's status records, else the one of the run's profile."""
        # A run keeps its runner, although profiles and defaults may have changed since its first step.
        if runner is not None:
            return runner
        profile = profiles.get(run.spec.accelerator.profile)
        return UsedRunner(image=profile.image or image, profile=profile, pod_template=dict(pod_template))

    outcome = _plan_or_refuse(manifest, choose_runner)
    if isinstance(outcome, Plan):
        return outcome
    # A refused run, too, is deleted after its time to live.
    return replace(outcome, retention=RunRetention.read(manifest))


def _plan_or_refuse(manifest: Mapping[str, Any], choose_runner: Callable[[BenchmarkRun], UsedRunner]) -> Plan | Refused:
    """Return the plan of a run; if the run is invalid, return its problems."""
    try:
        # The operator writes the status and reads it elsewhere, so a damaged status is no reason to refuse the spec.
        run = BenchmarkRun.model_validate({key: value for key, value in manifest.items() if key != "status"})
        # Refuse fields that a run may not set: the API server prunes them only with the CRD of this release.
        PodTemplate.model_validate(run.spec.pod_template)
        runner = choose_runner(run)
        profile = runner.profile
        run_with_target = with_target(run, profile.target)
        problems = check_run(run_with_target)
        if problems:
            return Refused(problems)  # the checks below need a valid spec
        platform = platforms.find(profile.platform)
        problems = (
            *_namespace_problems(run, profile),
            *laptop_only_problems(run),
            *check_platform(run_with_target, platform),
            *check_targets(run_with_target, profile),
            *_pod_template_problems(run, profile),
        )
        if problems:
            return Refused(problems)
        plan = Plan.of(run, _without_namespaces(runner))
        # One case is enough to refuse the run, and other cases of a sweep mostly have the same problem.
        memory_problem = next(_memory_problems(plan), None)
        return Refused((memory_problem,)) if memory_problem else plan
    except (UnknownProfileError, platforms.UnknownPlatformError) as error:
        return Refused((Problem("spec.accelerator.profile", str(error)),))
    except TooManyCasesError as error:
        return Refused((Problem("", str(error)),))
    except ValidationError as error:
        entries = error.errors(include_url=False)
        return Refused(tuple(Problem(_field_path(entry["loc"]), entry["msg"]) for entry in entries))


def _without_namespaces(runner: UsedRunner) -> UsedRunner:
    """Remove the namespaces from the runner's profile: readers of a run's status need not know other tenants' names."""
    return runner.model_copy(update={"profile": runner.profile.model_copy(update={"namespaces": ()})})


def _namespace_problems(run: BenchmarkRun, profile: Profile) -> Iterator[Problem]:
    """Yield a problem if the profile does not admit the run's namespace."""
    namespace = run.metadata.namespace
    if not profile.admits(namespace):
        admitted = ", ".join(profile.namespaces)
        message = (
            f"{profile.name} is for runs in {admitted}, but this run is in {namespace}; ask whoever runs the operator"
        )
        yield Problem("spec.accelerator.profile", message)


def _pod_template_problems(run: BenchmarkRun, profile: Profile) -> Iterator[Problem]:
    """Yield a problem for each field of the run's pod template that is forbidden or contradicts the profile."""
    template = PodTemplate.model_validate(run.spec.pod_template)
    path = "spec.podTemplate"
    annotations = template.metadata.annotations if template.metadata else {}
    for name in annotations:
        if name.startswith(APPARMOR):
            yield Problem(f"{path}.metadata.annotations", f"{name}: not for a run to set; remove it")
    if template.spec is None:
        return
    for name, value in template.spec.node_selector.items():
        # A run may select nodes by further labels, but not by other values of the profile's labels.
        required = profile.node_labels.get(name, value)
        if value != required:
            yield Problem(f"{path}.spec.nodeSelector", f"{name}: {value}: profile {profile.name} says {required}")
    for index, container in enumerate(template.spec.containers):
        quantities = container.resources.limits | container.resources.requests if container.resources else {}
        if profile.resource in quantities:
            message = f"{profile.resource}: profile {profile.name} reserves it; remove it"
            yield Problem(f"{path}.spec.containers[{index}].resources", message)
    yield from mount_problems(template, path)


def mount_problems(template: PodTemplate, path: str) -> Iterator[Problem]:
    """Yield a problem for each volume mount inside a directory that the runner uses itself.

    Of two mounts at the same path, `merge_pod_template` keeps the runner's, so this is no problem.
    """
    containers = template.spec.containers if template.spec else ()
    for index, container in enumerate(containers):
        for mount in container.volume_mounts:
            mount_path = posixpath.normpath(mount.mount_path)
            if any(mount_path.startswith(f"{directory}/") for directory in RUNNER_DIRECTORIES):
                message = f"{mount.mount_path}: that directory is the runner's own; mount it elsewhere"
                yield Problem(f"{path}.spec.containers[{index}].volumeMounts", message)


def _memory_problems(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each case that needs more memory than its pod has, or whose cost cannot be computed."""
    # The cost of a script is unknown here: this process does not load scripts, so the runner checks them.
    if plan.script:
        return
    limit = memory_limit(plan.run, plan.profile)
    for case in plan.each_case():
        workload = catalogue.find(case.workload)
        parameters = catalogue.parse_parameters(workload, case.parameters)
        # A case that is only compiled needs no arrays if the workload declares their shapes. Without a limit it is not
        # refused, but a cost that cannot be computed still raises.
        needs_no_arrays = case.accelerator.target is not None and workload.has_shapes()
        case_limit = None if needs_no_arrays else limit
        try:
            refusal = memory.refusal(workload, parameters, case_limit)
        except Exception as error:  # noqa: BLE001 - the cost is a workload author's code
            cause = workload_checks.describe(error)
            yield Problem("spec.workload", f"{workload.name}: the workload's cost cannot be computed: {cause}")
            return
        if refusal:
            limit_source = f"profile {plan.profile.name}, or spec.podTemplate's limits"
            yield Problem("spec.workload.parameters", f"case {case.name} {refusal} ({limit_source})")


def _field_path(location: tuple[int | str, ...]) -> str:
    """Return the location in a pydantic error as the path of a field, such as `spec.variants[0].use`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in location]
    return "".join(steps).removeprefix(".")

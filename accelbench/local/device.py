"""Check that this machine can run a manifest: the profile's device, the target's compiler, the frameworks."""

import importlib.util
import os
from pathlib import Path

from accelbench import frameworks, platforms, targets
from accelbench.api.number_registry import KNOWN_AFTER_COMPILING
from accelbench.api.profiles import InvalidProfilesError, Profile, UnknownProfileError, load_profiles
from accelbench.api.run import BenchmarkRun
from accelbench.local.errors import InvalidSpecError
from accelbench.plan.cases import with_target
from accelbench.plan.problems import check_platform, check_targets
from accelbench.problem import Problem

COMPILE_SECONDS = 600
"""Minimum time limit for each compiled variant; a decoder for 256 TPU chips took 313 s on two busy processors."""


def profile_of(run: BenchmarkRun) -> Profile:
    """Return the run's profile; raises InvalidSpecError."""
    try:
        return load_profiles(os.environ).get(run.spec.accelerator.profile)
    except (UnknownProfileError, InvalidProfilesError) as error:
        raise InvalidSpecError(run.metadata.name, [Problem("spec.accelerator.profile", str(error))]) from error


def without_timed_expectations(run: BenchmarkRun) -> BenchmarkRun:
    """Drop the expectations that compiling alone cannot decide."""
    kept = tuple(expectation for expectation in run.spec.expectations if expectation.subject in KNOWN_AFTER_COMPILING)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"expectations": kept})})


def targeted(run: BenchmarkRun) -> BenchmarkRun:
    """Add the profile's target to the run; raises InvalidSpecError if this machine cannot compile for its targets."""
    profile = profile_of(run)
    run = with_target(run, profile.target)
    problems = check_targets(run, profile)
    if not problems:
        missing = {hint: None for name in run.spec.accelerator.targets or () if (hint := targets.find(name).missing)}
        problems = tuple(Problem("spec.accelerator.targets", hint) for hint in missing)
    if problems:
        raise InvalidSpecError(run.metadata.name, problems)
    return _with_time_to_compile(run) if run.spec.accelerator.targets else run


def _with_time_to_compile(run: BenchmarkRun) -> BenchmarkRun:
    """Raise the time limit: a manifest's limit is meant for measuring, and compiling can take longer."""
    measurement = run.spec.measurement
    seconds = max(measurement.time_limit_seconds, COMPILE_SECONDS * len(run.spec.variants))
    longer = measurement.model_copy(update={"time_limit_seconds": seconds})
    return run.model_copy(update={"spec": run.spec.model_copy(update={"measurement": longer})})


def platform_of(run: BenchmarkRun, root: Path = Path("/")) -> str:
    """Return the platform of the run's profile; raises InvalidSpecError if this machine lacks it or its precision."""
    name = run.spec.accelerator.profile
    path = "spec.accelerator.profile"
    platform = platforms.find(profile_of(run).platform)
    files = platform.files
    if files and not any(Path(root, file.lstrip("/")).exists() for file in files):
        message = (
            f"{name} needs a {platform.name} device and this machine shows none (no {' or '.join(files)}); run it"
            " here on the processor with --set accelerator.profile=cpu, or in a cluster with kubectl apply"
        )
        raise InvalidSpecError(run.metadata.name, [Problem(path, message)])
    if problems := check_platform(run, platform):
        raise InvalidSpecError(run.metadata.name, problems)
    return platform.name


def require_a_framework(*runs: BenchmarkRun) -> None:
    """Raise InvalidSpecError for a run if no framework of its variants is installed."""
    for run in runs:
        missing = missing_frameworks(run)
        if len(missing) == len(run.spec.variants):
            problems = [Problem("spec.variants", hint) for hint in dict.fromkeys(missing.values())]
            raise InvalidSpecError(run.metadata.name, problems)


def missing_frameworks(run: BenchmarkRun) -> dict[str, str]:
    """Return how to install the framework, by variant, for those that lack it; imports no framework."""
    needed = {variant.label: frameworks.find(variant.use.partition("/")[0]) for variant in run.spec.variants}
    return {
        label: framework.not_installed
        for label, framework in needed.items()
        if importlib.util.find_spec(framework.package) is None
    }

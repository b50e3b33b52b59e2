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
"""Minimum time limit for each variant to compile; a decoder for 256 TPU chips took 313 s on two busy processors."""


def profile_of(run: BenchmarkRun) -> Profile:
    """Return the run's profile; raises InvalidSpecError if it is unknown."""
    try:
        return load_profiles(os.environ).get(run.spec.accelerator.profile)
    except (UnknownProfileError, InvalidProfilesError) as error:
        raise InvalidSpecError(run.metadata.name, [Problem("spec.accelerator.profile", str(error))]) from error


def without_timed_expectations(run: BenchmarkRun) -> BenchmarkRun:
    """Return the run without the expectations that need a measurement."""
    decidable = tuple(
        expectation for expectation in run.spec.expectations if expectation.subject in KNOWN_AFTER_COMPILING
    )
    return run.model_copy(update={"spec": run.spec.model_copy(update={"expectations": decidable})})


def prepare_compilation(run: BenchmarkRun) -> BenchmarkRun:
    """Add the profile's compile target to a run, and allow time to compile.

    A run without any target is returned unchanged. Raises InvalidSpecError if it cannot compile for its targets here.
    """
    profile = profile_of(run)
    run = with_target(run, profile.target)
    problems = check_targets(run, profile)
    if problems:
        raise InvalidSpecError(run.metadata.name, problems)
    target_names = run.spec.accelerator.targets or ()
    messages = [targets.find(name).missing_message for name in target_names]
    distinct_messages = dict.fromkeys(message for message in messages if message)
    if distinct_messages:
        problems = tuple(Problem("spec.accelerator.targets", message) for message in distinct_messages)
        raise InvalidSpecError(run.metadata.name, problems)
    return _with_time_to_compile(run) if target_names else run


def _with_time_to_compile(run: BenchmarkRun) -> BenchmarkRun:
    """Return the run with a time limit that is long enough to compile.

    The limit in a manifest is for measuring, and compiling can take longer.
    """
    measurement = run.spec.measurement
    limit_seconds = max(measurement.time_limit_seconds, COMPILE_SECONDS * len(run.spec.variants))
    new_measurement = measurement.model_copy(update={"time_limit_seconds": limit_seconds})
    new_spec = run.spec.model_copy(update={"measurement": new_measurement})
    return run.model_copy(update={"spec": new_spec})


def platform_of(run: BenchmarkRun, root: Path = Path("/")) -> str:
    """Return the name of the platform of the run's profile; `root` is the directory that contains dev and proc.

    Raises InvalidSpecError if the run cannot be measured here.
    """
    profile_name = run.spec.accelerator.profile
    platform = platforms.find(profile_of(run).platform)
    files = platform.files  # one of them exists where the platform's driver is loaded
    # `lstrip`: joined to `root`, an absolute path would replace it.
    if files and not any(Path(root, file.lstrip("/")).exists() for file in files):
        message = (
            f"{profile_name} needs a {platform.name} device and this machine shows none (no {' or '.join(files)}); run"
            " it here on the processor with --set accelerator.profile=cpu, or in a cluster with kubectl apply"
        )
        raise InvalidSpecError(run.metadata.name, [Problem("spec.accelerator.profile", message)])
    if problems := check_platform(run, platform):
        raise InvalidSpecError(run.metadata.name, problems)
    return platform.name


def require_a_framework(*runs: BenchmarkRun) -> None:
    """Raise InvalidSpecError for the first run of which no framework is installed."""
    for run in runs:
        messages = missing_frameworks(run)
        if len(messages) == len(run.spec.variants):  # the framework of every variant is missing
            problems = [Problem("spec.variants", message) for message in dict.fromkeys(messages.values())]
            raise InvalidSpecError(run.metadata.name, problems)


def missing_frameworks(run: BenchmarkRun) -> dict[str, str]:
    """Return how to install each missing framework, by the label of the variant that uses it.

    Frameworks are searched for but not imported, because an import takes seconds. A variant with an environment of its
    own needs no framework here.
    """
    messages = {}
    for variant in run.spec.variants:
        if variant.environment is not None:
            continue
        framework = frameworks.find(frameworks.name_of(variant.use))
        if importlib.util.find_spec(framework.package) is None:
            messages[variant.label] = framework.install_message
    return messages

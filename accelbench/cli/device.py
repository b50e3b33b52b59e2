"""Whether this machine can run what a manifest asks for: its profile's device, its variants' frameworks."""

import importlib.util
import os
from pathlib import Path

from accelbench import frameworks, platforms
from accelbench.api.profiles import InvalidProfilesError, UnknownProfileError, load_profiles
from accelbench.api.run import BenchmarkRun
from accelbench.cli.manifests import InvalidSpecError
from accelbench.plan.problems import check_platform
from accelbench.problem import Problem


def platform_of(run: BenchmarkRun, root: Path = Path("/")) -> str:
    """The platform of the run's profile; raises InvalidSpecError where it, or its precision, cannot be had here."""
    name = run.spec.accelerator.profile
    path = "spec.accelerator.profile"
    try:
        platform = platforms.find(load_profiles(os.environ).get(name).platform)
    except (UnknownProfileError, InvalidProfilesError) as error:
        raise InvalidSpecError(run.metadata.name, [Problem(path, str(error))]) from error
    files = platform.files
    if files and not any(Path(root, file.lstrip("/")).exists() for file in files):
        why = (
            f"{name} needs a {platform.name} device and this machine shows none (no {' or '.join(files)}); run it"
            " here on the processor with --set accelerator.profile=cpu, or in a cluster with kubectl apply"
        )
        raise InvalidSpecError(run.metadata.name, [Problem(path, why)])
    if problems := check_platform(run, platform):
        raise InvalidSpecError(run.metadata.name, problems)
    return platform.name


def missing_frameworks(run: BenchmarkRun) -> dict[str, str]:
    """Variants whose framework is not installed, each with what to do about it; nothing is imported."""
    needed = {variant.label: frameworks.find(variant.use.partition("/")[0]) for variant in run.spec.variants}
    return {
        label: framework.not_installed
        for label, framework in needed.items()
        if importlib.util.find_spec(framework.package) is None
    }

"""Whether this machine can run what a manifest asks for: its profile's device, its variants' frameworks."""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from accelbench import frameworks
from accelbench.api.case import Platform
from accelbench.api.profiles import InvalidProfilesError, UnknownProfileError, load_profiles
from accelbench.api.run import BenchmarkRun
from accelbench.cli.manifests import InvalidSpecError
from accelbench.problem import Problem

DEVICE_FILES: Mapping[Platform, tuple[str, ...]] = {
    "cuda": ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"),
    "tpu": ("/dev/accel0", "/dev/vfio/0"),
}
"""One of these is there where the device's driver is loaded; `dxg` is how WSL shows a GPU."""


def platform_of(run: BenchmarkRun, root: Path = Path("/")) -> Platform:
    """The platform of the run's profile; raises InvalidSpecError where it cannot be had on this machine."""
    name = run.spec.accelerator.profile
    path = "spec.accelerator.profile"
    try:
        platform = load_profiles(os.environ).get(name).platform
    except (UnknownProfileError, InvalidProfilesError) as error:
        raise InvalidSpecError(run.metadata.name, [Problem(path, str(error))]) from error
    files = DEVICE_FILES.get(platform)
    if files is not None and not any(Path(root, file.lstrip("/")).exists() for file in files):
        raise InvalidSpecError(
            run.metadata.name,
            [
                Problem(
                    path,
                    f"{name} needs a {platform} device and this machine shows none (no {' or '.join(files)}); run it"
                    " here on the processor with --set accelerator.profile=cpu, or in a cluster with kubectl apply",
                )
            ],
        )
    return platform


def missing_frameworks(run: BenchmarkRun) -> dict[str, str]:
    """Variants whose framework is not installed, each with what to do about it; nothing is imported."""
    needed = {variant.label: frameworks.find(variant.use.partition("/")[0]) for variant in run.spec.variants}
    return {
        label: framework.not_installed
        for label, framework in needed.items()
        if importlib.util.find_spec(framework.package) is None
    }

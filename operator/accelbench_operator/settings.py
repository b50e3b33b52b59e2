"""The operator's settings, from its environment: all of them, and where each comes from."""

from collections.abc import Mapping
from dataclasses import dataclass

from accelbench.api.profiles import Profiles, load_profiles


class SettingsError(ValueError):
    """The environment cannot be started with; the message says which variable and what to do."""


@dataclass(frozen=True)
class Settings:
    """What the chart sets."""

    runner_image: str
    """`ACCELBENCH_RUNNER_IMAGE`."""
    profiles: Profiles
    """Presets and the file that `ACCELBENCH_PROFILES` names."""
    namespaces: tuple[str, ...] = ()
    """`ACCELBENCH_NAMESPACES`, separated by commas; empty: the whole cluster."""
    metrics_port: int = 9090
    """`ACCELBENCH_METRICS_PORT`."""
    health_port: int = 8080
    """`ACCELBENCH_HEALTH_PORT`."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings; raises SettingsError, and InvalidProfilesError for the file of profiles."""
    image = environment.get("ACCELBENCH_RUNNER_IMAGE", "").strip()
    if not image:
        raise SettingsError(
            "ACCELBENCH_RUNNER_IMAGE is not set: give the image that runs `python -m accelbench_runner`"
        )
    namespaces = environment.get("ACCELBENCH_NAMESPACES", "").split(",")
    return Settings(
        runner_image=image,
        profiles=load_profiles(environment),
        namespaces=tuple(name.strip() for name in namespaces if name.strip()),
        metrics_port=_port(environment, "ACCELBENCH_METRICS_PORT", 9090),
        health_port=_port(environment, "ACCELBENCH_HEALTH_PORT", 8080),
    )


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text) <= 65535:  # noqa: PLR2004 - the range of ports
        raise SettingsError(f'{name}="{text}": must be a port, 1 to 65535')
    return int(text)

"""Read the operator's settings from its environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from accelbench.api.admission import refusals
from accelbench.api.manifest import RUN
from accelbench.api.metadata import API_VERSION
from accelbench.api.pod_template import PodTemplate
from accelbench.api.profiles import load_profiles
from accelbench.api.run import DEFAULT_CLASS
from accelbench_operator.engine.election import LeaseName
from accelbench_operator.metrics.exposition import Tls
from accelbench_operator.runs.accept import RunSettings, mount_problems
from accelbench_operator.runs.retention import Retention


class SettingsError(ValueError):
    """Report a missing or invalid environment variable, and the remedy."""


@dataclass(frozen=True)
class Settings(RunSettings):
    """Hold the operator's settings, each with the environment variable that the chart sets."""

    namespaces: tuple[str, ...] = ()
    """`ACCELBENCH_NAMESPACES`, separated by commas; empty: the whole cluster."""
    metrics_port: int = 9090
    """`ACCELBENCH_METRICS_PORT`."""
    metrics_series: int = 5_000
    """`ACCELBENCH_METRICS_SERIES`: maximum number of cases that metrics show."""
    metrics_tls: Tls | None = None
    """`ACCELBENCH_METRICS_TLS`, a directory with `tls.crt` and `tls.key`. With `ACCELBENCH_METRICS_CLIENT_CA`, a file,
    clients need a certificate of that authority."""
    metrics_authorization: bool = False
    """`ACCELBENCH_METRICS_AUTHORIZATION`: RBAC decides who may scrape."""
    health_port: int = 8080
    """`ACCELBENCH_HEALTH_PORT`."""
    lease: LeaseName | None = None
    """`ACCELBENCH_LEASE`, as `namespace/name`: one of the replicas that share it leads. None: there is one replica."""
    retention: Retention = field(default_factory=Retention)
    """`ACCELBENCH_RESULTS_PER_CASE`, `ACCELBENCH_RESULTS_TOTAL`, `ACCELBENCH_RESULTS_MAXIMUM_AGE_DAYS` (0: any age)."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the operator's settings; raise SettingsError or InvalidProfilesError if a variable is invalid."""
    image = environment.get("ACCELBENCH_RUNNER_IMAGE", "").strip()
    if not image:
        raise SettingsError(
            "ACCELBENCH_RUNNER_IMAGE is not set: give the image that runs `python -m accelbench_runner`"
        )
    namespaces = environment.get("ACCELBENCH_NAMESPACES", "").split(",")
    return Settings(
        runner_image=image,
        profiles=load_profiles(environment),
        pod_template=_pod_template(environment),
        namespaces=tuple(name.strip() for name in namespaces if name.strip()),
        metrics_port=_port(environment, "ACCELBENCH_METRICS_PORT", 9090),
        metrics_series=_whole_number(environment, "ACCELBENCH_METRICS_SERIES", 5_000, minimum=1),
        metrics_tls=_metrics_tls(environment),
        metrics_authorization=_metrics_authorization(environment),
        health_port=_port(environment, "ACCELBENCH_HEALTH_PORT", 8080),
        class_name=_class_name(environment),
        history_limit=_whole_number(environment, "ACCELBENCH_RUNS_HISTORY_LIMIT", 0, minimum=0),
        lease=_lease(environment),
        retention=_retention(environment),
    )


def _pod_template(environment: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the administrator's pod template; empty if none is set. Raises SettingsError if it is invalid."""
    path = environment.get("ACCELBENCH_POD_TEMPLATE", "").strip()
    if not path:
        return {}
    source = f"ACCELBENCH_POD_TEMPLATE={path}"
    try:
        template = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise SettingsError(f"{source}: {error.strerror}: mount the file or unset it") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{source}: not YAML: {error}") from error
    # Check the template by the rules of `spec.podTemplate`, in a run whose other fields do not matter.
    spec = {"workload": {"name": "any"}, "variants": [{"use": "any/any"}], "podTemplate": template}
    run = {"apiVersion": API_VERSION, "kind": RUN.name, "metadata": {"name": "any"}, "spec": spec}
    problems = list(refusals(RUN, run))
    if not problems:  # otherwise the template cannot be parsed
        problems = list(mount_problems(PodTemplate.model_validate(template), "spec.podTemplate"))
    if problems:
        message = "; ".join(str(problem).removeprefix("spec.podTemplate.") for problem in problems)
        raise SettingsError(f"{source}: {message}")
    return dict(template)


def _lease(environment: Mapping[str, str]) -> LeaseName | None:
    """Return the Lease of `ACCELBENCH_LEASE`, None if it is not set; raises SettingsError if it is malformed."""
    text = environment.get("ACCELBENCH_LEASE", "").strip()
    if not text:
        return None
    namespace, _, name = text.partition("/")
    if not (namespace and name):
        raise SettingsError(f'ACCELBENCH_LEASE="{text}": must be namespace/name')
    return LeaseName(namespace, name)


def _retention(environment: Mapping[str, str]) -> Retention:
    """Return how many BenchmarkResults are kept, and for how long."""
    default = Retention()
    days = _whole_number(environment, "ACCELBENCH_RESULTS_MAXIMUM_AGE_DAYS", 0, minimum=0)
    return Retention(
        per_case=_whole_number(environment, "ACCELBENCH_RESULTS_PER_CASE", default.per_case, minimum=1),
        total=_whole_number(environment, "ACCELBENCH_RESULTS_TOTAL", default.total, minimum=1),
        maximum_age=timedelta(days=days) if days else None,
    )


def _metrics_tls(environment: Mapping[str, str]) -> Tls | None:
    """Return the files for TLS of the metrics server; None if TLS is not configured.

    Raises SettingsError if the files cannot be loaded, or if only the authority of clients is configured.
    """
    directory = environment.get("ACCELBENCH_METRICS_TLS", "").strip()
    client_ca = environment.get("ACCELBENCH_METRICS_CLIENT_CA", "").strip()
    if not directory:
        if client_ca:
            raise SettingsError(
                "ACCELBENCH_METRICS_CLIENT_CA: set ACCELBENCH_METRICS_TLS too: certificates are checked only with TLS"
            )
        return None
    tls = Tls(Path(directory) / "tls.crt", Path(directory) / "tls.key", Path(client_ca) if client_ca else None)
    try:
        tls.context()  # only to check the files
    except OSError as error:
        files = [str(tls.certificate), str(tls.key)]
        if client_ca:
            files.append(client_ca)
        raise SettingsError(
            f"ACCELBENCH_METRICS_TLS: {' and '.join(files)} must be PEM files that match: {error}"
        ) from error
    return tls


def _metrics_authorization(environment: Mapping[str, str]) -> bool:
    """Return True if the cluster's RBAC decides who may read the metrics.

    Raises SettingsError if the variable is neither true nor false, or if it is true and the metrics have no TLS.
    """
    text = environment.get("ACCELBENCH_METRICS_AUTHORIZATION", "").strip() or "false"
    if text not in {"true", "false"}:
        raise SettingsError(f'ACCELBENCH_METRICS_AUTHORIZATION="{text}": must be true or false')
    if text == "true" and not environment.get("ACCELBENCH_METRICS_TLS", "").strip():
        raise SettingsError("ACCELBENCH_METRICS_AUTHORIZATION: needs ACCELBENCH_METRICS_TLS: tokens must go over TLS")
    return text == "true"


def _class_name(environment: Mapping[str, str]) -> str:
    """Return the class of the runs that this operator reconciles; raises SettingsError for an invalid name."""
    name = environment.get("ACCELBENCH_CLASS_NAME", "").strip() or DEFAULT_CLASS
    # Jobs have the class as the value of a label, which has at most 63 characters.
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise SettingsError(f'ACCELBENCH_CLASS_NAME="{name}": must be lower-case letters, digits and hyphens')
    return name


def _whole_number(environment: Mapping[str, str], name: str, default: int, *, minimum: int) -> int:
    """Return the variable `name` as a whole number, or `default` if it is not set; raises SettingsError if invalid."""
    text = environment.get(name, str(default))
    if not text.isdecimal() or int(text) < minimum:
        raise SettingsError(f'{name}="{text}": must be a whole number, {minimum} or more')
    return int(text)


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    """Return the variable `name` as a port, or `default` if it is not set; raises SettingsError if invalid."""
    text = environment.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text) <= 65535:  # noqa: PLR2004 - the range of ports
        raise SettingsError(f'{name}="{text}": must be a port, 1 to 65535')
    return int(text)

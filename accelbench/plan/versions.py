"""Replace the variants of a run by releases of a framework, so that the run compares these releases. Pure.

A release is a version of a framework, with the packages and the Python that it is measured with.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench import frameworks
from accelbench.api import rules
from accelbench.api.environment import normalize_package
from accelbench.api.manifest import parse_run
from accelbench.api.run import MAXIMUM_VARIANTS, BenchmarkRun, Variant
from accelbench.frameworks import Framework
from accelbench.plan.names import slug
from accelbench.problem import suggest_name

MAXIMUM_SECONDS = 86400
"""Maximum time limit of a case."""
_REQUIREMENT = re.compile(r"\s*(?P<name>[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)")
"""The name at the start of a requirement."""
_PINNED = re.compile(r"={2,3}\s*(?P<version>[0-9][^\s,;*]*)\s*")
"""What comes after the name in a requirement of exactly one release."""


class InvalidReleasesError(ValueError):
    """Report releases that cannot be compared; the message names one, the reason, and what to write instead."""


class NotInReleasesError(ValueError):
    """Report a run that releases cannot be compared by; the message has the reason, and what to change."""


@dataclass(frozen=True)
class Release:
    """Hold one release of a framework, with the packages and the Python that it is measured with."""

    label: str
    """Name of its variant: `jax-0.9.2`."""
    framework: Framework
    requirements: tuple[str, ...]
    """What is installed; the first one names the framework's package."""
    python: str | None
    """The minor of its Python, or the path of an interpreter; None for accelbench's own Python."""

    @property
    def environment(self) -> dict[str, Any]:
        """Return its environment in the form of a manifest."""
        environment: dict[str, Any] = {"name": slug(self.label), "requirements": list(self.requirements)}
        return environment | ({"python": self.python} if self.python else {})


def parse_releases(environments: Sequence[Mapping[str, Any]]) -> tuple[Release, ...]:
    """Return a release for each environment; the environments have the form that they have in a manifest.

    Raises InvalidReleasesError if they are not two or more releases of one framework that accelbench measures.
    """
    if not 2 <= len(environments) <= MAXIMUM_VARIANTS:  # noqa: PLR2004 - a comparison needs two
        raise InvalidReleasesError(
            f"{len(environments)} given; compare 2 to {MAXIMUM_VARIANTS} releases, as in: jax==0.9.2 jax==0.10.2"
        )
    environment_frameworks = [_find_framework(environment) for environment in environments]
    first_framework = environment_frameworks[0]
    for environment, framework in zip(environments, environment_frameworks, strict=True):
        if framework.name != first_framework.name:
            raise InvalidReleasesError(
                f"{_as_argument(environment)}: is {framework.title}, and the first release is {first_framework.title}; "
                "releases of one framework are compared. accelbench run --environment compares frameworks"
            )
    labels = _labels(environments)
    return tuple(
        Release(label, framework, tuple(environment["requirements"]), environment.get("python"))
        for label, environment, framework in zip(labels, environments, environment_frameworks, strict=True)
    )


def _find_framework(environment: Mapping[str, Any]) -> Framework:
    """Return the framework whose package the environment's first requirement names; raises InvalidReleasesError."""
    argument = _as_argument(environment)
    python = environment.get("python")
    if python is not None and (refusal := rules.MEASURABLE_PYTHON.refusal(python)):
        raise InvalidReleasesError(f"{argument}: {refusal}")
    requirements = environment.get("requirements", ())
    match = _REQUIREMENT.match(requirements[0]) if requirements else None
    if match is None:
        raise InvalidReleasesError(f"{argument}: write the framework's package first, as in jax==0.9.2")
    by_package = {normalize_package(framework.package): framework for framework in frameworks.every()}
    package = normalize_package(match["name"])
    framework = by_package.get(package)
    if framework is None:
        suggestion = suggest_name(package, by_package)
        raise InvalidReleasesError(
            f"{argument}: {package} is not the package of a framework, which has to come first; {suggestion}"
        )
    # Only an exact version shows now that the release is too old. Of others, uv chooses the version later.
    pinned = _PINNED.fullmatch(requirements[0][match.end() :])
    if pinned and (reason := framework.why_too_old(pinned["version"])):
        raise InvalidReleasesError(f"{argument}: {reason}")
    return framework


def _as_argument(environment: Mapping[str, Any]) -> str:
    """Return the environment as it is written on the command line, such as `jax==0.9.2 python3.12`."""
    words = list(environment.get("requirements", ()))
    python = environment.get("python")
    if python:  # the path of an interpreter, or a minor such as 3.12
        words.append(python if python.startswith("/") else f"python{python}")
    return " ".join(words)


def _labels(environments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each release: its first requirement or, if two releases have the same, its whole argument.

    Raises InvalidReleasesError if two releases are the same.
    """
    first_requirements = [environment["requirements"][0] for environment in environments]
    arguments = list(map(_as_argument, environments))
    for texts in (first_requirements, arguments):
        labels = [re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") for text in texts]
        environment_names = list(map(slug, labels))  # these have to be unique too
        if len(set(environment_names)) == len(environment_names):
            return labels
    repeated = next(
        argument
        for argument, name in zip(arguments, environment_names, strict=True)
        if environment_names.count(name) > 1
    )
    raise InvalidReleasesError(f"{repeated}: is given twice; give releases that differ")


def compare_releases(run: BenchmarkRun, releases: Sequence[Release]) -> tuple[BenchmarkRun, ...]:
    """Return for each variant of the releases' framework in `run` a run of its own, whose variants are the releases.

    The first release is the baseline. A release has as much of the time limit as a variant of `run` has. The run's
    other variants and its expectations, which are about variants that no longer exist, are left out.

    Raises:
        NotInReleasesError: The run has environments or compile targets, or no variant of the framework.
        InvalidManifestError: The run with these variants is not valid.
    """
    framework = releases[0].framework
    if run.spec.environments:
        raise NotInReleasesError("it has environments of its own; remove spec.environments, as each release is one")
    if run.spec.accelerator.targets:
        raise NotInReleasesError("it compiles for targets, and releases are measured; remove spec.accelerator.targets")
    variants = [variant for variant in run.spec.variants if frameworks.name_of(variant.use) == framework.name]
    if not variants:
        uses = ", ".join(variant.use for variant in run.spec.variants)
        raise NotInReleasesError(f"it compares {uses}, and none of them is of {framework.title}; choose one that is")
    return tuple(_run_of_variant(run, variant, releases, is_only=len(variants) == 1) for variant in variants)


def _run_of_variant(run: BenchmarkRun, variant: Variant, releases: Sequence[Release], *, is_only: bool) -> BenchmarkRun:
    """Return the run that compares the releases by one variant of `run`; its name has the variant unless `is_only`."""
    manifest: dict[str, Any] = run.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"})
    spec = manifest["spec"]
    spec.pop("baseline", None)  # without it, the first variant is the baseline
    spec.pop("expectations", None)
    spec["environments"] = [release.environment for release in releases]
    spec["variants"] = list(_variants(variant, releases))
    # The time limit is for all variants together. Each release gets as much as a variant had.
    limit = run.spec.measurement.time_limit_seconds * len(releases) // len(run.spec.variants)
    spec["measurement"]["timeLimitSeconds"] = min(limit, MAXIMUM_SECONDS)
    if not is_only:
        manifest["metadata"]["name"] = f"{run.metadata.name}-{slug(variant.label)}"
    return parse_run(manifest, run.metadata.name)


def _variants(variant: Variant, releases: Sequence[Release]) -> Iterator[dict[str, Any]]:
    """Yield the variant once for each release, in the form of a manifest."""
    for release in releases:
        yield {
            "use": variant.use,
            "name": release.label,
            "options": dict(variant.options),
            "environment": release.environment["name"],
        }

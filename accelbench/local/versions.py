"""Plan a comparison of releases of a framework: of workloads, scripts and manifests, or of a suite."""

from collections.abc import Sequence

from accelbench.api.manifest import InvalidManifestError
from accelbench.api.run import BenchmarkRun
from accelbench.local.environments import parse_words
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.suites.definition import BenchmarkSuite, PlannedRun, ReplaceRun, plan, plan_target, repeated_names
from accelbench.plan.names import unique_name
from accelbench.plan.versions import (
    InvalidReleasesError,
    NotInReleasesError,
    Release,
    compare_releases,
    parse_releases,
)
from accelbench.problem import Problem

RELEASE = "RELEASE"
"""Name of the command's argument in messages."""
WORKLOAD = "--workload"
LONGEST_NAME = 100
"""Maximum characters of the name of a directory of results that is made of the releases' names."""


def read_releases(texts: Sequence[str]) -> tuple[Release, ...]:
    """Return the releases that are written as `jax==0.9.2` or `jax==0.9.2 flax==0.12.6 python3.12`.

    Raises UsageError.
    """
    try:
        return parse_releases([parse_words(text) for text in texts])
    except InvalidReleasesError as error:
        raise UsageError(str(error), RELEASE) from error


def directory_name(releases: Sequence[Release]) -> str:
    """Return a name for the directory of the results of these releases: their labels, shortened if too long."""
    name = "-".join(release.label for release in releases)
    return name if len(name) <= LONGEST_NAME else unique_name(name, name)


def plan_targets(
    targets: Sequence[str], variants: Sequence[str], assignments: Sequence[str], releases: Sequence[Release]
) -> tuple[PlannedRun, ...]:
    """Return the runs that compare the releases by each of `targets`: manifests, scripts or workloads.

    `variants` and `assignments` are as in `plan_target`. Raises InvalidSpecError and UsageError.
    """
    replace_run = _compare_releases_by(releases)
    planned: list[PlannedRun] = []
    for target in targets:
        planned += plan_target(target, variants, assignments, replace_run=replace_run)
    if repeated := repeated_names(planned):
        raise UsageError(f'several runs are named "{repeated[0]}"; give each workload once', WORKLOAD)
    return tuple(planned)


def plan_suite(
    suite: BenchmarkSuite, source: str, assignments: Sequence[str], releases: Sequence[Release]
) -> tuple[PlannedRun, ...]:
    """Return the runs that compare the releases by each run of a suite; raises InvalidSpecError."""
    return plan(suite, source, assignments, _compare_releases_by(releases))


def _compare_releases_by(releases: Sequence[Release]) -> ReplaceRun:
    """Return a function that replaces a run by those that compare the releases; it raises InvalidSpecError."""

    def replace_run(run: BenchmarkRun) -> tuple[BenchmarkRun, ...]:
        """Return a run for each variant of the releases' framework, whose variants are the releases.

        Raises InvalidSpecError if the run cannot be compared in that way.
        """
        try:
            return compare_releases(run, releases)
        except NotInReleasesError as error:
            raise InvalidSpecError(run.metadata.name, [Problem("", str(error))]) from error
        except InvalidManifestError as error:
            raise InvalidSpecError(error.source, error.problems) from error

    return replace_run

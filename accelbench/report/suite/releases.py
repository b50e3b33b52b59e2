"""Compare what each release makes of a program, and what else differs between the releases' environments. Pure.

Releases are variants with the same `use` (framework and mode, as `jax/jit`) in environments of their own. Nothing here
is timed, so nothing has noise.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from accelbench import figures, frameworks
from accelbench.api.environment import CaseEnvironment
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Result, VariantResult
from accelbench.report import details, machine
from accelbench.report.suite.view import Suite, labelled_results
from accelbench.report.table import Table, TableColumn

ALWAYS_SHOWN = ("kernels_per_call", "accessed_bytes", "dispatched_per_call", "dispatched_bytes")
"""Numbers of a call that are shown also if they are the same in all releases."""
COMPARED = tuple(field for field, number in MEASURED.items() if number.table == "program")
"""Numbers of a call that are compared: what is counted in the program that a compiler makes, or as it is dispatched."""
ABSENT = "none"
"""Version of a package that an environment does not have."""


@dataclass(frozen=True)
class ReleaseNumber:
    """Hold one number of a case's program in each release."""

    case: str
    field: str
    """Name of the field of `Numbers`."""
    values: Mapping[str, int | float | None]
    """The number by release, in the order of the case; None where it is not known."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Return the releases whose number differs from that of the release before; unknown numbers are skipped."""
        known = [(release, value) for release, value in self.values.items() if value is not None]
        neighbours = itertools.pairwise(known)
        return tuple(release for (_, value_before), (release, value) in neighbours if value != value_before)


@dataclass(frozen=True)
class OtherPackage:
    """Hold the versions of a package, or of Python, that is not the same in all environments."""

    name: str
    versions: Mapping[str, str]
    """The version by release, in the order of the case."""


def release_numbers(suite: Suite) -> tuple[ReleaseNumber, ...]:
    """Return the numbers of the program of each case that compares releases, in the order of the suite."""
    return tuple(number for label, result in labelled_results(suite) for number in _numbers(label, result))


def _numbers(case: str, result: Result) -> Iterator[ReleaseNumber]:
    """Yield the numbers of the case's programs that any release has: those always shown, and those that change."""
    groups = _releases(result)
    for use, variants in groups.items():
        label = case if len(groups) == 1 else f"{case}, {use}"
        for field in COMPARED:
            values = {variant.name: variant.numbers.value(field) for variant in variants}
            number = ReleaseNumber(label, field, values)
            is_known = any(value is not None for value in values.values())
            if is_known and (field in ALWAYS_SHOWN or number.changes):
                yield number


def _releases(result: Result) -> Mapping[str, Sequence[VariantResult]]:
    """Return the variants that are releases, by their `use`: two or more in environments of their own."""
    uses = {variant.name: variant.use for variant in result.case.variants if variant.environment is not None}
    by_use: dict[str, list[VariantResult]] = {}
    for variant in result.variants:
        if variant.name in uses:
            by_use.setdefault(uses[variant.name], []).append(variant)
    return {use: variants for use, variants in by_use.items() if len(variants) > 1}


def sentence(suite: Suite) -> str:
    """Return in how many cases releases change what a call runs, and which releases; empty without releases."""
    changes: dict[str, dict[str, None]] = {}  # by case: the releases, as an ordered set
    for number in release_numbers(suite):
        changes.setdefault(number.case, {}).update(dict.fromkeys(number.changes))
    if not changes:
        return ""
    cases = figures.count(len(changes), "case")
    changed = [f"{case} (with {figures.join_names([*releases])})" for case, releases in changes.items() if releases]
    if not changed:
        return f"What a call runs is the same in all releases, as far as it is counted, in {cases}."
    return f"What a call runs changes in {len(changed)} of {cases}: {', '.join(changed)}."


def program_tables(suite: Suite) -> tuple[Table, ...]:
    """Return a table of what a call runs in each release, one for each set of releases that cases compare."""
    by_releases: dict[tuple[str, ...], list[ReleaseNumber]] = {}
    for number in release_numbers(suite):
        by_releases.setdefault(tuple(number.values), []).append(number)
    return tuple(_program_table(releases, numbers) for releases, numbers in by_releases.items())


def _program_table(releases: Sequence[str], numbers: Iterable[ReleaseNumber]) -> Table:
    """Return the table of these numbers, with a column for each release."""
    columns = (
        TableColumn("case"),
        TableColumn("counted"),
        *(TableColumn(release, number=True) for release in releases),
        TableColumn("changes with"),
    )
    rows = []
    for number in numbers:
        texts = (details.format_number(number.field, value) or "unknown" for value in number.values.values())
        rows.append((number.case, MEASURED[number.field].heading, *texts, ", ".join(number.changes)))
    return Table("What a call runs in each release", columns, tuple(rows)).without_empty_columns()


def other_packages(suite: Suite) -> tuple[tuple[OtherPackage, ...], ...]:
    """Return the packages that differ between the releases' environments, once for cases with the same environments.

    There is an empty tuple for environments that do not differ.
    """
    packages_by_locks: dict[str, tuple[OtherPackage, ...]] = {}
    for _, result in labelled_results(suite):
        for use, variants in _releases(result).items():
            environments: dict[str, CaseEnvironment] = {}
            for variant in variants:
                environment = result.case.environment_of(variant.name)
                if environment is not None:
                    environments[variant.name] = environment
            # As text, because a mapping of packages cannot be a key.
            locks = repr([(name, environment.packages) for name, environment in environments.items()])
            packages_by_locks[locks] = tuple(_differences(environments, _package_of(use)))
    return tuple(packages_by_locks.values())


def _package_of(use: str) -> str:
    """Return the package of the framework of `use`; empty if the framework is unknown here."""
    name = frameworks.name_of(use)
    return next((framework.package for framework in frameworks.every() if framework.name == name), "")


def _differences(environments: Mapping[str, CaseEnvironment], framework_package: str) -> Iterator[OtherPackage]:
    """Yield Python, then the packages in order of name, whose versions differ between the environments.

    The framework's own package is left out, and so is a package whose version is always that of the framework, as
    jaxlib's is that of jax.
    """
    pythons = {release: environment.python_version for release, environment in environments.items()}
    known_pythons = set(filter(None, pythons.values()))  # an environment that cannot be used has an empty version
    if len(known_pythons) > 1:
        yield OtherPackage("Python", pythons)
    framework_versions = _versions(environments, framework_package)
    names = sorted({name for environment in environments.values() for name in environment.packages})
    for name in names:
        versions = _versions(environments, name)
        if len(set(versions.values())) > 1 and versions != framework_versions:
            yield OtherPackage(name, versions)


def _versions(environments: Mapping[str, CaseEnvironment], package: str) -> dict[str, str]:
    """Return the package's version by release, or `ABSENT` where the environment does not have the package."""
    return {release: environment.version_of(package) or ABSENT for release, environment in environments.items()}


def package_tables(suite: Suite) -> tuple[Table, ...]:
    """Return the tables of what else differs between environments, one for each set of releases that cases compare."""
    return tuple(_package_table(packages) for packages in other_packages(suite) if packages)


def _package_table(packages: Sequence[OtherPackage]) -> Table:
    """Return the table of these packages, with a column for each release."""
    columns = (TableColumn("also different"), *map(TableColumn, packages[0].versions))
    rows = tuple((package.name, *package.versions.values()) for package in packages)
    return Table("Also different between the environments", columns, rows)


def environment_lines(suite: Suite) -> tuple[str, ...]:
    """Return a line for each variant with an environment of its own, as the reports of runs have it."""
    lines = (line for _, result in labelled_results(suite) for line in machine.describe_environments(result))
    return tuple(dict.fromkeys(lines))


def notes(suite: Suite) -> tuple[str, ...]:
    """Return sentences on how to read what is counted, and what differs; none if the suite compares no releases."""
    if not release_numbers(suite) and not other_packages(suite):
        return ()
    counted = (
        "What a call runs is counted by launches, and no time is in it: it has no noise. A number that differs between "
        "launches of one release is unknown."
    )
    lines = [counted]
    # Environments were compared, and no package differs.
    if other_packages(suite) and not package_tables(suite):
        lines.append("Nothing else differs between the environments: the other packages of their locks are the same.")
    return tuple(lines)

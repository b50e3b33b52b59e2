"""Check that a variant in an environment of its own imported the packages of that environment's lock."""

from collections.abc import Iterator
from pathlib import PurePath

from accelbench.api.environment import CaseEnvironment
from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import ImportedPackage
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, most_severe, passed
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Judge each variant that has an environment of its own by all its launches."""
    for variant in evidence.variants:
        environment = evidence.case.environment_of(variant)
        if environment is not None:
            launches = (*evidence.launches_of(variant), *evidence.quarantined_of(variant))
            yield variant, most_severe([(launch.round, _judge(environment, launch)) for launch in launches])


def _judge(environment: CaseEnvironment, launch: LaunchRecord) -> Finding:
    """Fail if the launch imported a package from elsewhere, or another version than that of the lock."""
    imported = launch.facts.imported
    if isinstance(imported, Unreadable):
        return failed(imported)
    for module, package in imported.items():
        if problem := _describe_problem(environment, module, package):
            return failed(problem)
    versions = (f"{module} {package.version}" for module, package in imported.items() if package.version)
    return passed(f"{', '.join(versions)}, all from environment {environment.name}")


def _describe_problem(environment: CaseEnvironment, module: str, package: ImportedPackage) -> str:
    """Return how an imported package differs from the environment's, by place or by version; empty if it does not."""
    locked_version = environment.version_of(module)
    path = PurePath(package.file)
    is_inside = any(path.is_relative_to(directory) for directory in environment.directories)
    if package.file and not is_inside:
        locked = f", which has {module} {locked_version}" if locked_version else ""
        return f"{module} {package.version} is {package.file}, outside of environment {environment.name}{locked}"
    version = package.version.partition("+")[0]  # without the build: a lock has 2.14.1 for 2.14.1+cu130
    if version and locked_version and version != locked_version.partition("+")[0]:
        return f"{module} is {package.version}, and environment {environment.name} was locked with {locked_version}"
    return ""


CHECK = CaseCheck(
    name="environment",
    threshold="packages of the variant's environment, in the versions of its lock",
    reason="another installation on the path gives the variant another release, without an error",
    evaluate=_evaluate,
    observed=True,
    remedy="remove what adds other directories to the path of imports: a .pth file, sitecustomize, the program's code",
)

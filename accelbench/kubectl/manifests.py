"""Manifests for a cluster: read and refused as `accelbench validate` does, before anything is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.manifest import InvalidManifestError, load_manifests, read_documents
from accelbench.api.rules import ON_A_LAPTOP
from accelbench.api.run import BenchmarkRun
from accelbench.cli.manifests import STANDARD_INPUT, Check, InvalidSpecError, text_of
from accelbench.plan.problems import check_run, check_variants
from accelbench.problem import Problem


@dataclass(frozen=True)
class Written:
    """A BenchmarkRun as somebody wrote it, and as it was understood."""

    content: dict[str, Any]
    run: BenchmarkRun


def read(file: str) -> tuple[Written, ...]:
    """The BenchmarkRuns of a file (`-`: standard input); raises InvalidSpecError with all that is wrong with them."""
    source = "standard input" if file == STANDARD_INPUT else file
    text = text_of(file)
    try:
        runs = load_manifests(text, source)
        contents = [document.content for document in read_documents(text, source)]
    except InvalidManifestError as error:
        variants = [problem for run in error.runs for problem in _check(run, check_variants)]
        raise InvalidSpecError(source, [*variants, *error.problems]) from error
    if problems := tuple(problem for run in runs for problem in _check(run)):
        raise InvalidSpecError(source, problems)
    return tuple(Written(content, run) for content, run in zip(contents, runs, strict=True))


def twice(written: Sequence[Written]) -> Iterator[Problem]:
    """Names that several of the manifests have: the second would meet the first."""
    seen = set()
    for name in ((each.run.metadata.namespace, each.run.metadata.name) for each in written):
        if name[1] and name in seen:
            yield Problem("metadata.name", f"{name[1]} is given to two runs: give each its own, or use generateName")
        seen.add(name)


def _check(run: BenchmarkRun, check: Check = check_run) -> Sequence[Problem]:
    """A script is in the cluster: of it nothing is known here, and its runner refuses what it cannot run."""
    script = run.spec.workload.script
    if script and script.file:
        return (Problem("spec.workload.script.file", ON_A_LAPTOP.message),)
    return check(run)

"""Read and check manifests for a cluster, as `accelbench validate` does, before anything is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.manifest import InvalidManifestError, load_manifests, read_documents
from accelbench.api.run import BenchmarkRun
from accelbench.local.errors import InvalidSpecError
from accelbench.local.manifests import STANDARD_INPUT, Check, read_text
from accelbench.plan.problems import check_run, check_variants, laptop_only_problems
from accelbench.problem import Problem


@dataclass(frozen=True)
class RunManifest:
    """Hold a BenchmarkRun as the content of its file, and parsed."""

    content: dict[str, Any]
    """The run as it is written, which is sent to the server."""
    run: BenchmarkRun
    """The run with the defaults of its fields."""


def read_manifests(file: str) -> tuple[RunManifest, ...]:
    """Read and check the BenchmarkRuns of a file, or of standard input for `-`.

    Raises InvalidSpecError with the problems of all runs.
    """
    source = "standard input" if file == STANDARD_INPUT else file
    text = read_text(file)
    try:
        runs = load_manifests(text, source)
        contents = [document.content for document in read_documents(text, source)]
    except InvalidManifestError as error:
        # Check the variants of those manifests that could be read: a misspelt variant can cause the other problems.
        variant_problems = [problem for run in error.runs for problem in _find_problems(run, check_variants)]
        raise InvalidSpecError(source, [*variant_problems, *error.problems]) from error
    problems = tuple(problem for run in runs for problem in _find_problems(run, check_run))
    if problems:
        raise InvalidSpecError(source, problems)
    return tuple(RunManifest(content, run) for content, run in zip(contents, runs, strict=True))


def duplicate_names(manifests: Sequence[RunManifest]) -> Iterator[Problem]:
    """Yield a problem for each manifest that repeats an earlier name."""
    earlier_names = set()
    for manifest in manifests:
        metadata = manifest.run.metadata
        namespace_and_name = (metadata.namespace, metadata.name)
        # A run with generateName has no name yet.
        if metadata.name and namespace_and_name in earlier_names:
            problem = f"{metadata.name} is given to two runs: give each its own, or use generateName"
            yield Problem("metadata.name", problem)
        earlier_names.add(namespace_and_name)


def _find_problems(run: BenchmarkRun, check: Check) -> Sequence[Problem]:
    """Return problems of fields that refer to files of this machine; if there are none, those that `check` finds."""
    return tuple(laptop_only_problems(run)) or check(run)

"""Read and check manifests for a cluster, as `accelbench validate` does, before anything is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.manifest import InvalidManifestError, load_manifests, read_documents
from accelbench.api.rules import LAPTOP_ONLY
from accelbench.api.run import BenchmarkRun
from accelbench.local.errors import InvalidSpecError
from accelbench.local.manifests import STANDARD_INPUT, Check, read_text
from accelbench.plan.problems import check_run, check_variants
from accelbench.problem import Problem


@dataclass(frozen=True)
class RunManifest:
    """Hold a BenchmarkRun as its file has it and as parsed."""

    content: dict[str, Any]
    run: BenchmarkRun


def read_manifests(file: str) -> tuple[RunManifest, ...]:
    """Read the BenchmarkRuns of a file (`-`: standard input); raises InvalidSpecError with all problems of all runs."""
    source = "standard input" if file == STANDARD_INPUT else file
    text = read_text(file)
    try:
        runs = load_manifests(text, source)
        contents = [document.content for document in read_documents(text, source)]
    except InvalidManifestError as error:
        variants = [problem for run in error.runs for problem in _check(run, check_variants)]
        raise InvalidSpecError(source, [*variants, *error.problems]) from error
    if problems := tuple(problem for run in runs for problem in _check(run)):
        raise InvalidSpecError(source, problems)
    return tuple(RunManifest(content, run) for content, run in zip(contents, runs, strict=True))


def duplicate_names(manifests: Sequence[RunManifest]) -> Iterator[Problem]:
    """Yield a problem for each name that two of the manifests have."""
    seen = set()
    for namespace, name in ((item.run.metadata.namespace, item.run.metadata.name) for item in manifests):
        if name and (namespace, name) in seen:
            yield Problem("metadata.name", f"{name} is given to two runs: give each its own, or use generateName")
        seen.add((namespace, name))


def _check(run: BenchmarkRun, check: Check = check_run) -> Sequence[Problem]:
    """Return the problems of one run; a script in a ConfigMap is left to its runner, which can read it."""
    script = run.spec.workload.script
    if script and script.file:
        return (Problem("spec.workload.script.file", LAPTOP_ONLY.message),)
    return check(run)

"""Turn a file's text into BenchmarkRuns, or into problems with their lines.

YAML is read as kubectl reads it (`accelbench.api.yaml_reader`); refusals are those of the API server
(`accelbench.api.admission`), each with its line.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from accelbench.api.admission import Refusal, defaulted, refusals
from accelbench.api.crd import KINDS
from accelbench.api.metadata import API_VERSION
from accelbench.api.run import BenchmarkRun
from accelbench.api.yaml_reader import InvalidManifestError, LocatedProblem, YamlDocument, read_documents
from accelbench.problem import Problem

__all__ = ["InvalidManifestError", "LocatedProblem", "check_manifest", "load_manifests", "parse_run", "read_documents"]

RUN = next(kind for kind in KINDS if kind.model is BenchmarkRun)


def load_manifests(text: str, source: str) -> tuple[BenchmarkRun, ...]:
    """Return every BenchmarkRun in `text`.

    Raises:
        InvalidManifestError: There is none, or some are invalid; it has all problems of all of them.
    """
    documents = read_documents(text, source)
    if not documents:
        raise InvalidManifestError(source, (Problem("", "holds no BenchmarkRun"),))
    problems = tuple(problem for document in documents for problem in _locate_problems(document))
    if problems:
        runs = tuple(run for document in documents for run in _run_despite_rules(document.content))
        raise InvalidManifestError(source, problems, runs)
    return tuple(parse_run(document.content, source) for document in documents)


def parse_run(manifest: Mapping[str, Any], source: str) -> BenchmarkRun:
    """Return the BenchmarkRun of a manifest, with defaults; raises InvalidManifestError."""
    problems = tuple(check_manifest(manifest))
    if problems:
        raise InvalidManifestError(source, problems, tuple(_run_despite_rules(manifest)))
    try:
        return BenchmarkRun.model_validate(defaulted(RUN, manifest))
    except ValidationError as error:
        problems = tuple(
            Problem(".".join(str(part) for part in detail["loc"]), detail["msg"]) for detail in error.errors()
        )
        raise InvalidManifestError(source, problems) from error


def _run_despite_rules(manifest: Mapping[str, Any]) -> Iterator[BenchmarkRun]:
    """Yield the manifest's run if it fits the schema, whether or not it breaks rules."""
    with suppress(ValidationError):
        yield BenchmarkRun.model_validate(defaulted(RUN, manifest))


def check_manifest(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a manifest.

    These are the API server's refusals or, for a wrong kind, kubectl's message with a suggestion.
    """
    for name in ("apiVersion", "kind"):
        if not isinstance(manifest.get(name), str) or not manifest[name]:
            yield Problem(name, f"Required value: {API_VERSION if name == 'apiVersion' else RUN.name}")
            return
    version, kind = manifest["apiVersion"], manifest["kind"]
    if (version, kind) == (API_VERSION, RUN.name):
        yield from refusals(RUN, manifest)
        return
    text = f'no matches for kind "{kind}" in version "{version}"; did you mean {RUN.name} in {API_VERSION}?'
    yield Refusal("", text, field="kind" if version == API_VERSION else "apiVersion")


def _locate_problems(document: YamlDocument) -> Iterator[LocatedProblem]:
    """Yield the document's problems, each with the line of the field to blame."""
    for problem in check_manifest(document.content):
        field = problem.field if isinstance(problem, Refusal) and problem.field else problem.path
        yield LocatedProblem(problem.path, problem.message, document.line(field))

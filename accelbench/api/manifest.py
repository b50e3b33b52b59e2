"""Turn a file's text into BenchmarkRuns, or into problems with their lines.

YAML is read as kubectl reads it (`accelbench.api.yaml_reader`); refusals are those of the API server
(`accelbench.api.admission`), each with its line.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from accelbench.api.admission import Refusal, refusals, to_stored
from accelbench.api.crd import KINDS
from accelbench.api.metadata import API_VERSION
from accelbench.api.run import BenchmarkRun
from accelbench.api.yaml_reader import InvalidManifestError, LocatedProblem, YamlDocument, read_documents
from accelbench.problem import Problem

__all__ = ["InvalidManifestError", "LocatedProblem", "check_manifest", "load_manifests", "parse_run", "read_documents"]

RUN = next(kind for kind in KINDS if kind.model is BenchmarkRun)


def load_manifests(text: str, source: str) -> tuple[BenchmarkRun, ...]:
    """Return every BenchmarkRun in `text`; `source` names the file in messages.

    Raises:
        InvalidManifestError: A document is missing or has a problem. The error has the problems and the readable runs.
    """
    documents = read_documents(text, source)
    if not documents:
        raise InvalidManifestError(source, (Problem("", "holds no BenchmarkRun"),))
    problems = tuple(problem for document in documents for problem in _locate_problems(document))
    if problems:
        readable_runs = tuple(run for document in documents for run in _read_without_rules(document.content))
        raise InvalidManifestError(source, problems, readable_runs)
    return tuple(parse_run(document.content, source) for document in documents)


def parse_run(manifest: Mapping[str, Any], source: str) -> BenchmarkRun:
    """Return the BenchmarkRun of a manifest; raises InvalidManifestError if it has a problem."""
    problems = tuple(check_manifest(manifest))
    if problems:
        raise InvalidManifestError(source, problems, tuple(_read_without_rules(manifest)))
    try:
        return BenchmarkRun.model_validate(to_stored(RUN, manifest))
    except ValidationError as error:  # the schema accepts a value that the model refuses
        model_problems = []
        for detail in error.errors():
            path = ".".join(str(name) for name in detail["loc"])
            model_problems.append(Problem(path, detail["msg"]))
        raise InvalidManifestError(source, tuple(model_problems)) from error


def _read_without_rules(manifest: Mapping[str, Any]) -> Iterator[BenchmarkRun]:
    """Yield the run if the manifest fits the schema, even if it breaks a CEL rule; yield nothing otherwise."""
    with suppress(ValidationError):
        yield BenchmarkRun.model_validate(to_stored(RUN, manifest))


def check_manifest(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a manifest, in the words of kubectl or the API server; none if it can be applied."""
    for name, expected in (("apiVersion", API_VERSION), ("kind", RUN.name)):
        if not isinstance(manifest.get(name), str) or not manifest[name]:
            yield Problem(name, f"Required value: {expected}")
            return
    version, kind = manifest["apiVersion"], manifest["kind"]
    if (version, kind) == (API_VERSION, RUN.name):
        yield from refusals(RUN, manifest)
        return
    # kubectl's message, with a suggestion. It needs no path in front; `unshown_path` only gives the line.
    text = f'no matches for kind "{kind}" in version "{version}"; did you mean {RUN.name} in {API_VERSION}?'
    yield Refusal("", text, unshown_path="kind" if version == API_VERSION else "apiVersion")


def _locate_problems(document: YamlDocument) -> Iterator[LocatedProblem]:
    """Yield the document's problems, each with its line."""
    for problem in check_manifest(document.content):
        # If a refusal's message names the field, its path is empty, so that the field is not shown twice. Its
        # `unshown_path` then gives the line.
        unshown_path = problem.unshown_path if isinstance(problem, Refusal) else ""
        yield LocatedProblem(problem.path, problem.message, document.line(unshown_path or problem.path))

"""From a file's name to checked BenchmarkRuns: what `run` and `validate` do before anything else."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from accelbench import script
from accelbench.api.manifest import InvalidManifestError, load_manifests, parse_run, read_documents
from accelbench.api.run import BenchmarkRun
from accelbench.catalogue import check_run
from accelbench.cli.overrides import InvalidOverrideError, override
from accelbench.problem import Problem

STANDARD_INPUT = "-"


class InvalidSpecError(Exception):
    """A manifest that no door would let in; says everything that is wrong with it at once."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        """`source` is the file's name, for the message."""
        super().__init__(source)
        self.source = source
        self.problems = tuple(problems)

    def explained(self) -> str:
        """For standard error: the file, and a line for each problem."""
        return "\n".join([f"{self.source} is not valid:", *(f"  {problem}" for problem in self.problems)])


def read(file: str, assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """The BenchmarkRuns of `file` (`-`: standard input), overridden and checked; raises InvalidSpecError."""
    source = "standard input" if file == STANDARD_INPUT else file
    text = _text(file)
    try:
        runs = _overridden(text, source, assignments) if assignments else load_manifests(text, source)
    except InvalidManifestError as error:
        raise InvalidSpecError(source, error.problems) from error
    problems = [problem for run in runs for problem in _check(run, file)]
    if problems:
        raise InvalidSpecError(source, problems)
    return runs


def script_of(run: BenchmarkRun, file: str) -> Path | None:
    """Where the run's script is to lie on this machine: beside its manifest, under the ConfigMap's key."""
    if run.spec.workload.script is None:
        return None
    directory = Path() if file == STANDARD_INPUT else Path(file).parent
    return (directory / run.spec.workload.script.config_map_key_ref.key).absolute()


def _check(run: BenchmarkRun, file: str) -> Sequence[Problem]:
    path = script_of(run, file)
    if path is None:
        return check_run(run)
    if not path.is_file():
        what = f"script not found: expected {path}, beside the manifest"
        return (Problem("spec.workload.script.configMapKeyRef.key", what),)
    with script.used(path):
        return check_run(run)


def _overridden(text: str, source: str, assignments: Sequence[str]) -> tuple[BenchmarkRun, ...]:
    try:
        manifests = [override(document.content, assignments) for document in read_documents(text, source)]
    except InvalidOverrideError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from error
    # Of a file without a run it is the loader that says so.
    return tuple(parse_run(manifest, source) for manifest in manifests) or load_manifests(text, source)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="FILE") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8 text", param_hint="FILE") from error

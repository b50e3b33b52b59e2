"""From a file's name to checked BenchmarkRuns: what `run` and `validate` do before anything else."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer
import yaml

from accelbench.api.manifest import InvalidManifestError, load_manifests
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
        runs = load_manifests(_overridden(text, assignments), source)
    except InvalidManifestError as error:
        # A line of the overridden text is no line of the user's file.
        told = [Problem(problem.path, problem.message) if assignments else problem for problem in error.problems]
        raise InvalidSpecError(source, told) from error
    problems = [problem for run in runs for problem in check_run(run)]
    if problems:
        raise InvalidSpecError(source, problems)
    return runs


def _overridden(text: str, assignments: Sequence[str]) -> str:
    if not assignments:
        return text
    try:
        manifests = [manifest for manifest in yaml.safe_load_all(text) if manifest is not None]
    except yaml.YAMLError:
        return text  # the loader says where
    try:
        changed = [override(manifest, assignments) for manifest in manifests]
    except InvalidOverrideError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from error
    return yaml.safe_dump_all(changed, sort_keys=False)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="FILE") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8 text", param_hint="FILE") from error

"""From a file's name to checked BenchmarkRuns: what `run` and `validate` do before anything else."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from accelbench.api.case import name_of_file
from accelbench.api.manifest import InvalidManifestError, load_manifests, parse_run, read_documents
from accelbench.api.metadata import API_VERSION
from accelbench.api.run import BenchmarkRun
from accelbench.catalogue import UnknownWorkloadError, find, script
from accelbench.cli.overrides import InvalidOverrideError, override
from accelbench.plan.problems import check_run
from accelbench.problem import Problem
from accelbench.workload import Workload

STANDARD_INPUT = "-"
USUAL = ("pytorch/eager", "jax/jit")
"""What a script is checked as that does not say what it offers; the first is the baseline."""
VARIANT_SECONDS = 120
"""What each variant of a script without a manifest may take: on a busy machine torch.compile alone takes a minute."""
FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.py")


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
    return tuple(_named(run) for run in runs)


def _named(run: BenchmarkRun) -> BenchmarkRun:
    """The run under a name, where the API server would make one up: nothing on a laptop has to be unique."""
    metadata = run.metadata
    name = metadata.name or metadata.generate_name.rstrip("-.")
    return run.model_copy(update={"metadata": metadata.model_copy(update={"name": name})})


def read_script(file: str, assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """A run of the script `file` with its default parameters, as a manifest would ask; raises InvalidSpecError."""
    path = Path(file).absolute()
    if not path.is_file():
        raise typer.BadParameter(f"cannot read {file}: no such file", param_hint="FILE")
    if not FILE_NAME.fullmatch(path.name):
        what = "a script's name has lower-case letters, digits and underscores, as in my_filter.py: rename it"
        raise InvalidSpecError(file, [Problem("", f"{path.name}: {what}")])
    try:
        with script.used(path):
            workload = find(name_of_file(path.name))
    except UnknownWorkloadError as error:
        raise InvalidSpecError(file, [Problem("", str(error))]) from error
    manifest = _override(_manifest(workload, path.name), assignments)
    try:
        run = parse_run(manifest, file)
    except InvalidManifestError as error:
        raise InvalidSpecError(file, error.problems) from error
    if problems := _check(run, file):
        raise InvalidSpecError(file, problems)
    return (run,)


def _manifest(workload: Workload, key: str) -> dict[str, Any]:
    """All that the script offers, where it says what; of the modes that it merely inherits, one for each framework."""
    offered = list(workload.variants())
    inherited = "modes" not in vars(type(workload))
    plain = {use for use, kind in workload.variants().items() if kind.method == kind.framework}
    chosen = [use for use in offered if use in USUAL or not inherited or use not in plain]
    first = [use for use in USUAL if use in chosen]
    uses = list(dict.fromkeys([*first, *chosen]))
    return {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "metadata": {"name": workload.name},
        "spec": {
            "workload": {"script": {"configMapKeyRef": {"name": "scripts", "key": key}}},
            "variants": [{"use": use} for use in uses],
            "measurement": {"timeLimitSeconds": VARIANT_SECONDS * len(uses)},
        },
    }


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
    manifests = [_override(document.content, assignments) for document in read_documents(text, source)]
    # Of a file without a run it is the loader that says so.
    return tuple(parse_run(manifest, source) for manifest in manifests) or load_manifests(text, source)


def _override(manifest: Any, assignments: Sequence[str]) -> Any:
    try:
        return override(manifest, assignments)
    except InvalidOverrideError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from error


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="FILE") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8 text", param_hint="FILE") from error

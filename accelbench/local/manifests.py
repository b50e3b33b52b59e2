"""Read and check what to measure, a manifest, a script or a workload, as BenchmarkRuns."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accelbench.api.case import SCRIPT_SUFFIX, name_of_file
from accelbench.api.manifest import InvalidManifestError, load_manifests, parse_run, read_documents
from accelbench.api.metadata import API_VERSION
from accelbench.api.run import BenchmarkRun, BenchmarkRunSpec, Measurement
from accelbench.catalogue import UnknownWorkloadError, find, names, script
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.overrides import SET, override
from accelbench.plan.problems import check_run, check_variants
from accelbench.problem import Problem, describe_unknown, find_similar, suggest_name
from accelbench.workload import Workload

STANDARD_INPUT = "-"
USUAL = ("pytorch/eager", "jax/jit")
"""Default variants; the first is the baseline."""
VARIANT_SECONDS = 120
"""Default time limit for each variant; on a busy machine torch.compile alone takes a minute."""
Check = Callable[[BenchmarkRun], Sequence[Problem]]
WORKLOAD_NAME = re.compile(r"[a-z0-9-]+")
FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.py")


def read(file: str, assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """Read and check the BenchmarkRuns of a file (`-`: standard input); raises InvalidSpecError and UsageError."""
    source = "standard input" if file == STANDARD_INPUT else file
    if file.endswith(SCRIPT_SUFFIX):
        raise InvalidSpecError(file, [Problem("", "it is a script and not a manifest; use accelbench check")])
    text = read_text(file)
    try:
        runs = _overridden(text, source, assignments) if assignments else load_manifests(text, source)
    except InvalidManifestError as error:
        raise _with_variants(error, file) from error
    problems = [problem for run in runs for problem in _check(run, file)]
    if problems:
        raise InvalidSpecError(source, problems)
    return tuple(_named(run) for run in runs)


def _named(run: BenchmarkRun) -> BenchmarkRun:
    """Use `generateName` as the name: on this machine names need not be unique."""
    metadata = run.metadata
    name = metadata.name or metadata.generate_name.rstrip("-.")
    return run.model_copy(update={"metadata": metadata.model_copy(update={"name": name})})


def read_target(target: str, variants: Sequence[str] = (), assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """Read the runs of a manifest, or make one run; raises InvalidSpecError and UsageError.

    Args:
        target: A manifest (`-`: standard input), a script, or the name of a workload.
        variants: For a script or a workload: what to compare, the baseline first; empty: `USUAL`.
        assignments: `PATH=VALUE`, with the path of a field of the spec or the name of a parameter.
    """
    if target.endswith(SCRIPT_SUFFIX):
        return (_read_script(target, variants, assignments),)
    if target != STANDARD_INPUT and not Path(target).exists() and target in names():
        return (_default_run(find(target), {"name": target}, USUAL, target, variants, assignments),)
    if variants:
        read_text(target)  # refuses a name that is neither a file nor a workload
        message = "a manifest lists its variants itself: change them there, or with --set variants[0].use=USE"
        raise UsageError(message, "--variant")
    return read(target, assignments)


def _read_script(file: str, variants: Sequence[str], assignments: Sequence[str]) -> BenchmarkRun:
    path = Path(file).absolute()
    if not path.is_file():
        scripts = [script.name for script in path.parent.glob(f"*{SCRIPT_SUFFIX}")]
        raise UsageError(f"cannot read {file}: no such file{_suggestion(path.name, scripts)}", "FILE")
    if not FILE_NAME.fullmatch(path.name):
        rule = "a script's name consists of lower-case letters, digits and underscores, such as my_filter.py: rename it"
        raise InvalidSpecError(file, [Problem("", f"{path.name}: {rule}")])
    try:
        with script.use(path):
            workload = find(name_of_file(path.name))
    except UnknownWorkloadError as error:
        raise InvalidSpecError(file, [Problem("", str(error))]) from error
    source = {"script": {"file": path.name}}
    return _default_run(workload, source, workload.default_uses(), file, variants, assignments)


def _default_run(
    workload: Workload,
    source: dict[str, Any],
    preferred: Sequence[str],
    target: str,
    variants: Sequence[str],
    assignments: Sequence[str],
) -> BenchmarkRun:
    """Make the run that a manifest would; its default variants are the preferred ones that the workload has."""
    offered = [use for use in preferred if use in workload.variants()]
    defaults = offered if len(offered) > 1 else list(workload.variants())
    uses = list(variants) or list(dict.fromkeys([*(use for use in USUAL if use in defaults), *defaults]))
    manifest = {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "metadata": {"name": workload.name},
        "spec": {
            "workload": source,
            "variants": [{"use": use} for use in uses],
            "measurement": {"timeLimitSeconds": time_limit(uses)},
        },
    }
    try:
        run = parse_run(override(manifest, [_with_path(assignment, workload) for assignment in assignments]), target)
    except InvalidManifestError as error:
        raise _with_variants(error, target) from error
    if problems := _check(run, target):
        raise InvalidSpecError(target, problems)
    return run


def time_limit(uses: Sequence[str]) -> int:
    """Return the default time limit of a case in seconds."""
    return VARIANT_SECONDS * len(uses)


def _with_path(assignment: str, workload: Workload) -> str:
    """Add the path to an assignment such as `size=256` that names a parameter of the workload."""
    name = assignment.partition("=")[0].strip()
    fields = {field.alias for field in BenchmarkRunSpec.model_fields.values()}
    if not name.isidentifier() or name in fields | {"spec"}:
        return assignment
    if name not in workload.Parameters.model_fields:
        parameters = workload.Parameters.model_fields or ["none"]
        if name in {info.alias or field for field, info in Measurement.model_fields.items()}:
            raise UsageError(f"{name} is no parameter; did you mean measurement.{name}?", SET)
        hint = "(Other fields have a path, such as measurement.rounds.max.)"
        raise UsageError(f"{describe_unknown('parameter', name, parameters)} {hint}", SET)
    return f"workload.parameters.{assignment}"


def script_of(run: BenchmarkRun, file: str) -> Path | None:
    """Return the path of the run's script, next to its manifest; None if it has none."""
    if run.spec.workload.script is None:
        return None
    directory = Path() if file == STANDARD_INPUT else Path(file).parent
    return (directory / run.spec.workload.script.file_name).absolute()


def _with_variants(error: InvalidManifestError, file: str) -> InvalidSpecError:
    """List problems of variants first, because a misspelt variant also makes fields wrong that refer to it."""
    variants = [problem for run in error.runs for problem in _check(run, file, check_variants)]
    return InvalidSpecError(error.source, [*variants, *error.problems])


def _check(run: BenchmarkRun, file: str, check: Check = check_run) -> Sequence[Problem]:
    path = script_of(run, file)
    if path is None:
        return check(run)
    if not path.is_file():
        return (Problem("spec.workload.script", f"script not found: expected {path}, next to the manifest"),)
    with script.use(path):
        return check(run)


def _overridden(text: str, source: str, assignments: Sequence[str]) -> tuple[BenchmarkRun, ...]:
    manifests = [
        override(document.content, [_with_parameter_path(assignment, document.content) for assignment in assignments])
        for document in read_documents(text, source)
    ]
    # The loader refuses a file without a run.
    return tuple(parse_run(manifest, source) for manifest in manifests) or load_manifests(text, source)


def _with_parameter_path(assignment: str, manifest: Any) -> str:
    """Add the path to an assignment such as `size=256` that names a parameter in the manifest."""
    name, value = assignment.partition("=")[0].strip(), manifest
    for field in ("spec", "workload", "parameters"):
        value = value.get(field) if isinstance(value, dict) else None
    return f"workload.parameters.{assignment}" if isinstance(value, dict) and name in value else assignment


def _suggestion(name: str, known: Sequence[str]) -> str:
    """Return `; did you mean NAME?` if one of the known names is similar, else an empty text."""
    near = find_similar(name, known)
    return f"; did you mean {near}?" if near else ""


def read_text(file: str) -> str:
    """Read a file (`-`: standard input); raises UsageError."""
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            if WORKLOAD_NAME.fullmatch(file.replace("_", "-")):
                message += f", and no workload has this name; {suggest_name(file, names())}"
            else:
                message += _suggestion(Path(file).name, [path.name for path in Path(file).parent.glob("*")])
        raise UsageError(message, "FILE") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text", "FILE") from error

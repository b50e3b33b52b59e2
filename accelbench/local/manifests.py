"""From what is to be measured to checked BenchmarkRuns: what `run`, `check` and `validate` do before anything else."""

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
from accelbench.problem import Problem, nearest, similar, unknown
from accelbench.workload import Workload

STANDARD_INPUT = "-"
USUAL = ("pytorch/eager", "jax/jit")
"""What is measured where nobody says what; the first is the baseline."""
VARIANT_SECONDS = 120
"""What each variant may take where there is no manifest: on a busy machine torch.compile alone takes a minute."""
Check = Callable[[BenchmarkRun], Sequence[Problem]]
WORKLOAD_NAME = re.compile(r"[a-z0-9-]+")
FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.py")


def read(file: str, assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """The BenchmarkRuns of `file` (`-`: standard input), overridden and checked; raises InvalidSpecError."""
    source = "standard input" if file == STANDARD_INPUT else file
    if file.endswith(SCRIPT_SUFFIX):
        raise InvalidSpecError(file, [Problem("", "it is a script and not a manifest; use accelbench check")])
    text = text_of(file)
    try:
        runs = _overridden(text, source, assignments) if assignments else load_manifests(text, source)
    except InvalidManifestError as error:
        raise _with_variants(error, file) from error
    problems = [problem for run in runs for problem in _check(run, file)]
    if problems:
        raise InvalidSpecError(source, problems)
    return tuple(_named(run) for run in runs)


def _named(run: BenchmarkRun) -> BenchmarkRun:
    """The run under a name, where the API server would make one up: nothing on a laptop has to be unique."""
    metadata = run.metadata
    name = metadata.name or metadata.generate_name.rstrip("-.")
    return run.model_copy(update={"metadata": metadata.model_copy(update={"name": name})})


def read_target(target: str, variants: Sequence[str] = (), assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """What to measure: a manifest, a script (.py), or a workload of the catalogue by its name; raises InvalidSpecError.

    A script or a workload is asked as a manifest would, with its default parameters and, without `variants`, those that
    people ask for first. The first variant is the baseline. Parameters can be set by their names alone.
    """
    if target.endswith(SCRIPT_SUFFIX):
        return (_read_script(target, variants, assignments),)
    if target != STANDARD_INPUT and not Path(target).exists() and target in names():
        return (_default_run(find(target), {"name": target}, USUAL, target, variants, assignments),)
    if variants:
        text_of(target)  # what is no manifest either is a name that nothing has
        what = "a manifest lists its variants itself: change them there, or with --set variants[0].use=USE"
        raise UsageError(what, "--variant")
    return read(target, assignments)


def _read_script(file: str, variants: Sequence[str], assignments: Sequence[str]) -> BenchmarkRun:
    path = Path(file).absolute()
    if not path.is_file():
        there = [each.name for each in path.parent.glob(f"*{SCRIPT_SUFFIX}")]
        what = f"cannot read {file}: no such file{_like(path.name, there)}"
        raise UsageError(what, "FILE")
    if not FILE_NAME.fullmatch(path.name):
        what = "a script's name consists of lower-case letters, digits and underscores, such as my_filter.py: rename it"
        raise InvalidSpecError(file, [Problem("", f"{path.name}: {what}")])
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
    """The run that a manifest would ask for; of those `preferred` the usual ones come first."""
    offered = [use for use in preferred if use in workload.variants()]
    least = offered if len(offered) > 1 else list(workload.variants())
    uses = list(variants) or list(dict.fromkeys([*(use for use in USUAL if use in least), *least]))
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
        run = parse_run(override(manifest, [_of_spec(each, workload) for each in assignments]), target)
    except InvalidManifestError as error:
        raise _with_variants(error, target) from error
    if problems := _check(run, target):
        raise InvalidSpecError(target, problems)
    return run


def time_limit(uses: Sequence[str]) -> int:
    """Seconds that a case of these variants may take where nobody says how many."""
    return VARIANT_SECONDS * len(uses)


def _of_spec(assignment: str, workload: Workload) -> str:
    """`size=256` with its path in the spec, where `size` is a parameter of the workload's."""
    name, fields = assignment.partition("=")[0].strip(), {each.alias for each in BenchmarkRunSpec.model_fields.values()}
    if not name.isidentifier() or name in fields | {"spec"}:
        return assignment
    if name not in workload.Parameters.model_fields:
        offered = workload.Parameters.model_fields or ["none"]
        if name in {each.alias or field for field, each in Measurement.model_fields.items()}:
            raise UsageError(f"{name} is no parameter; did you mean measurement.{name}?", SET)
        what = f"{unknown('parameter', name, offered)} (Other fields have a path, such as measurement.rounds.max.)"
        raise UsageError(what, SET)
    return f"workload.parameters.{assignment}"


def script_of(run: BenchmarkRun, file: str) -> Path | None:
    """Where the run's script is to lie on this machine: beside its manifest, under its name."""
    if run.spec.workload.script is None:
        return None
    directory = Path() if file == STANDARD_INPUT else Path(file).parent
    return (directory / run.spec.workload.script.file_name).absolute()


def _with_variants(error: InvalidManifestError, file: str) -> InvalidSpecError:
    """First what is wrong with variants: other fields name them, and may be the ones that spell them right."""
    variants = [problem for run in error.runs for problem in _check(run, file, check_variants)]
    return InvalidSpecError(error.source, [*variants, *error.problems])


def _check(run: BenchmarkRun, file: str, check: Check = check_run) -> Sequence[Problem]:
    path = script_of(run, file)
    if path is None:
        return check(run)
    if not path.is_file():
        what = f"script not found: expected {path}, next to the manifest"
        return (Problem("spec.workload.script", what),)
    with script.use(path):
        return check(run)


def _overridden(text: str, source: str, assignments: Sequence[str]) -> tuple[BenchmarkRun, ...]:
    manifests = [
        override(document.content, [_of_parameters(each, document.content) for each in assignments])
        for document in read_documents(text, source)
    ]
    # Of a file without a run it is the loader that says so.
    return tuple(parse_run(manifest, source) for manifest in manifests) or load_manifests(text, source)


def _of_parameters(assignment: str, manifest: Any) -> str:
    """`size=256` with its path in the spec, where the manifest sets a parameter `size` itself."""
    name, found = assignment.partition("=")[0].strip(), manifest
    for field in ("spec", "workload", "parameters"):
        found = found.get(field) if isinstance(found, dict) else None
    return f"workload.parameters.{assignment}" if isinstance(found, dict) and name in found else assignment


def _like(name: str, there: Sequence[str]) -> str:
    """`; did you mean NAME?`, where a file beside it is called much alike."""
    near = similar(name, there)
    return f"; did you mean {near}?" if near else ""


def text_of(file: str) -> str:
    """What the file says (`-`: standard input); raises UsageError where it cannot be read."""
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        why = f"cannot read {file}: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            if WORKLOAD_NAME.fullmatch(file.replace("_", "-")):
                why += f", and no workload has this name; {nearest(file, names())}"
            else:
                why += _like(Path(file).name, [each.name for each in Path(file).parent.glob("*")])
        raise UsageError(why, "FILE") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text", "FILE") from error

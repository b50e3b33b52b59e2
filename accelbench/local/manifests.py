"""Read a manifest, a script or a workload's name as BenchmarkRuns, and check them.

A target is here what a user asks to measure: the path of a manifest or a script, or a workload's name. A use, such as
`jax/jit`, is the framework and the mode of a variant.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench import frameworks
from accelbench.api.case import SCRIPT_NAME, SCRIPT_SUFFIX, workload_name_from_file
from accelbench.api.manifest import InvalidManifestError, load_manifests, parse_run, read_documents
from accelbench.api.metadata import API_VERSION
from accelbench.api.run import BenchmarkRun, BenchmarkRunSpec, Measurement
from accelbench.catalogue import UnknownWorkloadError, find, names
from accelbench.local import scripts
from accelbench.local.environments import OPTION, parse_option
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.overrides import SET, override
from accelbench.plan.problems import check_run, check_variants
from accelbench.problem import Problem, describe_unknown, find_similar, suggest_name
from accelbench.workload import Workload

STANDARD_INPUT = "-"
DEFAULT_VARIANTS = ("pytorch/eager", "jax/jit")
"""Default variants; the first is the baseline."""
VARIANT_SECONDS = 120
"""Default time limit for each variant; on a busy machine torch.compile alone takes a minute."""
Check = Callable[[BenchmarkRun], Sequence[Problem]]
WORKLOAD_NAME = re.compile(r"[a-z0-9-]+")


def read(file: str, assignments: Sequence[str] = ()) -> tuple[BenchmarkRun, ...]:
    """Read and check the BenchmarkRuns of a manifest; raises InvalidSpecError and UsageError.

    Args:
        file: The manifest's path, or `-` for standard input.
        assignments: Overrides as `PATH=VALUE`; PATH is the path of a field in the spec, or the name of a parameter.
    """
    source = "standard input" if file == STANDARD_INPUT else file
    if file.endswith(SCRIPT_SUFFIX):
        raise InvalidSpecError(file, [Problem("", "it is a script and not a manifest; use accelbench check")])
    text = read_text(file)
    try:
        # `load_manifests` reports the problems of all runs, with their lines. Overridden fields have no lines.
        runs = _load_with_assignments(text, source, assignments) if assignments else load_manifests(text, source)
    except InvalidManifestError as error:
        raise _with_variant_problems(error, file) from error
    problems = [problem for run in runs for problem in _check(run, file)]
    if problems:
        raise InvalidSpecError(source, problems)
    return tuple(_with_name(run) for run in runs)


def _with_name(run: BenchmarkRun) -> BenchmarkRun:
    """Return the run with a name: without `metadata.name`, `generateName` becomes the name.

    On this machine, unlike in a cluster, names need not be unique.
    """
    metadata = run.metadata
    name = metadata.name or metadata.generate_name.rstrip("-.")
    return run.model_copy(update={"metadata": metadata.model_copy(update={"name": name})})


def read_target(
    target: str, variants: Sequence[str] = (), assignments: Sequence[str] = (), environments: Sequence[str] = ()
) -> tuple[BenchmarkRun, ...]:
    """Read the runs of a manifest, or make one run of a script or workload.

    Args:
        target: Path of a manifest or a script, the name of a workload, or `-` for a manifest on standard input.
        variants: Variants of a script or workload to compare, the baseline first; if empty, its default variants. A
            variant in an environment of its own is `USE@ENVIRONMENT`.
        assignments: Overrides as `PATH=VALUE`; PATH is the path of a field in the spec, or the name of a parameter.
        environments: Environments of a script's or workload's variants, as `NAME=WORDS`.

    Raises:
        InvalidSpecError: The manifest, the script or the run is not valid.
        UsageError: An argument is wrong: there is no such file or parameter, or `variants` or `environments` are given
            for a manifest.
    """
    if target.endswith(SCRIPT_SUFFIX):
        return (_read_script(target, VariantOptions(variants, environments), assignments),)
    is_workload = target != STANDARD_INPUT and not Path(target).exists() and target in names()
    if is_workload:
        options = VariantOptions(variants, environments)
        return (_make_run(find(target), {"name": target}, DEFAULT_VARIANTS, target, options, assignments),)
    if variants or environments:
        read_text(target)  # raises UsageError for a name that is neither a file nor a workload
    if variants:
        message = "a manifest lists its variants itself: change them there, or with --set variants[0].use=USE"
        raise UsageError(message, "--variant")
    if environments:
        message = "a manifest lists its environments itself, in spec.environments, and variants name them"
        raise UsageError(message, OPTION)
    return read(target, assignments)


def _read_script(file: str, options: "VariantOptions", assignments: Sequence[str]) -> BenchmarkRun:
    """Make a run of the workload in a script; the arguments are those of `read_target`.

    Raises UsageError if there is no such file, and InvalidSpecError if its name or its content is invalid.
    """
    path = Path(file).absolute()
    if not path.is_file():
        script_names = [script_path.name for script_path in path.parent.glob(f"*{SCRIPT_SUFFIX}")]
        raise UsageError(f"cannot read {file}: no such file{_suggest(path.name, script_names)}", "FILE")
    if not re.fullmatch(SCRIPT_NAME, path.name):
        rule = (
            "a script's name begins with a letter or a digit of ASCII and has only these, dashes, dots and underscores"
        )
        raise InvalidSpecError(file, [Problem("", f"{path.name}: {rule}: rename it")])
    try:
        with scripts.use(path):
            workload = find(workload_name_from_file(path.name))
    except (UnknownWorkloadError, scripts.ScriptDoesNotReturnError) as error:
        raise InvalidSpecError(file, [Problem("", str(error))]) from error
    reference = {"script": {"file": path.name}}
    return _make_run(workload, reference, workload.default_uses(), file, options, assignments)


@dataclass(frozen=True)
class VariantOptions:
    """Hold the values of --variant and --environment, for a run without a manifest."""

    variants: Sequence[str]
    """Each `USE` or `USE@ENVIRONMENT`."""
    environments: Sequence[str]
    """Each `NAME=WORDS`."""

    def manifest_environments(self) -> list[dict[str, Any]]:
        """Return the environments in the form of a manifest; raises UsageError."""
        return list(map(parse_option, self.environments))

    def manifest_variants(self, default_uses: Sequence[str]) -> list[dict[str, Any]]:
        """Return the variants in the form of a manifest.

        Without --variant, they are all of `default_uses`. For each environment, those of them whose framework it
        requires follow once more, to run in that environment.
        """
        chosen = list(self.variants)
        if not chosen:
            chosen = list(default_uses)
            for environment in self.manifest_environments():
                for use in default_uses:
                    package = frameworks.find(frameworks.name_of(use)).package
                    if _requires(environment, package):
                        chosen.append(f"{use}@{environment['name']}")
        return list(map(_manifest_variant, chosen))


def _requires(environment: Mapping[str, Any], package: str) -> bool:
    """Return True if a requirement of the environment, which has the form of a manifest, begins with the package."""
    whole_name = re.compile(rf"{re.escape(package)}(?![-A-Za-z0-9._])")  # for `jax`, not `jaxlib`
    return any(whole_name.match(requirement) for requirement in environment.get("requirements", ()))


def _manifest_variant(text: str) -> dict[str, Any]:
    """Return the variant `USE` or `USE@ENVIRONMENT` in the form of a manifest; the latter is named USE-ENVIRONMENT."""
    use, at_sign, environment = text.partition("@")
    if not at_sign:
        return {"use": use}
    return {"use": use, "name": f"{use}-{environment}", "environment": environment}


def _make_run(
    workload: Workload,
    reference: dict[str, Any],
    default_uses: Sequence[str],
    target: str,
    options: VariantOptions,
    assignments: Sequence[str],
) -> BenchmarkRun:
    """Make a run of a workload for which the user has written no manifest.

    `reference` becomes `spec.workload`, and `default_uses` are the variants if `options` name none. `target` is the
    script's file or the workload's name, as the user gave it. Raises InvalidSpecError for a run that cannot be
    measured, and UsageError for a wrong option or assignment.
    """
    variants = options.manifest_variants(_choose_uses(default_uses, list(workload.variants())))
    manifest: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "metadata": {"name": workload.name},
        "spec": {
            "workload": reference,
            "variants": variants,
            "measurement": {"timeLimitSeconds": time_limit(variants)},
        },
    }
    if options.environments:
        manifest["spec"]["environments"] = options.manifest_environments()
    assignments_with_paths = [_with_path_for_workload(assignment, workload) for assignment in assignments]
    try:
        run = parse_run(override(manifest, assignments_with_paths), target)
    except InvalidManifestError as error:
        raise _with_variant_problems(error, target) from error
    if problems := _check(run, target):
        raise InvalidSpecError(target, problems)
    return run


def _choose_uses(preferred: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the preferred uses that are offered or, if fewer than two of them are, all offered uses.

    The baseline is first.
    """
    chosen = [use for use in preferred if use in offered]
    if len(chosen) < 2:  # noqa: PLR2004 - a comparison needs two variants
        chosen = list(offered)
    # The first variant is the baseline: PyTorch in eager mode if it is chosen, else `jax/jit` if that is chosen.
    first_uses = [use for use in DEFAULT_VARIANTS if use in chosen]
    return first_uses + [use for use in chosen if use not in first_uses]


def time_limit(variants: Sequence[Any]) -> int:
    """Return the default time limit of a case with these variants, in seconds."""
    return VARIANT_SECONDS * len(variants)


def _with_path_for_workload(assignment: str, workload: Workload) -> str:
    """Complete `size=256` to `workload.parameters.size=256` for a parameter of the workload.

    Return an assignment to another field unchanged; raise UsageError for an unknown name without a path.
    """
    name = assignment.partition("=")[0].strip()
    spec_fields = {field.alias for field in BenchmarkRunSpec.model_fields.values()}
    if not name.isidentifier() or name in spec_fields | {"spec"}:  # a path, or a field of the spec or of the manifest
        return assignment
    if name not in workload.Parameters.model_fields:
        measurement_fields = {info.alias or field for field, info in Measurement.model_fields.items()}
        if name in measurement_fields:
            raise UsageError(f"{name} is no parameter; did you mean measurement.{name}?", SET)
        parameters = workload.Parameters.model_fields or ["none"]  # the message lists them: `one of: none`
        hint = "(Other fields have a path, such as measurement.rounds.max.)"
        raise UsageError(f"{describe_unknown('parameter', name, parameters)} {hint}", SET)
    return f"workload.parameters.{assignment}"


def script_of(run: BenchmarkRun, file: str) -> Path | None:
    """Return the path of the run's script; None if the run has no script.

    It is in the directory of `file`, which is the run's manifest or the script itself.
    """
    if run.spec.workload.script is None:
        return None
    directory = Path() if file == STANDARD_INPUT else Path(file).parent
    return (directory / run.spec.workload.script.file_name).absolute()


def _with_variant_problems(error: InvalidManifestError, file: str) -> InvalidSpecError:
    """Return an error that lists problems of the runs' variants first, and then those in `error`.

    A misspelt variant also causes errors in other fields, which do not show the mistake.
    """
    variant_problems = [problem for run in error.runs for problem in _check(run, file, check_variants)]
    return InvalidSpecError(error.source, [*variant_problems, *error.problems])


def _check(run: BenchmarkRun, file: str, check: Check = check_run) -> Sequence[Problem]:
    """Return the problems that `check` finds in a run; load the run's script first, if it has one.

    `file` is the run's manifest or script, next to which the script is looked for, or the name of a workload.
    """
    path = script_of(run, file)
    if path is None:
        return check(run)
    if not path.is_file():
        return (Problem("spec.workload.script", f"script not found: expected {path}, next to the manifest"),)
    try:
        with scripts.use(path):
            return check(run)
    except scripts.ScriptDoesNotReturnError as error:
        return (Problem("spec.workload.script", str(error)),)


def _load_with_assignments(text: str, source: str, assignments: Sequence[str]) -> tuple[BenchmarkRun, ...]:
    """Apply the assignments to every manifest in `text`, and return the runs."""
    manifests = []
    for document in read_documents(text, source):
        manifest = document.content
        assignments_with_paths = [_with_path_for_manifest(assignment, manifest) for assignment in assignments]
        manifests.append(override(manifest, assignments_with_paths))
    if not manifests:
        return load_manifests(text, source)  # raises the error for a file without a run
    return tuple(parse_run(manifest, source) for manifest in manifests)


def _with_path_for_manifest(assignment: str, manifest: Any) -> str:
    """Complete `size=256` to `workload.parameters.size=256` for a parameter that the manifest sets or sweeps.

    Return any other assignment unchanged.
    """
    name = assignment.partition("=")[0].strip()
    # The manifest has not been checked: any part of it may be missing or of another type.
    spec = _value_at(manifest, "spec")
    parameters = _value_at(_value_at(spec, "workload"), "parameters")
    sweep = _value_at(spec, "sweep")
    swept_names = [_value_at(axis, "name") for axis in sweep] if isinstance(sweep, list) else []
    if name in swept_names or (isinstance(parameters, dict) and name in parameters):
        return f"workload.parameters.{assignment}"
    return assignment


def _value_at(mapping: Any, key: str) -> Any:
    """Return the value of `key`; None if there is none, or if `mapping` is no dictionary."""
    return mapping.get(key) if isinstance(mapping, dict) else None


def _suggest(name: str, known_names: Sequence[str]) -> str:
    """Return `; did you mean NAME?` for a similar name, or an empty text."""
    similar_name = find_similar(name, known_names)
    return f"; did you mean {similar_name}?" if similar_name else ""


def read_text(file: str) -> str:
    """Return the text of a file, or of standard input for `-`; raises UsageError."""
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            looks_like_a_workload = WORKLOAD_NAME.fullmatch(file.replace("_", "-"))
            if looks_like_a_workload:
                message += f", and no workload has this name; {suggest_name(file, names())}"
            else:
                message += _suggest(Path(file).name, [path.name for path in Path(file).parent.glob("*")])
        raise UsageError(message, "FILE") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text", "FILE") from error

"""Examine the Python environments of a case before its first round, and start processes in them.

The Python of an environment imports accelbench from a directory that holds nothing else. If the site-packages of the
default environment were on its path, it might import another release of a framework from there, without an error.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from itertools import groupby
from pathlib import Path

import accelbench
import accelbench_runner
from accelbench import frameworks, platforms
from accelbench.api.case import Case, CaseVariant
from accelbench.api.environment import CaseEnvironment, digest_lock
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Failure
from accelbench.api.rules import PYTHON_MINORS
from accelbench.document import shorten
from accelbench.frameworks import Framework
from accelbench.launch.record import BEFORE_ROUNDS
from accelbench.workload import Workload
from accelbench_runner.answers import read_answer
from accelbench_runner.supervisor.children import Interruption, run_child
from accelbench_runner.supervisor.examination import (
    Examination,
    describe_missing_answer,
    describe_start_error,
    why_unusable,
)
from accelbench_runner.supervisor.listener import OutputListener
from accelbench_runner.supervisor.log_writer import LogWriter, OutputForwarder
from accelbench_runner.supervisor.outcome import MAXIMUM_FAILURE_CHARACTERS

LAUNCH_MODULE = "accelbench_runner.launch"
JUDGE_MODULE = "accelbench_runner.judge"
EXAMINER_MODULE = "accelbench_runner.environment"
LIMIT_SECONDS = 300.0
"""Maximum seconds to import all modules once: a fresh environment may have 7 GB on a slow disk."""
MAXIMUM_ANSWER_BYTES = 1024 * 1024
NOT_NEEDED = ("__pycache__", "rows")
"""Parts of accelbench that no launch needs: bytecode of another Python, and the claims, which an installation has in
`claims/rows`."""
NOT_INHERITED = ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""Environment variables that would give an environment another standard library, or slow its launches down."""


@dataclass(frozen=True)
class Python:
    """Start accelbench's processes with the Python of an environment."""

    interpreter: str
    variables: Mapping[str, str]
    """Environment variables of its processes."""

    def command(self, module: str) -> Sequence[str]:
        """Return the command that runs a module of accelbench's."""
        return (self.interpreter, "-m", module)


@dataclass(frozen=True)
class ExaminedCase:
    """Hold a case whose environments were examined."""

    case: Case
    """The case, with the versions and directories of the environments that can be used."""
    pythons: Mapping[str, Python] = field(default_factory=dict)
    """The Python of each variant that has an environment of its own, by the variant's name."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Why a variant's environment cannot be used, by the variant's name."""


@dataclass(frozen=True)
class Examiner:
    """Examine environments, each in a process of its Python."""

    case: Case
    workload: Workload
    directory: Path
    """Directory for accelbench's code and for answers."""
    variables: Mapping[str, str]
    """Environment variables of the supervisor's other children."""
    interruption: Interruption
    log: LogWriter

    def examine_all(self) -> ExaminedCase:
        """Examine the environments of all variants.

        Without environments or after a signal, return the case as it was.
        """
        if not self.case.environments:
            return ExaminedCase(self.case)
        self.directory.mkdir()
        self._copy_code()
        environments: list[CaseEnvironment] = []
        pythons: dict[str, Python] = {}
        failures: dict[str, Failure] = {}
        variables = self._variables()
        for environment in self.case.environments:
            python = Python(environment.interpreter, variables)
            examined = environment
            for framework, variants in self._variants_by_framework(environment):
                examination = self._examine(environment, python, framework, variants)
                if self.interruption.signal is not None:  # the signal ended the examination, so no launch will follow
                    return ExaminedCase(self.case)
                names = [variant.name for variant in variants]
                pythons |= dict.fromkeys(names, python)
                if isinstance(examination, str):
                    problem = examination
                else:
                    problem = why_unusable(examination, environment, framework, self._code)
                    if not problem:  # versions and directories are the same for each framework
                        examined = _add_findings(environment, examination)
                if problem:
                    failures |= dict.fromkeys(names, _failure(environment, problem))
            environments.append(examined)
        return ExaminedCase(self.case.model_copy(update={"environments": tuple(environments)}), pythons, failures)

    @property
    def _code(self) -> Path:
        """Return the directory that holds accelbench's code, and nothing else."""
        return self.directory / "code"

    def _copy_code(self) -> None:
        """Copy the part of accelbench that launches need, with its entry points.

        The copy has no bytecode, because each environment's Python needs its own.
        """
        for package in (accelbench, accelbench_runner):
            origin = Path(str(package.__file__)).parent
            shutil.copytree(origin, self._code / origin.name, ignore=shutil.ignore_patterns(*NOT_NEEDED))
        try:
            installed = distribution("accelbench")
        except PackageNotFoundError:  # accelbench runs from its sources, and has no metadata with entry points
            return
        metadata_directory = self._code / f"accelbench-{installed.version}.dist-info"
        metadata_directory.mkdir()
        for name in ("METADATA", "entry_points.txt"):
            (metadata_directory / name).write_text(installed.read_text(name) or "", encoding="utf-8")

    def _variables(self) -> dict[str, str]:
        """Return environment variables with which a Python imports only accelbench's code and its own packages."""
        inherited = {name: value for name, value in self.variables.items() if name not in NOT_INHERITED}
        return {**inherited, "PYTHONPATH": str(self._code), "PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1"}

    def _variants_by_framework(self, environment: CaseEnvironment) -> Iterator[tuple[Framework, list[CaseVariant]]]:
        """Yield the variants of an environment by framework, because a process imports only one framework."""
        variants = [variant for variant in self.case.variants if variant.environment == environment.name]

        def framework_of(variant: CaseVariant) -> str:
            """Return the name of the variant's framework."""
            return self.workload.variants()[variant.use].framework

        for framework, group in groupby(sorted(variants, key=framework_of), framework_of):
            yield frameworks.find(framework), list(group)

    def _examine(
        self, environment: CaseEnvironment, python: Python, framework: Framework, variants: Sequence[CaseVariant]
    ) -> Examination | str:
        """Run the environment's Python, and return its examination of the environment.

        If the Python writes no examination that can be read, return the reason as text. Raises UnkillableError.
        """
        answer_file = self.directory / f"{environment.name}-{framework.name}.json"
        request = {
            "answer": str(answer_file),
            "oldest": _parse_minor(PYTHON_MINORS[0]),
            "newest": _parse_minor(PYTHON_MINORS[-1]),
            "modules": list(self._modules(framework, variants)),
            "workload": self.case.workload,
        }
        request_file = self.directory / "request.json"
        request_file.write_text(json.dumps(request), encoding="utf-8")
        forward = OutputForwarder(self.log, f"environment {environment.name}")
        listener = OutputListener(forward, LIMIT_SECONDS)
        variables = {**python.variables, "HOME": str(self.directory), "PYTHONFAULTHANDLER": "1"}
        try:
            child_exit = run_child(
                python.command(EXAMINER_MODULE),
                request=request_file,
                environment=variables,
                listener=listener,
                interruption=self.interruption,
            )
        except OSError as error:
            return describe_start_error(environment.interpreter, error)
        forward.finish()
        try:
            answer = read_answer(answer_file, MAXIMUM_ANSWER_BYTES)
            if answer is not None:
                return Examination.model_validate_json(answer)
        except ValueError:
            return f"{environment.interpreter} wrote an answer that cannot be read"
        return describe_missing_answer(environment.interpreter, child_exit, listener.stderr_tail, LIMIT_SECONDS)

    def _modules(self, framework: Framework, variants: Sequence[CaseVariant]) -> Iterator[str]:
        """Yield the modules that launches of these variants import, and the judge if it runs in their environment."""
        yield f"{LAUNCH_MODULE}.__main__"
        yield _module_of(platforms.find(self.case.accelerator.platform).monitor)
        yield framework.package
        yield _module_of(framework.adapter)
        for variant in variants:
            yield from self.workload.libraries_of(self.workload.variants()[variant.use])
        # Without a reference, the judge runs the baseline's program, in the baseline's environment.
        if not self.workload.has_reference() and self.case.baseline in {variant.name for variant in variants}:
            yield f"{JUDGE_MODULE}.__main__"


def _add_findings(environment: CaseEnvironment, examination: Examination) -> CaseEnvironment:
    """Return the environment with its versions, directories and digest, according to the examination."""
    packages = environment.packages or examination.packages  # those of the lock, if the environment has one
    return environment.model_copy(
        update={
            "packages": packages,
            "python_version": examination.python,
            "directories": examination.directories,
            "lock_digest": digest_lock(examination.python, packages),
        }
    )


def _failure(environment: CaseEnvironment, problem: str) -> Failure:
    """Return the failure of a variant whose environment cannot be used, for the reason `problem`."""
    message = shorten(f"environment {environment.name} cannot be used: {problem}", MAXIMUM_FAILURE_CHARACTERS)
    return Failure(reason=FailureReason.ENVIRONMENT, message=message, round=BEFORE_ROUNDS)


def _module_of(path: str) -> str:
    """Return the module of `module:attribute`."""
    return path.partition(":")[0]


def _parse_minor(minor: str) -> tuple[int, int]:
    """Return the numbers of a minor of Python: (3, 11) for `3.11`."""
    major, _, number = minor.partition(".")
    return int(major), int(number)

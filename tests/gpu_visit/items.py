"""Read the list of what visits measure, and turn its items into tasks of the plan."""

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, PositiveFloat, PositiveInt, TypeAdapter, ValidationError

from accelbench import catalogue
from accelbench.api.run import BenchmarkRun
from accelbench.document import Document
from accelbench.local.errors import UsageError
from accelbench.local.manifests import read
from accelbench.machine import fingerprint
from accelbench.problem import describe_unknown
from gpu.checks import Asked, every
from gpu_visit.plan import Task
from workloads.small import SMALL

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("items.yaml")
PROFILE = "nvidia"
"""The profile of every item; a rehearsal gives it another platform (`ACCELBENCH_PROFILES`)."""
CLAIMS = "examples/claims"


class InvalidListError(Exception):
    """Report a list that cannot be used; the message names file and item."""


class Seconds(Document):
    """Estimate how long an attempt takes, until one was measured on such a device."""

    start: PositiveFloat
    """Seconds apart from the rounds: of the judge, and of what an attempt does once."""
    round: PositiveFloat
    """Seconds of a round: a launch of each variant, compiling and probes included."""


class Manifest(Document):
    """Measure a manifest, or one variant of it."""

    manifest: str
    """Path in the repository."""
    variant: str | None = None
    """Measure this variant alone, by its name; default: compare all of the manifest's."""
    rounds: PositiveInt | None = None
    """Number of rounds with which the item is done; default: the manifest's minimum."""
    seconds: Seconds


class Program(Document):
    """Run a Python program that prints what it measured as one JSON document."""

    program: str
    """Path in the repository."""
    arguments: tuple[str, ...] = ()
    seconds: PositiveFloat


class Checks(Document):
    """Check all variants of all workloads, several at a time."""

    checks: Literal["every"]
    at_once: PositiveInt
    seconds: PositiveFloat
    """Estimated seconds of one of several checks at a time."""


@dataclass(frozen=True)
class Measurement:
    """Hold an item that measures a manifest, with the run that it makes."""

    task: Task
    path: Path
    run: BenchmarkRun
    manifest: str
    variant: str | None


@dataclass(frozen=True)
class ProgramRun:
    """Hold an item that runs a program."""

    task: Task
    program: Path
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """Hold an item that checks one variant."""

    task: Task
    asked: Asked


Item = Measurement | ProgramRun | Check
ITEMS = TypeAdapter(tuple[Annotated[Manifest | Program | Checks, Field(union_mode="smart")], ...])


def load(path: Path = LIST, *, checked: Collection[str] = ()) -> tuple[Item, ...]:
    """Return the items of a list, in the order in which visits attempt them; raises InvalidListError.

    Args:
        path: The list.
        checked: Checks that were made on such a device before; they come after the others.
    """
    try:
        listed = ITEMS.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise InvalidListError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidListError(f"{path}, item {first['loc'][0] + 1}: {first['loc'][1:]}: {first['msg']}") from error
    items = [item for entry in listed for item in _items(entry, path, checked)]
    wanted = [(item.task.name, item.task.rounds_min) for item in items]
    if repeated := {entry for entry in wanted if wanted.count(entry) > 1}:
        raise InvalidListError(f"{path}: {min(repeated)[0]} is listed twice with {min(repeated)[1]} rounds")
    return tuple(items)


def _items(entry: Manifest | Program | Checks, path: Path, checked: Collection[str]) -> Iterator[Item]:
    """Yield the items of one entry of the list `path`: one, or one for each check."""
    match entry:
        case Manifest():
            yield _measurement(entry, path)
        case Program():
            yield _program_run(entry, path)
        case Checks():
            for asked in sorted(every(), key=lambda asked: str(asked) in checked):
                yield Check(_check_task(entry, asked), asked)


def _measurement(entry: Manifest, path: Path) -> Measurement:
    """Return the item that measures the entry's manifest."""
    file = ROOT / entry.manifest
    try:
        [run] = read(str(file), [f"accelerator.profile={PROFILE}"])
    except (UsageError, ValueError, LookupError) as error:
        raise InvalidListError(f"{path}: {entry.manifest}: {error}") from error
    name = entry.manifest.removesuffix(".yaml")
    if entry.variant is not None:
        run = _with_one_variant(run, entry, path)
        name = f"{name} {entry.variant}"
    rounds = run.spec.measurement.rounds
    task = Task(
        name=name,
        question=question(run),
        rounds_min=entry.rounds or rounds.min,
        rounds_max=entry.rounds or rounds.max,
        start_seconds=entry.seconds.start,
        round_seconds=entry.seconds.round,
    )
    return Measurement(task, file, run, entry.manifest, entry.variant)


def _with_one_variant(run: BenchmarkRun, entry: Manifest, path: Path) -> BenchmarkRun:
    """Return the run with the entry's variant alone, which is compared with nothing."""
    chosen = tuple(variant for variant in run.spec.variants if variant.label == entry.variant)
    if not chosen:
        labels = [variant.label for variant in run.spec.variants]
        problem = describe_unknown("variant", entry.variant or "", labels)
        raise InvalidListError(f"{path}: {entry.manifest}: {problem}")
    return run.model_copy(
        update={"spec": run.spec.model_copy(update={"variants": chosen, "baseline": None, "expectations": ()})}
    )


def _program_run(entry: Program, path: Path) -> ProgramRun:
    """Return the item that runs the entry's program."""
    program = ROOT / entry.program
    if not program.is_file():
        raise InvalidListError(f"{path}: no program {entry.program}")
    name = " ".join([entry.program.removesuffix(".py"), *entry.arguments])
    task = Task(name, _digest(program.read_text(encoding="utf-8")), 1, 1, 1.0, entry.seconds)
    return ProgramRun(task, program, entry.arguments)


def _check_task(entry: Checks, asked: Asked) -> Task:
    """Return the task of one check; it is another question once the workload or its small size changes."""
    source = fingerprint.of_source(type(catalogue.find(asked.workload)))
    digest = _digest(json.dumps([source, SMALL.get(asked.workload)]))
    return Task(f"check {asked}", digest, 1, 1, 1.0, entry.seconds, group="checks", at_once=entry.at_once)


def question(run: BenchmarkRun) -> str:
    """Return a digest of what a run asks: its spec and the workload's source.

    Limits of rounds and time are left out, as they say how long a run may take and not what it measures; so are
    expectations, which are evaluated afterwards.
    """
    spec = run.spec.model_dump(
        mode="json", exclude={"expectations": True, "measurement": {"rounds", "time_limit_seconds"}}
    )
    name = run.spec.workload.name
    source = fingerprint.of_source(type(catalogue.find(name))) if name else {}
    return _digest(json.dumps([spec, source], sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""`accelbench migrate`: results that an older accelbench wrote, in today's format. It goes with the next release."""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from accelbench.local.exits import Exit

MOVED = (
    *("unitsPerCall", "parity", "flopsPerSecond", "productsPerCall"),
    *("peakMemoryBytes", "compilePeakMemoryBytes", "reservedMemoryBytes"),
)
RATES = ("flopsPerSecond", "bytesPerSecond", "shareOfLimit")
ENERGIES = {"nvml": "deviceJoulesPerUnit", "rapl": "cpuJoulesPerUnit"}
STOPPED = {
    "target-met": "TargetMet",
    "rounds-max": "MaximumRoundsReached",
    "time-limit": "TimeLimitReached",
    "no-time-for-round": "NoTimeForRound",
    "interrupted": "Interrupted",
    "nothing-to-compare": "NothingToCompare",
}
INCOMPLETE = "an older accelbench wrote this result without every launch: no time of a variant is known"


def migrate(
    paths: Annotated[list[Path], typer.Argument(help="Results (CASE.result.json), or directories of them.")],
) -> None:
    """Rewrite an older accelbench's results in today's format, in place."""
    from pydantic import ValidationError

    from accelbench.api.result import Result
    from accelbench.local.directory import RUN_FILE, RunRecord, as_text, explain, write_atomically

    written = 0
    for path in (file for each in paths for file in _files(each)):
        is_record = path.name == RUN_FILE
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            after = migrated_record(before) if is_record else migrated(before)
            document = (RunRecord if is_record else Result).model_validate(after)
        except (OSError, ValidationError) as error:
            _refuse(path, explain(error))
        except (ValueError, AttributeError, TypeError, KeyError):
            _refuse(path, "not a result of accelbench")
        if after != before:
            write_atomically(path, as_text(document))
            written += 1
    typer.echo(f"{written} rewritten")


def _files(path: Path) -> list[Path]:
    from accelbench.local.directory import RESULT_SUFFIX, RUN_FILE

    if not path.is_dir():
        return [path]
    return sorted([*path.rglob(f"*{RESULT_SUFFIX}"), *path.rglob(RUN_FILE)])


def _refuse(path: Path, why: str) -> NoReturn:
    typer.echo(f"{path}: {why}. It was not changed.", err=True)
    raise typer.Exit(Exit.INVALID_SPEC)


def migrated_record(document: dict[str, Any]) -> dict[str, Any]:
    """A `run.json` in today's format: the run has no status there."""
    return {**document, "run": {key: value for key, value in document["run"].items() if key != "status"}}


def migrated(document: dict[str, Any]) -> dict[str, Any]:
    """A result document in today's format; one that has it already is equal to it."""
    variants = [_variant(each, document["rounds"]) for each in document["variants"]]
    notes = document.get("notes", [])
    lost = any(
        "seconds" in old and "seconds" not in new for old, new in zip(document["variants"], variants, strict=True)
    )
    stopped = document.get("stopped")
    return (
        {**document, "variants": variants}
        | ({"notes": [*notes, INCOMPLETE]} if lost else {})
        | ({"stopped": STOPPED.get(stopped, stopped)} if stopped else {})
    )


def _variant(variant: dict[str, Any], rounds: int) -> dict[str, Any]:
    kept = {**variant}
    if "launches" in kept:
        kept["launches"] = [_launch(each) for each in kept["launches"]]
    cost = kept.pop("cost", {})
    numbers = {name: kept.pop(name) for name in MOVED if name in kept} | kept.pop("executable", {})
    for name in ("bound", "limits"):
        if name in cost:
            kept[name] = cost.pop(name)
    energy = cost.pop("joulesPerUnit", None)
    if source := cost.pop("energySource", None):
        numbers[ENERGIES[source]] = energy
    if "share" in cost:
        cost["shareOfLimit"] = cost.pop("share")
    if kept.get("limits") == "data sheet":
        kept["limits"] = "data-sheet"
    kept["numbers"] = {**kept.get("numbers", {}), **numbers, **cost}
    seconds = kept.get("seconds")
    if seconds and "geometricMeanSeconds" not in seconds:
        _with_the_mean(kept, rounds)
    return kept if kept["numbers"] or "numbers" in variant else {name: kept[name] for name in kept if name != "numbers"}


def _launch(launch: dict[str, Any]) -> dict[str, Any]:
    return {"unitsPerBlock" if name == "stepsPerBlock" else name: value for name, value in launch.items()}


def _with_the_mean(variant: dict[str, Any], rounds: int) -> None:
    """The time by docs/adr/0021-one-time-for-a-variant.md, and the rates that were made of the median."""
    from accelbench.document import TIME_DIGITS, decimal_string
    from accelbench.stats.summary import geometric_mean

    numbers, launches = variant["numbers"], variant["launches"]
    if len(launches) < rounds and "failure" not in variant:
        del variant["seconds"]
        variant["numbers"] = {name: numbers[name] for name in numbers if name not in {*RATES, *ENERGIES.values()}}
        return
    seconds = geometric_mean(float(each["seconds"]) for each in launches)
    slower = seconds / float(variant["seconds"]["medianSeconds"])
    variant["seconds"] = {"geometricMeanSeconds": decimal_string(seconds, TIME_DIGITS), **variant["seconds"]}
    for name, factor in {**dict.fromkeys(RATES, 1 / slower), **dict.fromkeys(ENERGIES.values(), slower)}.items():
        if name in numbers:
            numbers[name] = decimal_string(float(numbers[name]) * factor)

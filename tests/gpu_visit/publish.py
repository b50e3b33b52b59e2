"""Import a visit's file into `docs/results`: `make gpu-visit-import FILE=...`.

Results go to `docs/results/gpu/DEVICE`, and those of claims to `docs/results/claims/gpu`, from which the page of claims
is made, as long as that directory has results of the same model of device only: a claim may be settled by several
results together, which must not be of different devices. Importing a file twice changes nothing.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from accelbench.api.result import Result
from accelbench.local.directory import RESULT_SUFFIX, load_result, write_atomically
from accelbench.local.errors import UnreadableResultError
from gpu import checks
from gpu_visit import attempts, items, page
from gpu_visit.attempts import Setting, VisitAttempt
from gpu_visit.items import CLAIMS, ROOT, Check, Item, Measurement, ProgramRun
from gpu_visit.perform import PRINTED, results_in

RESULTS = ROOT / "docs" / "results"
HISTORY = "attempts.jsonl"
"""All attempts of visits to one model of device, without their files."""
CHECKS = "checks.json"


class CannotImportError(Exception):
    """Report a file that cannot be imported; the message says why."""


def attempts_so_far(results: Path = RESULTS) -> list[VisitAttempt]:
    """Return all attempts that were imported, on any device, oldest first."""
    files = sorted((results / "gpu").glob(f"*/{HISTORY}"))
    return sorted((attempt for file in files for attempt in attempts.read(file)), key=lambda attempt: attempt.began)


def checked_on(setting: Setting, results: Path = RESULTS) -> frozenset[str]:
    """Return the checks that were imported from visits to the same model of device."""
    path = results / "gpu" / setting.directory / CHECKS
    return frozenset(json.loads(path.read_text())["checked"]) if path.exists() else frozenset()


def import_attempts(new: list[VisitAttempt], listed: tuple[Item, ...], results: Path = RESULTS) -> list[str]:
    """Import attempts that were not imported before, and return a line for each.

    Raises CannotImportError if a result is not of the device that its attempt names.
    """
    by_name = {item.task.name: item for item in listed}
    imported = {attempt.identity for attempt in attempts_so_far(results)}
    lines = []
    for attempt in new:
        if attempt.identity in imported:
            continue
        item = by_name.get(attempt.item)
        if attempt.outcome != "measured":
            lines.append(f"{attempt.item}: {attempt.outcome}: {attempt.message}")
        elif item is None:
            lines.append(f"{attempt.item}: left out, as the list no longer has it")
        else:
            lines.append(f"{attempt.item}: {_import_one(attempt, item, results)}")
        # Last, so that an import that was ended is repeated.
        history = results / "gpu" / attempt.setting.directory / HISTORY
        attempts.append(history, attempt.model_copy(update={"files": {}}))
        imported.add(attempt.identity)
    return lines


def _import_one(attempt: VisitAttempt, item: Item, results: Path) -> str:
    """Write the files of an attempt that measured its item; return where they are, or why they were left out."""
    device = results / "gpu" / attempt.setting.directory
    match item:
        case Measurement():
            return _import_measurement(attempt, item, results)
        case ProgramRun():
            name = attempt.item.rpartition("/")[2].replace(" ", "-")
            document = {"setting": attempt.setting.model_dump(), "printed": json.loads(attempt.files[PRINTED])}
            path = device / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(document, indent=1) + "\n")
            return str(path)
        case Check():
            return _import_check(attempt, item, device / CHECKS)


def _import_measurement(attempt: VisitAttempt, item: Measurement, results: Path) -> str:
    """Write the directory of a measured run, unless it holds more rounds of the same question."""
    measured = results_in(attempt.files)
    for result in measured:
        device = result.fingerprint.get("device.name", attempt.setting.device)
        if device != attempt.setting.device:
            raise CannotImportError(f"{attempt.item}: its result is of {device}, not of {attempt.setting.device}")
    directory = directory_of(item, attempt.setting, results)
    earlier = list(_results(directory))
    same_setting = all(_versions(result) == _versions(measured[0]) for result in earlier)
    if earlier and same_setting and min(result.rounds for result in earlier) > attempt.rounds:
        return f"left out: {directory} has more rounds"
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in attempt.files.items():
        write_atomically(directory / name, text)
    return str(directory)


def directory_of(item: Measurement, setting: Setting, results: Path = RESULTS) -> Path:
    """Return the directory for the results of an item: for a claim, that of the page, if it is of the same device."""
    folder, _, file = item.manifest.rpartition("/")
    name = file.removesuffix(".yaml")
    device = results / "gpu" / setting.directory
    if folder != CLAIMS:
        variant = (item.variant or "").replace("/", "-")
        return device / folder.rpartition("/")[2] / name / variant
    of_the_page = results / "claims" / "gpu"
    other_devices = {
        result.fingerprint.get("device.name") for directory in of_the_page.glob("*") for result in _results(directory)
    } - {setting.device}
    return (device / "claims" / "gpu" if other_devices else of_the_page) / name


def _results(directory: Path) -> Iterator[Result]:
    """Yield the results in a directory that can be read."""
    for path in sorted(directory.glob(f"*{RESULT_SUFFIX}")):
        try:
            yield load_result(path)
        except UnreadableResultError as error:
            print(f"{error}; ignoring it", file=sys.stderr)


def _versions(result: Result) -> tuple[str | None, ...]:
    """Return the versions that results of one table share, and the digest of the workload."""
    return tuple(result.fingerprint.get(name) for name in ("version.jax", "version.torch", "workloadSource"))


def _import_check(attempt: VisitAttempt, item: Check, path: Path) -> str:
    """Add what a check found to the file of all checks on a model of device."""
    document = json.loads(path.read_text()) if path.exists() else {"checked": {}}
    document |= attempt.setting.model_dump() | {"day": attempt.began[:10]}
    document["checked"][str(item.asked)] = checks.condensed(attempt.files[PRINTED])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(document, indent=1) + "\n")
    return str(path)


def main() -> int:
    """Import a file, write the page, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gpu_visit.publish", description=__doc__)
    parser.add_argument("file", type=Path, help="the file of a visit")
    parser.add_argument("--list", type=Path, default=items.LIST, help="what was to be measured")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the directory of all results")
    options = parser.parse_args()
    if not options.file.is_file():
        print(f"error: no file {options.file}: give the one that the visit wrote", file=sys.stderr)
        return 1
    try:
        new = attempts.read(options.file)
        lines = import_attempts(new, items.load(options.list), options.results)
        page.write(options.results)
    except (CannotImportError, attempts.InvalidAttemptError, items.InvalidListError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    print(f"{len(lines)} of {len(new)} attempts are new; make generate writes the page of claims")
    return 0


if __name__ == "__main__":
    sys.exit(main())

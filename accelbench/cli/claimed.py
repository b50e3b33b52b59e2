"""Read the results of claims from disk, and settle the claims.

The results of a manifest are in HARDWARE/NAME below the results' directory. If the manifest compiles for targets, they
are in targets/NAME.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from accelbench.claims import bounds, ledger
from accelbench.claims.settle import ClaimManifest, MeasuredRun, SettledClaim, measured_at, settle
from accelbench.local import resume
from accelbench.local.directory import RunDirectory
from accelbench.local.errors import UnreadableResultError

if TYPE_CHECKING:
    from accelbench.api.result import Result
    from accelbench.api.run import BenchmarkRun
    from accelbench.claims.ledger import Claim, Hardware

TARGETS = "targets"
PROFILES = {"cpu": "cpu", "gpu": "nvidia"}
"""The profile of each class of hardware that manifests can be measured on here."""


@dataclass(frozen=True)
class ClaimRun:
    """Describe one manifest of a claim, as one class of hardware runs it."""

    name: str
    manifest: "BenchmarkRun"
    directory: RunDirectory
    decides_claim: bool
    """True if the manifest compiles for targets, or if this hardware can run it and settle the claim."""
    can_run: bool
    """True if the manifest compiles for targets, or if its profile is of this hardware."""

    @property
    def parent_directory(self) -> str:
        """Return the name of the parent of the results' directory: the hardware, or `targets`."""
        return self.directory.path.parent.name

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the targets that the manifest compiles for; empty if it measures."""
        return self.manifest.spec.accelerator.targets or ()

    @property
    def compiler_advice(self) -> str:
        """Return how to install the missing compilers of the targets; empty if none is missing."""
        from accelbench import targets

        advice = [targets.find(name).missing_message for name in self.targets]
        return "; ".join(dict.fromkeys(text for text in advice if text))


def claim_runs(claim: "Claim", hardware: "Hardware", results: Path, *, additional: bool = False) -> Iterator[ClaimRun]:
    """Yield a run for each manifest that decides the claim or, with `additional`, for each of its other manifests.

    `results` is the directory with the results of all claims.
    """
    from accelbench.local.manifests import read

    for file in claim.beside if additional else claim.manifests:
        name = file.removesuffix(".yaml")
        [manifest] = read(str(ledger.directory() / file), [])
        # On a GPU, its profile replaces that of the manifest, unless the manifest only compiles, which needs no device.
        if hardware == "gpu" and not manifest.spec.accelerator.targets:
            [manifest] = read(str(ledger.directory() / file), [f"accelerator.profile={PROFILES[hardware]}"])
        if not additional:
            ledger.check_variants(claim, file, manifest)
        has_targets = bool(manifest.spec.accelerator.targets)
        has_profile_of_hardware = manifest.spec.accelerator.profile == PROFILES.get(hardware)
        can_run = has_targets or has_profile_of_hardware
        # A run decides no claim about one machine: the class of hardware does not show whether it is that machine.
        settles_claim = hardware in claim.hardware and not claim.machine
        parent_directory = TARGETS if has_targets else hardware
        yield ClaimRun(
            name,
            manifest,
            RunDirectory(results / parent_directory / name),
            decides_claim=has_targets or (can_run and settles_claim),
            can_run=can_run,
        )


def complete_results(run: ClaimRun) -> "dict[str, Result]":
    """Return the run's complete results on disk, by case name.

    Results of another manifest or of an older source of the workload are left out.
    """
    return resume.complete_results(
        run.directory,
        is_same_run=lambda record: _is_same_run(record.run, run.manifest),
        has_other_source=has_older_source,
        on_unreadable=lambda error: click.echo(f"{error}; running it again", err=True),
    )


def settle_claim(claim: "Claim", hardware: "Sequence[Hardware]", results: Path) -> SettledClaim:
    """Decide the claim by the results of one class of hardware; results of the other classes are only shown.

    The deciding class is the first in `hardware` with complete results. If no class has complete results, it is the
    first with any results; if none has results, the first class.
    """
    complete_hardware = [candidate for candidate in hardware if _is_measured(claim, candidate, results)]
    started_hardware = [candidate for candidate in hardware if _is_started(claim, candidate, results)]
    by_preference = [*complete_hardware, *started_hardware, *hardware]
    chosen_hardware = by_preference[0]
    deciding_runs = list(claim_runs(claim, chosen_hardware, results))
    additional_runs = list(claim_runs(claim, chosen_hardware, results, additional=True))
    for other_hardware in hardware:
        if other_hardware != chosen_hardware:
            runs = [
                *claim_runs(claim, other_hardware, results),
                *claim_runs(claim, other_hardware, results, additional=True),
            ]
            # Runs that compile for targets are the same for every class of hardware: they are in the lists already.
            additional_runs += [run for run in runs if not run.targets]
    manifests = [
        ClaimManifest(
            run.name,
            load_run(claim, run),
            targets=run.targets,
            expectations=run.manifest.spec.expectations,
            baseline=run.manifest.baseline,
        )
        for run in deciding_runs
    ]
    loaded_runs = [load_run(claim, run) for run in additional_runs]
    shown_runs = [run for run in loaded_runs if run]
    # The claim names the manifest of its control.
    controls = (
        run for run in shown_runs if f"{run.name}.yaml" == claim.control and run.parent_directory == chosen_hardware
    )
    return settle(
        claim,
        manifests,
        hardware=chosen_hardware,
        additional_runs=shown_runs,
        control=next(controls, None),
        record=_bounds_record(claim),
    )


def _bounds_record(claim: "Claim") -> bounds.BoundsRecord | None:
    """Return the record of the claim's bounds; None if there is none, or if the bounds have changed since."""
    if not claim.is_decidable:
        return None
    record = _bounds_records().get(claim.row)
    return record if record and record.digest == _bounds_digests().get(claim.row) else None


@functools.cache
def _bounds_records() -> Mapping[int, bounds.BoundsRecord]:
    """Return the record of each row's bounds, by row."""
    return bounds.load(ledger.directory())


@functools.cache
def _bounds_digests() -> dict[int, str]:
    """Return the digest of each row's present bounds, by row."""

    def parse(name: str) -> Any:
        """Return the content of a YAML file in the ledger's directory."""
        return yaml.safe_load((ledger.directory() / name).read_text(encoding="utf-8"))

    digests = {}
    for row in parse(ledger.LEDGER):
        manifests = [parse(name) for name in row.get("manifests", ())]
        digests[row["row"]] = bounds.digest(row, manifests)
    return digests


def _is_started(claim: "Claim", hardware: "Hardware", results: Path) -> bool:
    """Return True if the claim is about this hardware, and a case that decides the claim was measured on it."""
    runs = [load_run(claim, run) for run in claim_runs(claim, hardware, results) if not run.targets]
    return hardware in claim.hardware and any(run and run.measured_cases for run in runs)


def _is_measured(claim: "Claim", hardware: "Hardware", results: Path) -> bool:
    """Return True if the claim is about this hardware, and all manifests that decide the claim were measured on it.

    Manifests that compile for targets do not matter, because they need no hardware.
    """
    runs = [load_run(claim, run) for run in claim_runs(claim, hardware, results) if not run.targets]
    all_complete = bool(runs) and all(run and run.is_complete for run in runs)
    return hardware in claim.hardware and all_complete


def load_run(claim: "Claim", run: ClaimRun) -> MeasuredRun | None:
    """Load a run's results; None if there are none, if they cannot be read, or if the manifest has changed since.

    Changed expectations, the bounds of a claim, are allowed if the claim's history lists the change.
    """
    from accelbench.local.results import read
    from accelbench.verdict.expectations import evaluate

    if not run.directory.has_record:
        return None
    try:
        loaded = read(run.directory.path)
    except UnreadableResultError as error:
        click.echo(f"{error}; ignoring it", err=True)
        return None
    if loaded.record is None or not _is_same_run(loaded.record.run, run.manifest):
        return None
    bounds_changed = _has_other_bounds(claim, run, loaded.record.run)
    change_is_recorded = all(claim.has_change_since(measured_at(result)) for result in loaded.results)
    if bounds_changed and not change_is_recorded:
        click.echo(
            f"row {claim.row}: the bounds of {run.name} changed after its result, and its history gives no reason",
            err=True,
        )
        return None
    # If the bounds are in the ledger and not in a manifest, only the history shows that they have changed.
    has_bounds_in_ledger = claim.ignores_manifest_expectations and claim.is_decidable
    return MeasuredRun(
        [(result, evaluate(run.manifest.spec.expectations, result)) for result in loaded.results],
        planned_case_count=len(loaded.record.cases),
        name=run.name,
        parent_directory=run.parent_directory,
        has_older_source=any(has_older_source(result) for result in loaded.results),
        has_other_bounds=bounds_changed or (has_bounds_in_ledger and change_is_recorded),
    )


def _has_other_bounds(claim: "Claim", run: ClaimRun, recorded: "BenchmarkRun") -> bool:
    """Return True if the manifest's expectations decide the claim, and have changed since the run was recorded."""
    is_deciding_manifest = f"{run.name}.yaml" in claim.manifests and run.decides_claim
    if not is_deciding_manifest or claim.ignores_manifest_expectations:
        return False
    return recorded.spec.expectations != run.manifest.spec.expectations


def _is_same_run(recorded: "BenchmarkRun", manifest: "BenchmarkRun") -> bool:
    """Return True if the two runs are equal, except for their expectations and their limits of rounds and time.

    A visit to a GPU that has little time left allows fewer rounds than the manifest, but no fewer than its minimum.
    """
    return _without_limits(recorded) == _without_limits(manifest)


def _without_limits(run: "BenchmarkRun") -> "BenchmarkRun":
    """Return the run without expectations, time limit and rounds above the minimum, which may differ in equal runs."""
    measurement = run.spec.measurement
    rounds = measurement.rounds.model_copy(update={"max": measurement.rounds.min})
    measurement = measurement.model_copy(update={"rounds": rounds, "time_limit_seconds": 0})
    return run.model_copy(update={"spec": run.spec.model_copy(update={"expectations": (), "measurement": measurement})})


def has_older_source(result: "Result") -> bool:
    """Return True if the workload's source has changed since the measurement.

    A source that the ledger lists as reworded, which builds the same programs, counts as unchanged.
    """
    measured_digest = result.fingerprint.get(resume.SOURCE)
    digest_today = resume.source_digest(result.case.workload)
    if not measured_digest or not digest_today:  # an unknown source counts as unchanged
        return False
    reworded_digests = ledger.reworded_digests(ledger.directory()).get(digest_today, [])
    return measured_digest not in {digest_today, *reworded_digests}

"""Read the results of claims from disk, and settle the claims.

The results of a manifest are in HARDWARE/NAME below the results' directory; those of programs that were compiled for
other devices are in targets/NAME.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelbench.claims import ledger
from accelbench.claims.settle import ClaimManifest, MeasuredRun, Settled, settle
from accelbench.local.directory import RunDirectory
from accelbench.local.errors import UnreadableResultError

if TYPE_CHECKING:
    from accelbench.api.result import Result
    from accelbench.api.run import BenchmarkRun
    from accelbench.claims.ledger import Claim, Hardware

TARGETS = "targets"
PROFILES = {"gpu": "nvidia"}
"""Profile that replaces the manifest's, by hardware."""


@dataclass(frozen=True)
class ClaimRun:
    """Describe one manifest of a claim, as it runs on one kind of hardware."""

    name: str
    manifest: "BenchmarkRun"
    directory: RunDirectory
    able: bool
    """The claim is about this hardware, or the manifest compiles for a target."""
    possible: bool
    """The manifest needs no other kind of device."""

    @property
    def where(self) -> str:
        """Return the name of the directory of this hardware's results."""
        return self.directory.path.parent.name

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the targets that it compiles for instead of measuring."""
        return self.manifest.spec.accelerator.targets or ()

    @property
    def missing(self) -> str:
        """Return how to install the compilers that it lacks; empty if it lacks none."""
        from accelbench import targets

        return "; ".join(dict.fromkeys(filter(None, (targets.find(name).missing for name in self.targets))))


def runs(claim: "Claim", hardware: "Hardware", results: Path, *, beside: bool = False) -> Iterator[ClaimRun]:
    """Yield a run for each manifest that the verdict rests on or, with `beside`, for each additional manifest.

    Raises InvalidSpecError and InvalidLedgerError.
    """
    from accelbench.local.manifests import read

    for file in claim.beside if beside else claim.manifests:
        name = file.removesuffix(".yaml")
        [manifest] = read(str(ledger.directory() / file), [])
        if hardware in PROFILES and not manifest.spec.accelerator.targets:
            [manifest] = read(str(ledger.directory() / file), [f"accelerator.profile={PROFILES[hardware]}"])
        if not beside:
            ledger.check_variants(claim, file, manifest)
        compiled = bool(manifest.spec.accelerator.targets)
        directory = RunDirectory(results / (TARGETS if compiled else hardware) / name)
        possible = compiled or manifest.spec.accelerator.profile == PROFILES.get(hardware, "cpu")
        able = compiled or (possible and hardware in claim.hardware and not claim.machine)
        yield ClaimRun(name, manifest, directory, able=able, possible=possible)


def stored(run: ClaimRun) -> "dict[str, Result]":
    """Return the complete results of the same manifest and workload source, by case name."""
    if not run.directory.begun:
        return {}
    try:
        record, results = run.directory.load()
    except UnreadableResultError as error:
        click.echo(f"{error}; running it again", err=True)
        return {}
    if not _same_measurement(record.run, run.manifest):
        return {}
    return {result.case.name: result for result in results if result.complete and not older(result)}


def settled(claim: "Claim", hardware: "Sequence[Hardware]", results: Path) -> Settled:
    """Settle the claim on the first hardware that has complete results for it, or else on the first of the list.

    Results of other hardware are shown, but decide nothing.
    """
    here = next((kind for kind in hardware if _is_measured(claim, kind, results)), hardware[0])
    decisive, beside = list(runs(claim, here, results)), list(runs(claim, here, results, beside=True))
    for other in hardware:
        if other != here:
            both = (*runs(claim, other, results), *runs(claim, other, results, beside=True))
            beside += [run for run in both if run.where != TARGETS]
    return settle(
        claim,
        [ClaimManifest(run.name, load(claim, run), run.targets) for run in decisive],
        here=here,
        beside=[loaded for run in beside if (loaded := load(claim, run))],
    )


def _is_measured(claim: "Claim", here: "Hardware", results: Path) -> bool:
    """Return True if every manifest that decides the claim has complete results on this hardware."""
    loaded = [load(claim, run) for run in runs(claim, here, results) if run.where != TARGETS]
    return here in claim.hardware and bool(loaded) and all(run and run.whole for run in loaded)


def load(claim: "Claim", run: ClaimRun) -> MeasuredRun | None:
    """Load the results of a run; None if there are none, or if the manifest has changed since.

    Changed expectations count as a changed manifest, unless the ledger explains them.
    """
    from accelbench.claims.page import measured_at
    from accelbench.local.results import read
    from accelbench.verdict.expectations import evaluate

    if not run.directory.begun:
        return None
    try:
        loaded = read(run.directory.path)
    except UnreadableResultError as error:
        click.echo(f"{error}; ignoring it", err=True)
        return None
    if loaded.record is None or not _same_measurement(loaded.record.run, run.manifest):
        return None
    decides = f"{run.name}.yaml" in claim.manifests and not claim.decides_by_itself
    changed = decides and run.able and loaded.record.run.spec.expectations != run.manifest.spec.expectations
    explained = all(claim.explains(measured_at(result)) for result in loaded.results)
    if changed and not explained:
        click.echo(
            f"row {claim.row}: the bounds of {run.name} changed after its result, and its history gives no reason",
            err=True,
        )
        return None
    return MeasuredRun(
        [(result, evaluate(run.manifest.spec.expectations, result)) for result in loaded.results],
        cases=len(loaded.record.cases),
        name=run.name,
        where=run.where,
        older=any(older(result) for result in loaded.results),
        bounds_changed=changed or (claim.decides_by_itself and not claim.own and explained),
    )


def _same_measurement(recorded: "BenchmarkRun", manifest: "BenchmarkRun") -> bool:
    """Return True if two runs differ in their expectations at most."""
    return _without_expectations(recorded) == _without_expectations(manifest)


def _without_expectations(run: "BenchmarkRun") -> "BenchmarkRun":
    return run.model_copy(update={"spec": run.spec.model_copy(update={"expectations": ()})})


def older(result: "Result") -> bool:
    """Return True if the program of its workload has changed since; False if either source is unknown."""
    measured, today = result.fingerprint.get("workloadSource"), _source(result.case.workload)
    if not (measured and today):
        return False
    return measured not in {today, *ledger.reworded_digests(ledger.directory()).get(today, ())}


@functools.cache
def _source(workload: str) -> str | None:
    """Return the digest of a workload's source, as a new result would have it."""
    from accelbench import catalogue
    from accelbench.machine import fingerprint

    return fingerprint.of_source(type(catalogue.find(workload))).get("workloadSource")

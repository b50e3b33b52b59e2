"""Results of claims on disk: where they lie, which of them count, and what they settle.

Below the results each hardware has a directory, programs compiled for others have `targets`; each claim's manifest has
one below that.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelbench.claims import ledger
from accelbench.claims.settle import Asked, MeasuredRun, Settled, settle
from accelbench.local.directory import RunDirectory
from accelbench.local.errors import UnreadableResultError

if TYPE_CHECKING:
    from accelbench.api.result import Result
    from accelbench.api.run import BenchmarkRun
    from accelbench.claims.ledger import Claim, Hardware

TARGETS = "targets"
PROFILES = {"gpu": "nvidia"}
"""Hardware that a manifest does not name by itself."""


@dataclass(frozen=True)
class ClaimRun:
    """What one of a claim's manifests asks on some hardware, and where its results lie."""

    name: str
    asked: "BenchmarkRun"
    directory: RunDirectory
    able: bool
    """It can be run there for the claim: on hardware that the claim is about, or for a target."""
    possible: bool
    """It can be run there at all: it asks for no other kind of device."""

    @property
    def where(self) -> str:
        """The directory that it shares with all of that hardware."""
        return self.directory.path.parent.name

    @property
    def targets(self) -> tuple[str, ...]:
        """What it compiles for in place of running."""
        return self.asked.spec.accelerator.targets or ()

    @property
    def missing(self) -> str:
        """The compilers to install before it can be run; empty where all are there."""
        from accelbench import targets

        return "; ".join(dict.fromkeys(filter(None, (targets.find(name).missing for name in self.targets))))


def runs(claim: "Claim", here: "Hardware", results: Path, *, beside: bool = False) -> Iterator[ClaimRun]:
    """Of the manifests that decide; `beside`: of those that only stand beside.

    Raises InvalidSpecError and InvalidLedgerError.
    """
    from accelbench.local.manifests import read

    for manifest in claim.beside if beside else claim.manifests:
        name = manifest.removesuffix(".yaml")
        [asked] = read(str(ledger.directory() / manifest), [])
        if here in PROFILES and not asked.spec.accelerator.targets:
            [asked] = read(str(ledger.directory() / manifest), [f"accelerator.profile={PROFILES[here]}"])
        if not beside:
            ledger.check_variants(claim, manifest, asked)
        compiled = bool(asked.spec.accelerator.targets)
        directory = RunDirectory(results / (TARGETS if compiled else here) / name)
        possible = compiled or asked.spec.accelerator.profile == PROFILES.get(here, "cpu")
        able = compiled or (possible and here in claim.hardware and not claim.machine)
        yield ClaimRun(name, asked, directory, able=able, possible=possible)


def stored(run: ClaimRun) -> "dict[str, Result]":
    """What was measured to its end, as the same question and from the same source, by the case's name."""
    if not run.directory.begun:
        return {}
    try:
        record, results = run.directory.load()
    except UnreadableResultError as error:
        click.echo(f"{error}; it is run again", err=True)
        return {}
    if not _same_question(record.run, run.asked):
        return {}
    return {result.case.name: result for result in results if result.complete and not older(result)}


def settled(claim: "Claim", hardware: "Sequence[Hardware]", results: Path) -> Settled:
    """The claim on the first hardware that it is about and that was measured to the end; else on the first of all.

    What was measured on the others stands beside.
    """
    here = next((each for each in hardware if _is_measured(claim, each, results)), hardware[0])
    decide, beside = list(runs(claim, here, results)), list(runs(claim, here, results, beside=True))
    for other in hardware:
        if other != here:
            both = (*runs(claim, other, results), *runs(claim, other, results, beside=True))
            beside += [each for each in both if each.where != TARGETS]
    return settle(
        claim,
        [Asked(each.name, load(claim, each), each.targets) for each in decide],
        here=here,
        beside=[found for each in beside if (found := load(claim, each))],
    )


def _is_measured(claim: "Claim", here: "Hardware", results: Path) -> bool:
    """Whether all that decides was measured there to its end."""
    found = [load(claim, each) for each in runs(claim, here, results) if each.where != TARGETS]
    return here in claim.hardware and bool(found) and all(each and each.whole for each in found)


def load(claim: "Claim", run: ClaimRun) -> MeasuredRun | None:
    """None where it was not run, or where something else was asked than today.

    Bounds that changed after the result are another question too, unless the ledger says why.
    """
    from accelbench.claims.page import measured
    from accelbench.local.results import read
    from accelbench.verdict.expectations import evaluate

    if not run.directory.begun:
        return None
    try:
        found = read(run.directory.path)
    except UnreadableResultError as error:
        click.echo(f"{error}; it counts as not run", err=True)
        return None
    if found.record is None or not _same_question(found.record.run, run.asked):
        return None
    decides = f"{run.name}.yaml" in claim.manifests and not claim.decides_by_itself
    changed = decides and run.able and found.record.run.spec.expectations != run.asked.spec.expectations
    explained = all(claim.explains(measured(result)) for result in found.results)
    if changed and not explained:
        click.echo(
            f"row {claim.row}: the bounds of {run.name} changed after its result, and its history does not say why",
            err=True,
        )
        return None
    return MeasuredRun(
        [(result, evaluate(run.asked.spec.expectations, result)) for result in found.results],
        cases=len(found.record.cases),
        name=run.name,
        where=run.where,
        older=any(older(result) for result in found.results),
        bounds_changed=changed or (claim.decides_by_itself and not claim.own and explained),
    )


def _same_question(recorded: "BenchmarkRun", asked: "BenchmarkRun") -> bool:
    """The same measurement, whatever it was expected to show."""
    unbound = [
        each.model_copy(update={"spec": each.spec.model_copy(update={"expectations": ()})})
        for each in (recorded, asked)
    ]
    return unbound[0] == unbound[1]


def older(result: "Result") -> bool:
    """Return True if the program of its workload has changed since; False if either source is unknown."""
    measured, today = result.fingerprint.get("workloadSource"), _source(result.case.workload)
    if not (measured and today):
        return False
    return measured not in {today, *ledger.reworded(ledger.directory()).get(today, ())}


@functools.cache
def _source(workload: str) -> str | None:
    """The digest of a workload's source, as a result would have it today."""
    from accelbench import catalogue
    from accelbench.machine import fingerprint

    return fingerprint.of_source(type(catalogue.find(workload))).get("workloadSource")

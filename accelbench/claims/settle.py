"""What becomes of a claim: derived from its runs' expectations and results, and from nothing else. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench.api.result import Result
from accelbench.claims import suite
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import Claim, Hardware
from accelbench.report import machine, view
from accelbench.verdict.expectations import ExpectationOutcome

ClaimVerdict = Literal["confirmed", "refuted", "inconclusive", "untestable-here", "not-run"]
Measured = Sequence[tuple[Result, Sequence[ExpectationOutcome]]]


@dataclass(frozen=True)
class MeasuredRun:
    """What there is of the run of one manifest."""

    measured: Measured
    cases: int
    """Planned."""

    @property
    def whole(self) -> bool:
        """Every case was measured to its end."""
        return len(self.measured) == self.cases and all(result.complete for result, _ in self.measured)


@dataclass(frozen=True)
class Settled:
    """A claim with its verdict; `found` says what it rests on with its numbers, case by case."""

    claim: Claim
    verdict: ClaimVerdict
    found: tuple[str, ...] = ()
    hardware: str = ""
    """What it was measured on, and with which versions."""
    certificate: str = ""
    """How many checks passed, and which did not."""


def settle(claim: Claim, runs: Sequence[MeasuredRun | None], *, here: Hardware) -> Settled:
    """The claim held against the runs of its manifests, in their order; None: that one has not been run.

    `refuted` needs one thing that a sound measurement contradicts, in any complete case; `confirmed` needs all of them
    met in every case. What failed, is invalid, is missing or may be either way leaves it `inconclusive`.
    """
    if here not in claim.hardware:
        return Settled(claim, "untestable-here")
    done = [run for run in runs if run is not None]
    if len(done) < len(runs):
        return Settled(claim, "not-run")
    whole = all(run.whole for run in done)
    measured = [each for run in done for each in run.measured]
    findings = _means(claim, measured, whole=whole) if claim.geometric_means else _expectations(measured)
    verdict: ClaimVerdict = "inconclusive"
    if any(finding.outcome == "not-met" and finding.sound for finding in findings):
        verdict = "refuted"
    elif findings and whole and all(finding.outcome == "met" for finding in findings):
        verdict = "confirmed"
    return Settled(
        claim,
        verdict,
        found=tuple(finding.sentence for finding in findings),
        hardware="; ".join(dict.fromkeys(machine.line(result.fingerprint) for result, _ in measured)),
        certificate="; ".join(dict.fromkeys(view.checks_summary(result) for result, _ in measured)),
    )


def _expectations(measured: Measured) -> list[ClaimFinding]:
    """Each expectation of each case; before it the workload where there are several, and what a sweep swept."""
    several = len({result.case.workload for result, _ in measured}) > 1
    findings = []
    for result, outcomes in measured:
        swept = [f"{name} {value}" for name, value in result.case.swept.items()]
        whose = ", ".join([result.case.workload] * several + swept)
        for each in outcomes:
            sentence = f"{whose}: {each.sentence}" if whose else each.sentence
            findings.append(ClaimFinding(each.outcome, sentence, sound=each.sound and result.complete))
    return findings


def _means(claim: Claim, measured: Measured, *, whole: bool) -> list[ClaimFinding]:
    """Each geometric mean over all cases; undecided where there are not all."""
    if not whole:
        missing = "a case is missing or was interrupted"
        return [ClaimFinding("undecided", f"{suite.named(mean)}: {missing}.") for mean in claim.geometric_means]
    results = [result for result, _ in measured]
    return [suite.evaluate(mean, results, means=len(claim.geometric_means)) for mean in claim.geometric_means]

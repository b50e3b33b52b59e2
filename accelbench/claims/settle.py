"""What becomes of a claim: derived from its run's expectations and results, and from nothing else. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench.api.result import Result
from accelbench.claims.ledger import Claim, Hardware
from accelbench.expectations import ExpectationOutcome
from accelbench.report import machine, view

ClaimVerdict = Literal["confirmed", "refuted", "inconclusive", "untestable-here", "not-run"]
Measured = Sequence[tuple[Result, Sequence[ExpectationOutcome]]]


@dataclass(frozen=True)
class Settled:
    """A claim with its verdict; `found` says each expectation with its numbers, case by case."""

    claim: Claim
    verdict: ClaimVerdict
    found: tuple[str, ...] = ()
    hardware: str = ""
    """What it was measured on, and with which versions."""
    certificate: str = ""
    """How many checks passed, and which did not."""


def settle(claim: Claim, measured: Measured | None, *, cases: int, here: Hardware) -> Settled:
    """The claim held against its results, of `cases` planned ones; None: it has not been run.

    `refuted` needs one expectation that a sound measurement contradicts, in any complete case; `confirmed` needs all of
    them met in every case. What failed, is invalid, is missing or may be either way leaves it `inconclusive`.
    """
    if here not in claim.hardware:
        return Settled(claim, "untestable-here")
    if measured is None:
        return Settled(claim, "not-run")
    outcomes = [outcome for _, of_case in measured for outcome in of_case]
    contradicted = any(
        outcome.outcome == "not-met" and outcome.sound
        for result, of_case in measured
        if result.complete
        for outcome in of_case
    )
    found = tuple(_sentences(measured))
    on = "; ".join(dict.fromkeys(machine.line(result.fingerprint) for result, _ in measured))
    whole = len(measured) == cases and all(result.complete for result, _ in measured)
    verdict: ClaimVerdict = "inconclusive"
    if contradicted:
        verdict = "refuted"
    elif outcomes and whole and all(outcome.outcome == "met" for outcome in outcomes):
        verdict = "confirmed"
    checks = "; ".join(dict.fromkeys(view.checks_summary(result) for result, _ in measured))
    return Settled(claim, verdict, found, on, checks)


def _sentences(measured: Measured) -> list[str]:
    """Each expectation's, with the swept values before it where a sweep has several cases."""
    found = []
    for result, outcomes in measured:
        swept = ", ".join(f"{name} {value}" for name, value in result.case.swept.items())
        found += [f"{swept}: {outcome.sentence}" if swept else outcome.sentence for outcome in outcomes]
    return found

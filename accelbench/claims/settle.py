"""Derive a claim's verdict from the expectations and results of its runs. Pure.

A measurement on one class of hardware decides nothing about another. A program that was compiled for a device can
settle a claim about programs on that class of device, on whatever machine it was compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench import targets
from accelbench.api.result import Result
from accelbench.claims import suite, training, words
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import UNNAMED, Claim, ClaimVerdict, Hardware
from accelbench.verdict.expectations import ExpectationOutcome, evaluate

Measured = Sequence[tuple[Result, Sequence[ExpectationOutcome]]]
CLASSES: dict[str, Hardware] = {"cuda": "gpu", "tpu": "tpu", "cpu": "cpu"}
"""Class of hardware of each platform that programs can be compiled for."""


@dataclass(frozen=True)
class MeasuredRun:
    """Hold the results of one manifest's run."""

    measured: Measured
    cases: int
    """Number of planned cases."""
    name: str = ""
    """Name of the manifest and of its results' directory."""
    where: str = ""
    """Parent directory below all results: the hardware, or `targets`."""
    older: bool = False
    """True if its workload's program has changed since."""
    bounds_changed: bool = False
    """True if the run recorded other bounds than today's."""

    @property
    def whole(self) -> bool:
        """Return True if every case was measured to its end."""
        return len(self.measured) == self.cases and all(result.complete for result, _ in self.measured)

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the results without their expectations."""
        return tuple(result for result, _ in self.measured)


@dataclass(frozen=True)
class ClaimManifest:
    """Hold one of a claim's manifests: its targets, if any, and its run."""

    name: str
    run: MeasuredRun | None
    """None if it has not been run, or was run for another question."""
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settled:
    """Hold a claim with its verdict and the findings that it rests on, case by case."""

    claim: Claim
    verdict: ClaimVerdict
    findings: tuple[ClaimFinding, ...] = ()
    runs: tuple[MeasuredRun, ...] = ()
    """Runs that decide."""
    beside: tuple[MeasuredRun, ...] = ()
    """Runs without a part in the verdict: of `Claim.beside`, and on other hardware."""
    waiting: tuple[str, ...] = ()
    """Manifests that could run here and have not been run."""

    @property
    def found(self) -> tuple[str, ...]:
        """Return the findings' sentences."""
        return tuple(finding.sentence for finding in self.findings)


def settle(
    claim: Claim,
    manifests: Sequence[ClaimManifest],
    *,
    here: Hardware,
    beside: Sequence[MeasuredRun] = (),
) -> Settled:
    """Settle the claim by the runs of its manifests.

    `refuted` needs one condition that a sound measurement of a complete case contradicts. `confirmed` needs all
    conditions met in every case of every manifest. Anything failed, invalid, missing or undecided leaves the claim
    `inconclusive`. If an article claims that something can happen, the run of one manifest confirms it, and none
    refutes it.
    """
    decisive = [manifest for manifest in manifests if _can_decide(claim, manifest, here)]
    waiting = tuple(manifest.name for manifest in decisive if manifest.run is None)
    runs = tuple(manifest.run for manifest in decisive if manifest.run)
    others = tuple(manifest.run for manifest in manifests if manifest.run and manifest not in decisive)
    findings = _findings(claim, runs, waiting=bool(waiting))
    verdict = _verdict(claim, findings, runs, waiting=bool(waiting), all_decide=len(decisive) == len(manifests))
    return Settled(claim, verdict, tuple(findings), runs, (*others, *beside), waiting)


def _can_decide(claim: Claim, manifest: ClaimManifest, here: Hardware) -> bool:
    """Return True if the manifest can settle the claim: its targets, or else `here`, are of the claim's hardware.

    A claim about one machine also needs results, all of that machine.
    """
    if manifest.targets:
        return any(class_of(target) in claim.hardware for target in manifest.targets)
    if here not in claim.hardware:
        return False
    if claim.machine and manifest.run:
        return all(claim.machine in result.fingerprint.get("device.name", "") for result in manifest.run.results)
    return not claim.machine


def class_of(target: str) -> Hardware:
    """Return the target's class of hardware."""
    return CLASSES[targets.find(target).platform]


def _verdict(
    claim: Claim, findings: Sequence[ClaimFinding], runs: Sequence[MeasuredRun], *, waiting: bool, all_decide: bool
) -> ClaimVerdict:
    """Return the verdict by the rules of `settle`; `all_decide`: every manifest can be settled here."""
    if claim.can and any(_is_example(claim, run) for run in runs):
        return "confirmed"
    refutable = not (claim.own or claim.can)
    if refutable and any(finding.outcome == "not-met" and finding.sound for finding in findings):
        return "refuted"
    if not all_decide:
        return "untestable-anywhere" if claim.machine == UNNAMED else "untestable-here"
    if waiting:
        return "not-measured-yet"
    if claim.own:
        return "measured"
    whole = all(run.whole for run in runs)
    return (
        "confirmed" if findings and whole and all(finding.outcome == "met" for finding in findings) else "inconclusive"
    )


def _is_example(claim: Claim, run: MeasuredRun) -> bool:
    """Return True if one manifest's whole run meets every condition: an example of what can happen."""
    findings = _findings(claim, [run], waiting=False)
    return run.whole and bool(findings) and all(finding.outcome == "met" for finding in findings)


def _findings(claim: Claim, runs: Sequence[MeasuredRun], *, waiting: bool) -> list[ClaimFinding]:
    """Return the findings of the claim's majorities, of its trainings and expectations, or of its manifests."""
    measured = [pair for run in runs for pair in run.measured if _decides(claim, pair[0])]
    if claim.own or not measured:
        return []
    if claim.majorities:
        return [] if waiting else _suite_findings(claim, measured, whole=all(run.whole for run in runs))
    trainings = [training.evaluate(one, result) for one in claim.trainings for result, _ in measured]
    if claim.trainings or claim.expectations:
        measured = [(result, evaluate(claim.expectations, result)) for result, _ in measured]
    return [*trainings, *_expectation_findings(measured)]


def _decides(claim: Claim, result: Result) -> bool:
    """Return True unless the result was compiled for a target that is not of the claim's hardware."""
    target = result.case.accelerator.target
    return target is None or class_of(target) in claim.hardware


def _expectation_findings(measured: Measured) -> list[ClaimFinding]:
    """Return each expectation of each case as a finding, with the case's name if there are several."""
    results = [result for result, _ in measured]
    findings = []
    for result, outcomes in measured:
        name = words.distinguishing_name(result, results)
        for outcome in outcomes:
            text = _describe_speedup(result, outcome) or outcome.sentence
            sentence = f"{name}: {text}" if name else text
            findings.append(ClaimFinding(outcome.outcome, sentence, sound=outcome.sound and result.complete))
    return findings


def _describe_speedup(result: Result, outcome: ExpectationOutcome) -> str:
    """Describe a speedup in words; empty if the expectation is not about one."""
    expectation = outcome.expectation
    comparison = next((one for one in result.comparisons if one.variant == expectation.variant), None)
    if expectation.metric != "speedup" or not outcome.sound or comparison is None:
        return ""
    speedup, lower, upper = (float(one or 1) for one in (comparison.speedup, comparison.lower, comparison.upper))
    subject = words.expected_speedup(comparison.variant, comparison.baseline, expectation.at_least, expectation.at_most)
    return f"{subject}: {outcome.outcome}, {words.times(speedup, lower, upper)}."


def _suite_findings(claim: Claim, measured: Measured, *, whole: bool) -> list[ClaimFinding]:
    """Return the findings of a claim about a suite; undecided if a case is missing."""
    if not whole:
        missing = "a case is missing or was interrupted"
        return [ClaimFinding("undecided", f"{suite.condition(majority)}: {missing}.") for majority in claim.majorities]
    results, suites = [result for result, _ in measured], len(claim.majorities)
    return [suite.count(majority, results, suites=suites) for majority in claim.majorities]

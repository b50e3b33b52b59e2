"""What becomes of a claim: derived from its runs' expectations and results, and from nothing else. Pure.

What was measured on one class of hardware says nothing of another. A program that was compiled for a device can settle
a claim about programs on that class of device, wherever it was compiled.
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
"""Of the platforms that a program can be compiled for."""


@dataclass(frozen=True)
class MeasuredRun:
    """What there is of the run of one manifest."""

    measured: Measured
    cases: int
    """Planned."""
    name: str = ""
    """Of the manifest, and of the directory of its results."""
    where: str = ""
    """The directory that has it, below all results: of the hardware, or of targets."""
    older: bool = False
    """The source of its workload has changed since."""
    bounds_changed: bool = False
    """It was asked other bounds than those that it is held against here."""

    @property
    def whole(self) -> bool:
        """Every case was measured to its end."""
        return len(self.measured) == self.cases and all(result.complete for result, _ in self.measured)

    @property
    def results(self) -> tuple[Result, ...]:
        """Without what was expected of them."""
        return tuple(result for result, _ in self.measured)


@dataclass(frozen=True)
class Asked:
    """One of a claim's manifests: what it compiles for, if it does, and what came of it."""

    name: str
    run: MeasuredRun | None
    """None: it has not been run, or not as it is asked today."""
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settled:
    """A claim with its verdict; `findings` is what it rests on, case by case."""

    claim: Claim
    verdict: ClaimVerdict
    findings: tuple[ClaimFinding, ...] = ()
    runs: tuple[MeasuredRun, ...] = ()
    """That decide."""
    beside: tuple[MeasuredRun, ...] = ()
    """That are shown: what the claim names for that, and what other hardware found."""
    waiting: tuple[str, ...] = ()
    """Manifests that can be run here, and have not been."""

    @property
    def found(self) -> tuple[str, ...]:
        """What it rests on, in sentences."""
        return tuple(finding.sentence for finding in self.findings)


def settle(
    claim: Claim,
    asked: Sequence[Asked],
    *,
    here: Hardware,
    beside: Sequence[MeasuredRun] = (),
) -> Settled:
    """The claim held against the runs of its manifests, in their order.

    `refuted` needs one thing that a sound measurement contradicts, in any complete case; `confirmed` needs all of them
    met in every case of every manifest. What failed, is invalid, is missing or may be either way leaves it
    `inconclusive`. Where an article says that something can be so, the run of one manifest confirms it, and none
    refutes it.
    """
    able = [each for each in asked if _can_decide(claim, each, here)]
    waiting = tuple(each.name for each in able if each.run is None)
    runs = tuple(each.run for each in able if each.run)
    others = tuple(each.run for each in asked if each.run and each not in able)
    findings = _findings(claim, runs, waiting=bool(waiting))
    verdict = _verdict(claim, findings, runs, waiting=bool(waiting), able=len(able) == len(asked))
    return Settled(claim, verdict, tuple(findings), runs, (*others, *beside), waiting)


def _can_decide(claim: Claim, asked: Asked, here: Hardware) -> bool:
    """Whether it is about hardware that the claim is about."""
    if asked.targets:
        return any(class_of(target) in claim.hardware for target in asked.targets)
    if here not in claim.hardware:
        return False
    if claim.machine and asked.run:
        return all(claim.machine in result.fingerprint.get("device.name", "") for result in asked.run.results)
    return not claim.machine


def class_of(target: str) -> Hardware:
    """The class of hardware that a target is of."""
    return CLASSES[targets.find(target).platform]


def _verdict(
    claim: Claim, findings: Sequence[ClaimFinding], runs: Sequence[MeasuredRun], *, waiting: bool, able: bool
) -> ClaimVerdict:
    if claim.can and any(_is_example(claim, run) for run in runs):
        return "confirmed"
    refutable = not (claim.own or claim.can)
    if refutable and any(finding.outcome == "not-met" and finding.sound for finding in findings):
        return "refuted"
    if not able:
        return "untestable-anywhere" if claim.machine == UNNAMED else "untestable-here"
    if waiting:
        return "not-measured-yet"
    if claim.own:
        return "measured"
    whole = all(run.whole for run in runs)
    return "confirmed" if findings and whole and all(each.outcome == "met" for each in findings) else "inconclusive"


def _is_example(claim: Claim, run: MeasuredRun) -> bool:
    """Whether the run of one manifest meets everything: of what can be so, one is enough."""
    found = _findings(claim, [run], waiting=False)
    return run.whole and bool(found) and all(each.outcome == "met" for each in found)


def _findings(claim: Claim, runs: Sequence[MeasuredRun], *, waiting: bool) -> list[ClaimFinding]:
    measured = [each for run in runs for each in run.measured if _decides(claim, each[0])]
    if claim.own or not measured:
        return []
    if claim.majorities:
        return [] if waiting else _suites(claim, measured, whole=all(run.whole for run in runs))
    whole = [training.evaluate(each, result) for each in claim.trainings for result, _ in measured]
    if claim.trainings or claim.expectations:
        measured = [(result, evaluate(claim.expectations, result)) for result, _ in measured]
    return [*whole, *_expectations(measured)]


def _decides(claim: Claim, result: Result) -> bool:
    """Of what is compiled for several devices, some may be of another class."""
    target = result.case.accelerator.target
    return target is None or class_of(target) in claim.hardware


def _expectations(measured: Measured) -> list[ClaimFinding]:
    """Each expectation of each case; before it what tells the case from the others."""
    results = [result for result, _ in measured]
    findings = []
    for result, outcomes in measured:
        whose = words.whose(result, results)
        for each in outcomes:
            said = _speedup(result, each) or each.sentence
            sentence = f"{whose}: {said}" if whose else said
            findings.append(ClaimFinding(each.outcome, sentence, sound=each.sound and result.complete))
    return findings


def _speedup(result: Result, outcome: ExpectationOutcome) -> str:
    """A speedup as people say it; empty where there is none."""
    asked = outcome.expectation
    found = next((each for each in result.comparisons if each.variant == asked.variant), None)
    if asked.metric != "speedup" or not outcome.sound or found is None:
        return ""
    speedup, lower, upper = (float(each or 1) for each in (found.speedup, found.lower, found.upper))
    subject = words.compared(found.variant, found.baseline, asked.at_least, asked.at_most)
    return f"{subject}: {outcome.outcome}, {words.times(speedup, lower, upper)}."


def _suites(claim: Claim, measured: Measured, *, whole: bool) -> list[ClaimFinding]:
    """What is asked of all cases together; undecided where there are not all."""
    if not whole:
        missing = "a case is missing or was interrupted"
        return [ClaimFinding("undecided", f"{suite.named(each)}: {missing}.") for each in claim.majorities]
    results, suites = [result for result, _ in measured], len(claim.majorities)
    return [suite.count(majority, results, suites=suites) for majority in claim.majorities]

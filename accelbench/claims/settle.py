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

MeasuredCases = Sequence[tuple[Result, Sequence[ExpectationOutcome]]]
"""The result of each case, with the outcomes of the manifest's expectations."""
HARDWARE_OF_PLATFORM: dict[str, Hardware] = {"cuda": "gpu", "tpu": "tpu", "cpu": "cpu"}


@dataclass(frozen=True)
class MeasuredRun:
    """Hold the results of one manifest's run."""

    measured_cases: MeasuredCases
    planned_case_count: int
    """Number of cases that the manifest plans."""
    name: str = ""
    """Name of the manifest and of its results' directory."""
    parent_directory: str = ""
    """Name of the directory that contains the results' directory: the hardware, or `targets`."""
    has_older_source: bool = False
    """True if the workload's program has changed since the run."""
    has_other_bounds: bool = False
    """True if the bounds of the claim have changed since the run."""

    @property
    def is_complete(self) -> bool:
        """Return True if every planned case was measured to its end."""
        has_all_cases = len(self.measured_cases) == self.planned_case_count
        return has_all_cases and all(result.complete for result, _ in self.measured_cases)

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the results without the outcomes of their expectations."""
        return tuple(result for result, _ in self.measured_cases)


@dataclass(frozen=True)
class ClaimManifest:
    """Hold one manifest of a claim: its run, and the targets that it compiles for, if any."""

    name: str
    run: MeasuredRun | None
    """None if the manifest has no results, or has changed since they were measured."""
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class SettledClaim:
    """Hold a claim with its verdict, and a finding for each condition and case."""

    claim: Claim
    verdict: ClaimVerdict
    findings: tuple[ClaimFinding, ...] = ()
    deciding_runs: tuple[MeasuredRun, ...] = ()
    other_runs: tuple[MeasuredRun, ...] = ()
    """Runs that are shown but do not change the verdict: those of `Claim.beside`, and those on other hardware."""
    manifests_to_run: tuple[str, ...] = ()
    """Names of the manifests that could run on this hardware and have no run."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the sentence of each finding."""
        return tuple(finding.sentence for finding in self.findings)


def settle(
    claim: Claim,
    manifests: Sequence[ClaimManifest],
    *,
    hardware: Hardware,
    additional_runs: Sequence[MeasuredRun] = (),
) -> SettledClaim:
    """Settle the claim from the runs of its manifests.

    Args:
        claim: The claim.
        manifests: Its manifests, with the runs that were made of them.
        hardware: The class of hardware that the runs were made on, or could be made on.
        additional_runs: Runs that are shown and do not change the verdict.
    """
    deciding_manifests = [manifest for manifest in manifests if _can_decide(claim, manifest, hardware)]
    manifests_to_run = tuple(manifest.name for manifest in deciding_manifests if manifest.run is None)
    deciding_runs = tuple(manifest.run for manifest in deciding_manifests if manifest.run)
    other_runs = tuple(manifest.run for manifest in manifests if manifest.run and manifest not in deciding_manifests)
    run_is_missing = bool(manifests_to_run)
    findings = _findings(claim, deciding_runs, run_is_missing=run_is_missing)
    verdict = _verdict(
        claim,
        findings,
        deciding_runs,
        run_is_missing=run_is_missing,
        all_can_decide=len(deciding_manifests) == len(manifests),
    )
    return SettledClaim(
        claim, verdict, tuple(findings), deciding_runs, (*other_runs, *additional_runs), manifests_to_run
    )


def _can_decide(claim: Claim, manifest: ClaimManifest, hardware: Hardware) -> bool:
    """Return True if the manifest's run, made on this class of hardware, can decide the claim."""
    if manifest.targets:  # it only compiles, for which the machine does not matter
        return any(hardware_of_target(target) in claim.hardware for target in manifest.targets)
    if hardware not in claim.hardware:
        return False
    if not claim.machine:
        return True
    # The claim is about one machine, and only results have the name of the machine that they were measured on.
    if manifest.run is None:
        return False
    return all(claim.machine in result.fingerprint.get("device.name", "") for result in manifest.run.results)


def hardware_of_target(target: str) -> Hardware:
    """Return the target's class of hardware."""
    return HARDWARE_OF_PLATFORM[targets.find(target).platform]


def _verdict(
    claim: Claim,
    findings: Sequence[ClaimFinding],
    runs: Sequence[MeasuredRun],
    *,
    run_is_missing: bool,
    all_can_decide: bool,
) -> ClaimVerdict:
    """Return the verdict of the first rule that applies.

    Args:
        claim: The claim.
        findings: Whether each of its conditions is met.
        runs: The runs that can decide it.
        run_is_missing: True if a manifest that could decide it was not run.
        all_can_decide: True if this hardware suffices for every manifest of the claim.
    """
    # `can`: the article claims that something is possible. One example confirms that; nothing refutes it.
    if claim.can and any(_is_example(claim, run) for run in runs):
        return "confirmed"
    # One finding from a valid and complete measurement refutes a claim, even if runs are missing.
    # `own`: a question of our own, not an article's claim; nothing confirms or refutes it.
    is_refutable = not (claim.own or claim.can)
    if is_refutable and any(finding.outcome == "not-met" and finding.sound for finding in findings):
        return "refuted"
    if not all_can_decide:
        # UNNAMED: the article does not name the machine of its measurement.
        return "untestable-anywhere" if claim.machine == UNNAMED else "untestable-here"
    if run_is_missing:
        return "not-measured-yet"
    if claim.own:
        return "measured"
    return "confirmed" if _meet_all_conditions(runs, findings) else "inconclusive"


def _is_example(claim: Claim, run: MeasuredRun) -> bool:
    """Return True if this run alone meets all conditions of the claim."""
    return _meet_all_conditions([run], _findings(claim, [run], run_is_missing=False))


def _meet_all_conditions(runs: Sequence[MeasuredRun], findings: Sequence[ClaimFinding]) -> bool:
    """Return True if all runs are complete, and there are findings, which are all met."""
    all_complete = all(run.is_complete for run in runs)
    # Without findings, nothing was decided.
    return all_complete and bool(findings) and all(finding.outcome == "met" for finding in findings)


def _findings(claim: Claim, runs: Sequence[MeasuredRun], *, run_is_missing: bool) -> list[ClaimFinding]:
    """Return a finding for each condition of the claim and each case that counts for it.

    Conditions in the ledger replace the expectations of the manifests. A majority, which is a condition on most of the
    cases, needs the cases of all runs, so it has no finding if a run is missing.
    """
    all_cases = [case for run in runs for case in run.measured_cases]
    cases = [(result, outcomes) for result, outcomes in all_cases if _counts_for(claim, result)]
    is_question_of_our_own = claim.own  # which has an answer, but no condition
    if is_question_of_our_own or not cases:
        return []
    if claim.majorities:
        if run_is_missing:
            return []
        return _suite_findings(claim, cases, all_complete=all(run.is_complete for run in runs))
    trainings = [training.evaluate(condition, result) for condition in claim.trainings for result, _ in cases]
    if claim.trainings or claim.expectations:
        cases = [(result, evaluate(claim.expectations, result)) for result, _ in cases]
    return [*trainings, *_expectation_findings(cases)]


def _counts_for(claim: Claim, result: Result) -> bool:
    """Return True for any measured result, and for a compiled one if its target is hardware that the claim is about."""
    target = result.case.accelerator.target
    return target is None or hardware_of_target(target) in claim.hardware


def _expectation_findings(cases: MeasuredCases) -> list[ClaimFinding]:
    """Return a finding for each expectation of each case."""
    results = [result for result, _ in cases]
    findings = []
    for result, outcomes in cases:
        case_name = words.distinguishing_name(result, results)
        for outcome in outcomes:
            text = _describe_speedup(result, outcome) or outcome.sentence
            sentence = f"{case_name}: {text}" if case_name else text
            findings.append(ClaimFinding(outcome.outcome, sentence, sound=outcome.sound and result.complete))
    return findings


def _describe_speedup(result: Result, outcome: ExpectationOutcome) -> str:
    """Describe the measured speedup that decided an expectation.

    Return an empty string if the expectation is not about a speedup, or if no valid measurement decided it.
    """
    expectation = outcome.expectation
    if expectation.metric != "speedup" or not outcome.sound:
        return ""
    variant = expectation.variant
    comparison = next((comparison for comparison in result.comparisons if comparison.variant == variant), None)
    if comparison is None:
        return ""
    # A comparison that decided an outcome has all three values; `or 1` is for the type checker.
    speedup = float(comparison.speedup or 1)
    lower = float(comparison.lower or 1)
    upper = float(comparison.upper or 1)
    subject = words.expected_speedup(comparison.variant, comparison.baseline, expectation.at_least, expectation.at_most)
    return f"{subject}: {outcome.outcome}, {words.times(speedup, lower, upper)}."


def _suite_findings(claim: Claim, cases: MeasuredCases, *, all_complete: bool) -> list[ClaimFinding]:
    """Return a finding for each majority of the claim: a condition on most cases of a suite.

    Unless all cases are complete, every finding is undecided, because a missing case could decide the majority.
    """
    if not all_complete:
        missing = "a case is missing or was interrupted"
        return [ClaimFinding("undecided", f"{suite.condition(majority)}: {missing}.") for majority in claim.majorities]
    results = [result for result, _ in cases]
    # The majorities of a claim share its error probability.
    count = len(claim.majorities)
    return [suite.evaluate(majority, results, majority_count=count) for majority in claim.majorities]

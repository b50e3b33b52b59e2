"""Derive a claim's verdict from the expectations and results of its runs. Pure.

A claim has conditions of three kinds: an expectation bounds a number of one case, such as a speedup; a training bounds
the ratio of the total times of two whole trainings; a majority bounds most speedups of a suite. A finding is the
outcome of one condition in one case or suite.
A measurement on one class of hardware decides nothing about another. A program that was compiled for a device can
settle a claim about programs on that class of device, on whatever machine it was compiled.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from accelbench import targets
from accelbench.api.result import Result
from accelbench.api.run import Expectation
from accelbench.claims import bounds, evidence, suite, training, withheld, words
from accelbench.claims.bounds import Age, BoundsRecord
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import UNNAMED, Claim, ClaimVerdict, Hardware
from accelbench.verdict.expectations import ExpectationOutcome, describe, evaluate

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
    expectations: tuple[Expectation, ...] = ()
    baseline: str = ""
    """Name of the variant that the others are compared with."""


@dataclass(frozen=True)
class SettledClaim:
    """Hold a claim with its verdict, a finding for each condition and case, and what the verdict rests on."""

    claim: Claim
    verdict: ClaimVerdict
    findings: tuple[ClaimFinding, ...] = ()
    deciding_runs: tuple[MeasuredRun, ...] = ()
    other_runs: tuple[MeasuredRun, ...] = ()
    """Runs that are shown but do not change the verdict: those of `Claim.beside`, and those on other hardware."""
    manifests_to_run: tuple[str, ...] = ()
    """Names of the manifests that could run on this hardware and have no run."""
    conditions: tuple[str, ...] = ()
    """The claim's conditions in words, generated from its bounds."""
    bounds: BoundsRecord | None = None
    """The commit that first wrote the present bounds; None if none is recorded."""
    withheld: tuple[str, ...] = ()
    """Why there is no verdict; empty if nothing prevents one."""
    controls: tuple[str, ...] = ()
    """What the control shows about each ratio between two frameworks."""

    @property
    def runs(self) -> tuple[MeasuredRun, ...]:
        """Return all runs, deciding or not."""
        return (*self.deciding_runs, *self.other_runs)

    @property
    def deciding_results(self) -> tuple[Result, ...]:
        """Return the results of the deciding runs that count for the claim."""
        return tuple(result for run in self.deciding_runs for result in run.results if _counts_for(self.claim, result))

    @property
    def bounds_age(self) -> Age:
        """Return whether the bounds were written before the results that they judge."""
        return bounds.age(self.bounds, self.claim, [started_at(result) for result in self.deciding_results])

    @property
    def results_digest(self) -> str:
        """Return a digest that changes if any of the claim's results is measured again."""
        names = sorted(
            f"{run.parent_directory}/{run.name} {result.case.name} {result.finished}"
            for run in self.runs
            for result in run.results
        )
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]

    @property
    def answer(self) -> str:
        """Return the ledger's answer for this verdict; empty without one that was written for these results."""
        was_written_for_these = self.claim.written_for == self.results_digest
        return self.claim.answers.get(self.verdict, "") if was_written_for_these else ""

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
    record: BoundsRecord | None = None,
    control: MeasuredRun | None = None,
) -> SettledClaim:
    """Settle the claim from the runs of its manifests.

    Args:
        claim: The claim.
        manifests: Its manifests, with the runs that were made of them.
        hardware: The class of hardware that the runs were made on, or could be made on.
        additional_runs: Runs that are shown and do not change the verdict.
        record: The commit that first wrote the present bounds of the claim; None if none is recorded.
        control: The run of the claim's control on this hardware.
    """
    deciding_manifests = [manifest for manifest in manifests if _can_decide(claim, manifest, hardware)]
    manifests_to_run = tuple(manifest.name for manifest in deciding_manifests if manifest.run is None)
    deciding_runs = tuple(manifest.run for manifest in deciding_manifests if manifest.run)
    other_runs = tuple(manifest.run for manifest in manifests if manifest.run and manifest not in deciding_manifests)
    run_is_missing = bool(manifests_to_run)
    findings = _findings(claim, deciding_runs, run_is_missing=run_is_missing)
    all_runs = (*deciding_runs, *other_runs, *additional_runs)
    if claim.kind == "opinion":
        verdict: ClaimVerdict = "opinion"
    else:
        written = record.written if record else None
        # A control measures plain products, and not what the claim is about.
        all_results = [result for run in all_runs if run is not control for result in run.results]
        verdict_of_one_result = _verdict_of_one_result(claim, findings, deciding_runs, bounds_written=written)
        verdict = verdict_of_one_result or _verdict_of_all_runs(
            claim,
            findings,
            deciding_runs,
            run_is_missing=run_is_missing,
            all_can_decide=bool(manifests) and len(deciding_manifests) == len(manifests),
            is_measured_on_claimed_hardware=any(_is_on_hardware_of(claim, result) for result in all_results),
        )
    cases = [case for run in deciding_runs for case in run.measured_cases]
    control_results = control.results if control else ()
    reasons = withheld.reasons(claim, cases, control_results)
    if reasons and verdict in bounds.VERDICTS_OF_RESULTS:
        verdict = "withheld"
    return SettledClaim(
        claim,
        verdict,
        findings=tuple(findings),
        deciding_runs=deciding_runs,
        other_runs=(*other_runs, *additional_runs),
        manifests_to_run=manifests_to_run,
        conditions=tuple(_describe_conditions(claim, manifests)),
        bounds=record,
        withheld=reasons,
        controls=tuple(each.sentence for each in withheld.compare_with_controls(claim, cases, control_results)),
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


def _verdict_of_one_result(
    claim: Claim, findings: Sequence[ClaimFinding], runs: Sequence[MeasuredRun], *, bounds_written: datetime | None
) -> ClaimVerdict | None:
    """Return the verdict if a single result decides it; None otherwise.

    Args:
        claim: The claim.
        findings: Whether each of its conditions is met.
        runs: The runs that can decide it.
        bounds_written: When the present bounds and examples were committed; None if that is not recorded.
    """
    # One example shows that something is possible, and nothing refutes it. An example counts only if it was chosen
    # before it was measured.
    if claim.kind == "possibility" and any(_is_example(claim, run, bounds_written) for run in runs):
        return "example-exists"
    # One finding from a valid and complete measurement refutes a claim, even if runs are missing.
    if claim.kind == "claim" and any(finding.outcome == "not-met" and finding.is_valid for finding in findings):
        return "refuted"
    return None


def _verdict_of_all_runs(
    claim: Claim,
    findings: Sequence[ClaimFinding],
    runs: Sequence[MeasuredRun],
    *,
    run_is_missing: bool,
    all_can_decide: bool,
    is_measured_on_claimed_hardware: bool,
) -> ClaimVerdict:
    """Return the verdict that follows from all runs together, or one with the reason why nothing follows.

    Args:
        claim: The claim.
        findings: Whether each of its conditions is met.
        runs: The runs that can decide it.
        run_is_missing: True if a manifest that could decide it was not run.
        all_can_decide: True if it has manifests, and this hardware suffices for all of them.
        is_measured_on_claimed_hardware: True if anything was measured on hardware that the claim is about.
    """
    if claim.machine == UNNAMED and not all_can_decide:  # the article does not name the machine of its measurement
        return "untestable-anywhere"
    is_incomplete = run_is_missing or not all(run.is_complete for run in runs)
    if not all_can_decide or is_incomplete:
        # If a claim is about one machine, results of another machine of the same class do not count as its measurement.
        if is_measured_on_claimed_hardware and not claim.machine:
            return "measured-not-decided"
        return "not-measured-yet" if all_can_decide else "untestable-here"
    if claim.kind == "question":
        return "measured"
    # A possibility with an example has its verdict from `_verdict_of_one_result`; without an example, it stays open.
    if claim.kind == "possibility" or not _meet_all_conditions(runs, findings):
        return "inconclusive"
    return "in-direction" if any(finding.excludes_figure for finding in findings) else "confirmed"


def _is_on_hardware_of(claim: Claim, result: Result) -> bool:
    """Return True if the result was measured, and not only compiled, on hardware that the claim is about."""
    was_measured = result.rounds > 0 and not result.compiled  # no round: interrupted before one was complete
    return was_measured and HARDWARE_OF_PLATFORM.get(result.case.accelerator.platform) in claim.hardware


def _is_example(claim: Claim, run: MeasuredRun, bounds_written: datetime | None) -> bool:
    """Return True if this run alone meets all conditions of the claim, and began after they were written."""
    if bounds_written is None or any(bounds_written >= started_at(result) for result in run.results):
        return False
    return _meet_all_conditions([run], _findings(claim, [run], run_is_missing=False))


def started_at(result: Result) -> datetime:
    """Return when the result's first launch began."""
    return datetime.fromisoformat(result.started)


def measured_at(result: Result) -> datetime:
    """Return when the result's last launch ended."""
    return datetime.fromisoformat(result.finished)


def _describe_conditions(claim: Claim, manifests: Sequence[ClaimManifest]) -> list[str]:
    """Describe the conditions of the claim, each once, whether or not anything was measured.

    A claim that nothing can decide has none.
    """
    if not claim.is_decidable:
        return []
    conditions = [suite.condition(majority) for majority in claim.majorities]
    units = [result.unit for manifest in manifests if manifest.run for result in manifest.run.results]
    unit = units[0] if units else "unit"  # only a result knows the unit's name, which is the same in all results
    conditions += [training.condition(claimed_training, unit) for claimed_training in claim.trainings]
    for manifest in manifests:
        expectations = claim.expectations if claim.ignores_manifest_expectations else manifest.expectations
        conditions += [_describe_expectation(expectation, manifest.baseline) for expectation in expectations]
    return list(dict.fromkeys(words.simplify_sentence(condition) for condition in conditions))


def _describe_expectation(expectation: Expectation, baseline: str) -> str:
    """Describe an expectation; a bound on the speedup as `jax/jit at least 2 times as fast as pytorch/eager`."""
    if expectation.metric != "speedup":
        return describe(expectation)
    return words.expected_speedup(expectation.variant, baseline, expectation.at_least, expectation.at_most)


def _meet_all_conditions(runs: Sequence[MeasuredRun], findings: Sequence[ClaimFinding]) -> bool:
    """Return True if all runs are complete, and there are findings, which are all met."""
    all_complete = all(run.is_complete for run in runs)
    # Without findings, nothing was decided.
    return all_complete and bool(findings) and all(finding.outcome == "met" for finding in findings)


def _findings(claim: Claim, runs: Sequence[MeasuredRun], *, run_is_missing: bool) -> list[ClaimFinding]:
    """Return a finding for each condition of the claim and each case that counts for it; for a majority, one in all.

    Conditions in the ledger replace the expectations of the manifests. A majority needs the cases of all runs, so it
    has no finding if a run is missing. Claims that no measurement can decide have no findings.
    """
    all_cases = [case for run in runs for case in run.measured_cases]
    cases = [(result, outcomes) for result, outcomes in all_cases if _counts_for(claim, result)]
    if not claim.is_decidable or not cases:
        return []
    if claim.majorities:
        if run_is_missing:
            return []
        return _suite_findings(claim, cases, all_complete=all(run.is_complete for run in runs))
    training_findings = [training.evaluate(condition, result) for condition in claim.trainings for result, _ in cases]
    if claim.ignores_manifest_expectations:  # with trainings alone, no expectations are left
        cases = [(result, evaluate(claim.expectations, result)) for result, _ in cases]
    return [*training_findings, *_expectation_findings(cases)]


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
        for unweighed_outcome in outcomes:
            # `weigh` returns another outcome if the number cannot decide a claim; its sentence then has the reason.
            outcome = evidence.weigh(unweighed_outcome, result)
            text = outcome.sentence
            if outcome is unweighed_outcome:
                text = _describe_speedup(result, outcome) or outcome.sentence
            sentence = f"{case_name}: {text}" if case_name else text
            findings.append(ClaimFinding(outcome.outcome, sentence, is_valid=outcome.is_valid and result.complete))
    return findings


def _describe_speedup(result: Result, outcome: ExpectationOutcome) -> str:
    """Describe the measured speedup that decided an expectation.

    Return an empty string if the expectation is not about a speedup, or if no valid measurement decided it.
    """
    expectation = outcome.expectation
    if expectation.metric != "speedup" or not outcome.is_valid:
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
    """Return a finding for each majority of the claim.

    Unless all cases are complete, every finding is undecided, because a missing case could decide the majority.
    """
    if not all_complete:
        missing = "a case is missing or was interrupted"
        return [ClaimFinding("undecided", f"{suite.condition(majority)}: {missing}.") for majority in claim.majorities]
    results = [result for result, _ in cases]
    # The majorities of a claim share its error probability.
    count = len(claim.majorities)
    return [suite.evaluate(majority, results, majority_count=count) for majority in claim.majorities]

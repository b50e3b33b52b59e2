"""Define a validity check: a name, a threshold with its reason, and a function that evaluates the evidence.

To add a check, add a module to this folder that defines `CHECK`; `accelbench.validity.certificate` collects them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from accelbench import figures
from accelbench.api.case import Case
from accelbench.api.result import Check, CheckOutcome
from accelbench.launch.fact import Unreadable, clip
from accelbench.launch.facts import Facts
from accelbench.launch.record import LaunchRecord
from accelbench.validity.evidence import Evidence

MAXIMUM_NAMED_ROUNDS = 3
"""Maximum number of rounds that a reading names; it counts the others."""
WHOLE_PERCENT = 0.01
"""Minimum share that is shown as whole per cent."""


@dataclass(frozen=True)
class Finding:
    """Hold the outcome of a check and its reading: the measured values, or why it is untested."""

    outcome: CheckOutcome
    reading: str
    widened: bool = False
    """True if the check passed although a disturbance widened the spread of times without moving the speedup."""


VariantFinding = tuple[str | None, Finding]
"""A variant's name and the finding on it. The name is None if the finding is on all variants."""


@dataclass(frozen=True)
class DisturbanceLimit:
    """Hold the maximum shares of time that a disturbance may take (docs/method/discarded-rounds.md)."""

    widens: float
    """Maximum share that does not widen the spread of times. Above it the round counts, and the reading reports it."""
    biases: float
    """Maximum share that does not bias speedups. Above it the round is discarded."""


def passed(reading: str) -> Finding:
    """Return a passed outcome with the measured values."""
    return Finding("passed", reading)


def passed_with_wider_spread(reading: str) -> Finding:
    """Return a passed outcome with the measured values, for a launch whose times a disturbance spread more widely."""
    return Finding("passed", reading, widened=True)


def percent(share: float) -> str:
    """Format a share in per cent, such as `7 %` or `0.4 %`."""
    if share == 0 or share >= WHOLE_PERCENT:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.1g} %"


def failed(reading: str | Unreadable) -> Finding:
    """Return a failed outcome with the measured values, or with the reason why a fact is missing or invalid.

    If the fact is missing because accelbench's own probe failed, the variant is not to blame: the outcome is untested.
    """
    if isinstance(reading, Unreadable):
        return untested(reading) if reading.probe_failed else Finding("failed", reading.why)
    return Finding("failed", reading)


def untested(reading: str | Unreadable) -> Finding:
    """Return an untested outcome, that of a check that could not decide, with the reason."""
    return Finding("untested", reading.why if isinstance(reading, Unreadable) else reading)


@dataclass(frozen=True)
class LaunchCheck:
    """Check each launch by itself. A variant gets the most severe finding of its launches."""

    name: str
    threshold: str
    reason: str
    """Why the threshold has this value."""
    evaluate: Callable[[Case, LaunchRecord], Finding]
    measured_only: bool = False
    """True if it needs times or the requested device; `accelbench check` has neither and skips it."""
    observed: bool = False
    """True if it also applies to launches of the protocol observe, which time nothing."""
    arrivals_only: bool = False
    """True if it applies only to cases in which requests arrive."""
    disturbance: bool = False
    """True if other load makes it fail, not the variant. The round is then discarded for all variants and repeated."""
    advice: Callable[[Mapping[str, str]], str] = lambda _: ""
    """Returns what to do about a disturbance on a machine with this fingerprint."""
    include_quarantined: bool = False
    """True if it also checks quarantined launches: a disturbance does not change what they compute."""
    remedy: str = ""
    """What to do about a variant that fails; empty if the reading is enough."""
    fact: Callable[[Facts], object] | None = None
    """Reads the fact that the check needs, if only some launches report it; the other launches are skipped."""

    def outcomes(self, evidence: Evidence) -> Iterator[Check]:
        """Yield the most severe outcome of each variant's launches; untested if no launch reports the needed fact."""
        for variant in evidence.variants:
            launches = evidence.launches_of(variant)
            if self.include_quarantined:
                launches += evidence.quarantined_of(variant)
            findings: list[tuple[int, Finding]] = []  # each with the number of its round
            missing_facts: list[Unreadable] = []
            for launch in launches:
                missing_fact = self._missing_fact(launch)
                if missing_fact is None:
                    findings.append((launch.round, self.evaluate(evidence.case, launch)))
                else:
                    missing_facts.append(missing_fact)
            if findings:
                yield _as_check(self, most_severe(findings, disturbance=self.disturbance), variant)
            else:  # there is at least one launch, and each lacks the fact
                yield _as_check(self, untested(missing_facts[0]), variant)

    def _missing_fact(self, launch: LaunchRecord) -> Unreadable | None:
        """Return the needed fact if the launch did not report it, with the reason; None if the launch reported it."""
        if self.fact is None:
            return None
        fact = self.fact(launch.facts)
        if isinstance(fact, Unreadable) and not fact.reported:
            return fact
        return None  # an invalid value was reported too: `evaluate` judges it


@dataclass(frozen=True)
class CaseCheck:
    """Check all launches of a case together."""

    name: str
    threshold: str
    reason: str
    """Why the threshold has this value."""
    evaluate: Callable[[Evidence], Iterable[VariantFinding]]
    measured_only: bool = False
    """True if it needs times or the requested device; `accelbench check` has neither and skips it."""
    observed: bool = False
    """True if it also applies to launches of the protocol observe, which time nothing."""
    arrivals_only: bool = False
    """True if it applies only to cases in which requests arrive."""
    noise: bool = False
    """True if the variant or other load can make it fail. If the case accepts noise, the interval is shown anyway."""
    remedy: str = ""
    """What to do about a variant that fails; empty if the reading is enough."""
    rounds: int = 0
    """Number of rounds that it needs; with fewer it is untested."""

    def outcomes(self, evidence: Evidence) -> Iterator[Check]:
        """Judge all launches together, and yield an outcome for each variant or one for all of them."""
        for variant, finding in self.evaluate(evidence):
            yield _as_check(self, finding, variant)


ValidityCheck = LaunchCheck | CaseCheck


def remedy_for(check: ValidityCheck, fingerprint: Mapping[str, str]) -> str:
    """Return what to do if the check fails on a machine with this fingerprint; empty if the check has no advice.

    A check for disturbances by other load has no `remedy`, because the variant is not to blame, but `advice`.
    """
    if check.remedy or isinstance(check, CaseCheck):
        return check.remedy
    return check.advice(fingerprint)


_SEVERITY: dict[CheckOutcome, int] = {"passed": 0, "untested": 2, "failed": 3}
_WIDENED_SEVERITY = 1


def _severity(finding: Finding) -> int:
    """Return a number that increases with severity."""
    return _WIDENED_SEVERITY if finding.widened else _SEVERITY[finding.outcome]


def most_severe(findings: list[tuple[int, Finding]], *, disturbance: bool = False) -> Finding:
    """Return the most severe of the findings. Its reading names the rounds with that severity, unless all have it.

    `findings` are pairs of a round's number and a finding, in the order of rounds. If all passed, the newest is
    returned; else the first of the most severe ones. `disturbance` is True for a check of the machine's load, whose
    reading names the first disturbed round and counts the others.
    """
    severity = max(_severity(finding) for _, finding in findings)
    worst = [(round_number, finding) for round_number, finding in findings if _severity(finding) == severity]
    if severity == _SEVERITY["passed"]:
        _, newest = worst[-1]
        return newest
    round_number, finding = worst[0]
    other_count = len(worst) - 1
    if disturbance and finding.outcome != "untested":
        reading = f"{finding.reading} in round {round_number}"
        if other_count:
            rounds_were = "round was" if other_count == 1 else "rounds were"
            reading += f"; {other_count} more {rounds_were} also disturbed"
        return Finding(finding.outcome, reading, finding.widened)
    worst_rounds = list(dict.fromkeys(number for number, _ in worst))
    if {number for number, _ in findings} == set(worst_rounds):
        return finding
    return Finding(finding.outcome, f"{_name_rounds(worst_rounds)}: {finding.reading}")


def _name_rounds(numbers: Sequence[int]) -> str:
    """Name rounds, such as `round 2`, `rounds 2 and 3` or `rounds 2, 3, 4 and 7 more`."""
    names = [str(number) for number in numbers]
    if len(names) > MAXIMUM_NAMED_ROUNDS:
        names[MAXIMUM_NAMED_ROUNDS:] = [f"{len(names) - MAXIMUM_NAMED_ROUNDS} more"]
    return f"rounds {figures.join_names(names)}" if len(names) > 1 else f"round {names[0]}"


def _as_check(check: ValidityCheck, finding: Finding, variant: str | None) -> Check:
    """Convert a check's finding to the form that certificates contain."""
    return Check(
        name=check.name,
        outcome=finding.outcome,
        reading=clip(finding.reading),
        threshold=check.threshold,
        variant=variant,
    )

"""Define a validity check: a name, a threshold with its reason, and a function that evaluates the evidence.

To add a check, add a module to this folder that defines `CHECK`; `accelbench.validity.certificate` collects them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from accelbench.api.case import Case
from accelbench.api.result import Check, CheckOutcome
from accelbench.launch.fact import Unreadable, clip
from accelbench.launch.facts import Facts
from accelbench.launch.record import LaunchRecord
from accelbench.validity.evidence import Evidence

WHOLE_PERCENT = 0.01
"""Minimum share that is shown as whole per cent."""


@dataclass(frozen=True)
class Finding:
    """Hold the outcome of a check and its reading: the measured numbers, or why it is untested."""

    outcome: CheckOutcome
    reading: str
    widened: bool = False
    """True if the check passed although a disturbance widened the spread of times without moving the speedup."""


@dataclass(frozen=True)
class DisturbanceLimit:
    """Hold the shares of time that a disturbance may take; docs/method/discarded-rounds.md."""

    widens: float
    """Above this share times spread further: the round counts, and the reading reports it."""
    biases: float
    """Above this share speedups moved in experiments: the round is discarded."""


def passed(reading: str) -> Finding:
    """Return a finding within the threshold."""
    return Finding("passed", reading)


def widened(reading: str) -> Finding:
    """Return a finding that passed, with a disturbance that is too small to bias a speedup."""
    return Finding("passed", reading, widened=True)


def percent(share: float) -> str:
    """Format a share: `7 %`, or one significant digit below 1 %, as `0.4 %`."""
    return f"{100 * share:.0f} %" if share >= WHOLE_PERCENT or not share else f"{100 * share:.1g} %"


def failed(reading: str | Unreadable) -> Finding:
    """Return a finding beyond the threshold.

    If accelbench's own probe gave no answer, the finding is untested instead: the variant is not to blame.
    """
    if isinstance(reading, Unreadable) and reading.probe_failed:
        return untested(reading)
    return Finding("failed", reading.why if isinstance(reading, Unreadable) else reading)


def untested(reading: str | Unreadable) -> Finding:
    """Return a finding without an answer, with the reason."""
    return Finding("untested", reading.why if isinstance(reading, Unreadable) else reading)


@dataclass(frozen=True)
class LaunchCheck:
    """Check each launch by itself; a variant gets the most severe finding of its launches."""

    name: str
    threshold: str
    reason: str
    """Why the threshold has this value."""
    evaluate: Callable[[Case, LaunchRecord], Finding]
    measured_only: bool = False
    """True if it needs times or the requested device; `accelbench check` has neither and skips it."""
    observed: bool = False
    """True if it also applies to launches of the protocol observe, which time nothing."""
    disturbance: bool = False
    """True if other load fails it, not the variant: the round is quarantined for all variants and measured again."""
    advice: Callable[[Mapping[str, str]], str] = lambda _: ""
    """Returns what to do about a disturbance on a machine with this fingerprint."""
    include_quarantined: bool = False
    """True if it also checks quarantined launches: a disturbance does not change what they compute."""
    remedy: str = ""
    """What to do about a variant that fails; empty if the reading is enough."""
    fact: Callable[[Facts], object] | None = None
    """Reads the fact that the check needs, if only some launches report it; the other launches are skipped."""

    def checks(self, evidence: Evidence) -> Iterator[Check]:
        """Yield one reading for each variant that has launches; untested if no launch reports the fact it needs."""
        for variant in evidence.variants:
            launches = evidence.launches_of(variant) + (
                evidence.quarantined_of(variant) if self.include_quarantined else ()
            )
            unreported = {launch.round: fact for launch in launches if (fact := self._unreported(launch))}
            findings = [
                (launch.round, self.evaluate(evidence.case, launch))
                for launch in launches
                if launch.round not in unreported
            ]
            if findings:
                yield _check(self, most_severe(findings, disturbance=self.disturbance), variant)
            else:
                yield _check(self, untested(unreported[launches[0].round]), variant)

    def _unreported(self, launch: LaunchRecord) -> Unreadable | None:
        """Return the fact that the check needs if the launch did not report it, else None."""
        fact = self.fact(launch.facts) if self.fact else None
        return fact if isinstance(fact, Unreadable) and not fact.reported else None


@dataclass(frozen=True)
class CaseCheck:
    """Check all launches of a case together; a finding is for one variant, or for all of them (None)."""

    name: str
    threshold: str
    reason: str
    """Why the threshold has this value."""
    evaluate: Callable[[Evidence], Iterable[tuple[str | None, Finding]]]
    measured_only: bool = False
    """True if it needs times or the requested device; `accelbench check` has neither and skips it."""
    observed: bool = False
    """True if it also applies to launches of the protocol observe, which time nothing."""
    noise: bool = False
    """True if other load can fail it as well as the variant; if the case accepts noise, the interval is shown anyway.
    """
    remedy: str = ""
    """What to do about a variant that fails; empty if the reading is enough."""
    rounds: int = 0
    """Number of rounds that it needs; with fewer it is untested."""

    def checks(self, evidence: Evidence) -> Iterator[Check]:
        """Yield the readings, in the order of the evaluation."""
        for variant, finding in self.evaluate(evidence):
            yield _check(self, finding, variant)


ValidityCheck = LaunchCheck | CaseCheck


def remedy_for(check: ValidityCheck, fingerprint: Mapping[str, str]) -> str:
    """Return the check's remedy, else its advice for a machine with this fingerprint; empty if it has neither."""
    advice = check.advice(fingerprint) if isinstance(check, LaunchCheck) else ""
    return check.remedy or advice


_SEVERITY: dict[CheckOutcome, int] = {"passed": 0, "untested": 2, "failed": 3}


def _severity(finding: Finding) -> int:
    """Return 0 for passed, 1 for passed with wider spread, 2 for untested, 3 for failed."""
    return _SEVERITY[finding.outcome] + finding.widened


def most_severe(findings: list[tuple[int, Finding]], *, disturbance: bool = False) -> Finding:
    """Return the most severe finding; ties: the newest if all passed, else the first.

    Unless all passed, the reading names the round and the number of other rounds that are as severe. With `disturbance`
    these are called disturbed.
    """
    severity = max(_severity(finding) for _, finding in findings)
    worst = [(number, finding) for number, finding in findings if _severity(finding) == severity]
    if severity == 0:
        return worst[-1][1]
    number, finding = worst[0]
    others = len(worst) - 1
    if disturbance and finding.outcome != "untested":
        also = f"; {others} more {'round was' if others == 1 else 'rounds were'} also disturbed" if others else ""
        return Finding(finding.outcome, f"{finding.reading} in round {number}{also}", finding.widened)
    more = f" (and in {others} more)" if others else ""
    return Finding(finding.outcome, f"round {number}: {finding.reading}{more}")


def _check(check: ValidityCheck, finding: Finding, variant: str | None) -> Check:
    """Return the finding as a result stores it."""
    return Check(
        name=check.name,
        outcome=finding.outcome,
        reading=clip(finding.reading),
        threshold=check.threshold,
        variant=variant,
    )

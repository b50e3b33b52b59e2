"""What a validity check is: a name, a threshold with its reason, and what evaluates the evidence.

Add one by adding a file to this folder that defines `CHECK`; `accelbench.validity.certificate` finds it.
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


@dataclass(frozen=True)
class Finding:
    """What a check found; `reading` says it with numbers, or why it could not be tested."""

    outcome: CheckOutcome
    reading: str
    widened: bool = False
    """It passed, and yet something disturbed the launch: times spread further, and the speedup did not move."""


@dataclass(frozen=True)
class DisturbanceLimit:
    """How large a share a disturbance may take. docs/method/discarded-rounds.md has the figures."""

    widens: float
    """Above this, times spread further: the round counts, and the reading says so."""
    biases: float
    """Above this, speedups were seen to move: the round is discarded."""


def passed(reading: str) -> Finding:
    """Within the threshold."""
    return Finding("passed", reading)


def widened(reading: str) -> Finding:
    """Disturbed, and within the threshold: what biases no speedup."""
    return Finding("passed", reading, widened=True)


def percent(share: float) -> str:
    """A share of something, to the digits that a disturbance is worth: `7 %`, `0.4 %`."""
    return f"{100 * share:.0f} %" if share >= WHOLE_PERCENT or not share else f"{100 * share:.1g} %"


def failed(reading: str | Unreadable) -> Finding:
    """Beyond the threshold, or not shown to be within where a verdict cannot do without.

    Where a probe of accelbench's own gave no answer, it is untested: no variant fails for that.
    """
    if isinstance(reading, Unreadable) and reading.probe_failed:
        return untested(reading)
    return Finding("failed", reading.why if isinstance(reading, Unreadable) else reading)


def untested(reading: str | Unreadable) -> Finding:
    """Neither: there was no way to tell."""
    return Finding("untested", reading.why if isinstance(reading, Unreadable) else reading)


@dataclass(frozen=True)
class LaunchCheck:
    """A check that looks at each launch by itself; a variant is as good as its worst launch."""

    name: str
    threshold: str
    reason: str
    """Why the threshold is what it is."""
    evaluate: Callable[[Case, LaunchRecord], Finding]
    measured_only: bool = False
    """It needs times or the device asked for; `accelbench check` has neither and skips it."""
    observed: bool = False
    """It is asked of launches that time nothing, too: of those whose protocol is observe."""
    disturbance: bool = False
    """What fails it is no variant's doing: the round is quarantined for all variants alike, and measured again."""
    advice: Callable[[Mapping[str, str]], str] = lambda _: ""
    """What whoever measures can do about a disturbance, on a machine with this fingerprint."""
    always: bool = False
    """It looks at quarantined launches too: what they computed does not depend on who disturbed them."""
    remedy: str = ""
    """What whoever measures can do about a variant that fails it; empty where the reading says enough."""
    of: Callable[[Facts], object] | None = None
    """The fact that it looks at, where not every launch is asked for it: those that did not report it say nothing."""

    def checks(self, evidence: Evidence) -> Iterator[Check]:
        """One reading for each variant that has launches."""
        for variant in evidence.variants:
            launches = evidence.of(variant) + (evidence.quarantined_of(variant) if self.always else ())
            silent = {launch.round: fact for launch in launches if (fact := self._silence(launch))}
            findings = [
                (launch.round, self.evaluate(evidence.case, launch))
                for launch in launches
                if launch.round not in silent
            ]
            if findings:
                yield _check(self, worst(findings, disturbance=self.disturbance), variant)
            else:
                yield _check(self, untested(silent[launches[0].round]), variant)

    def _silence(self, launch: LaunchRecord) -> Unreadable | None:
        fact = self.of(launch.facts) if self.of else None
        return fact if isinstance(fact, Unreadable) and not fact.reported else None


@dataclass(frozen=True)
class CaseCheck:
    """A check that needs all launches at once: a finding for a variant, or with None for all of them alike."""

    name: str
    threshold: str
    reason: str
    """Why the threshold is what it is."""
    evaluate: Callable[[Evidence], Iterable[tuple[str | None, Finding]]]
    measured_only: bool = False
    """It needs times or the device asked for; `accelbench check` has neither and skips it."""
    observed: bool = False
    """It is asked of launches that time nothing, too: of those whose protocol is observe."""
    noise: bool = False
    """Other load can fail it, as well as the variant: an interval stands beside it where the case accepts noise."""
    remedy: str = ""
    """What whoever measures can do about a variant that fails it; empty where the reading says enough."""
    rounds: int = 0
    """From so many rounds on it can be made: with fewer it is untested, and nothing is wrong."""

    def checks(self, evidence: Evidence) -> Iterator[Check]:
        """The readings, in the order of the evaluation."""
        for variant, finding in self.evaluate(evidence):
            yield _check(self, finding, variant)


ValidityCheck = LaunchCheck | CaseCheck


def to_do(check: ValidityCheck, fingerprint: Mapping[str, str]) -> str:
    """What whoever measures can do where it fails, on a machine with this fingerprint; empty where it does not say."""
    advice = check.advice(fingerprint) if isinstance(check, LaunchCheck) else ""
    return check.remedy or advice


_SEVERITY: dict[CheckOutcome, int] = {"passed": 0, "untested": 2, "failed": 3}


def _severity(finding: Finding) -> int:
    return _SEVERITY[finding.outcome] + finding.widened


def worst(findings: list[tuple[int, Finding]], *, disturbance: bool = False) -> Finding:
    """The last of the worst: of launches that all passed the newest speaks, else the first that did not."""
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
    return Check(
        name=check.name,
        outcome=finding.outcome,
        reading=clip(finding.reading),
        threshold=check.threshold,
        variant=variant,
    )

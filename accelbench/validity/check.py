"""What a validity check is: a name, a threshold with its reason, and a look at the evidence.

Add one by adding a file to this folder that defines `CHECK`; `accelbench.validity.certificate` finds it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from accelbench.api.case import Case
from accelbench.api.result import Check, CheckOutcome
from accelbench.validity.evidence import Evidence, Launch, Unreadable, clip


@dataclass(frozen=True)
class Finding:
    """What a look found; `reading` says it with numbers, or why it could not be tested."""

    outcome: CheckOutcome
    reading: str


def passed(reading: str) -> Finding:
    """Within the threshold."""
    return Finding("passed", reading)


def failed(reading: str | Unreadable) -> Finding:
    """Beyond the threshold, or not shown to be within where a verdict cannot do without.

    Where a probe of accelbench's own gave no answer, it is untested: no variant fails for that.
    """
    if isinstance(reading, Unreadable) and reading.ours:
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
    look: Callable[[Case, Launch], Finding]
    observed: bool = False
    """It is asked of launches that time nothing, too: of those whose protocol is observe."""
    disturbance: bool = False
    """What fails it is no variant's doing: the round is quarantined for all variants alike, and measured again."""
    always: bool = False
    """It looks at quarantined launches too: what they computed does not depend on who disturbed them."""

    def checks(self, evidence: Evidence) -> Iterator[Check]:
        """One reading for each variant that has launches."""
        for variant in evidence.variants:
            launches = evidence.of(variant) + (evidence.quarantined_of(variant) if self.always else ())
            findings = [(launch.round, self.look(evidence.case, launch)) for launch in launches]
            yield _check(self, worst(findings), variant)


@dataclass(frozen=True)
class CaseCheck:
    """A check that needs all launches at once: a finding for a variant, or with None for all of them alike."""

    name: str
    threshold: str
    reason: str
    """Why the threshold is what it is."""
    look: Callable[[Evidence], Iterable[tuple[str | None, Finding]]]
    observed: bool = False
    """It is asked of launches that time nothing, too: of those whose protocol is observe."""

    def checks(self, evidence: Evidence) -> Iterator[Check]:
        """The readings, as the look orders them."""
        for variant, finding in self.look(evidence):
            yield _check(self, finding, variant)


ValidityCheck = LaunchCheck | CaseCheck

_SEVERITY: dict[CheckOutcome, int] = {"passed": 0, "untested": 1, "failed": 2}


def worst(findings: list[tuple[int, Finding]]) -> Finding:
    """The last of the worst: of launches that all passed the newest speaks, else the first that did not."""
    severity = max(_SEVERITY[finding.outcome] for _, finding in findings)
    worst = [(number, finding) for number, finding in findings if _SEVERITY[finding.outcome] == severity]
    if severity == 0:
        return worst[-1][1]
    number, finding = worst[0]
    more = f" (and in {len(worst) - 1} more)" if len(worst) > 1 else ""
    return Finding(finding.outcome, f"round {number}: {finding.reading}{more}")


def _check(check: ValidityCheck, finding: Finding, variant: str | None) -> Check:
    return Check(
        name=check.name,
        outcome=finding.outcome,
        reading=clip(finding.reading),
        threshold=check.threshold,
        variant=variant,
    )

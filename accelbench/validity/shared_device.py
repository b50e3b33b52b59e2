"""Nobody else used the processors while blocks were timed.

Rounds pair launches, so that what slows the machine hits both sides alike; neighbours do not: an eager framework whose
threads wait for each other was seen eight times slower beside them, a compiled one twice. A single launch that was
disturbed widens the interval, so the median over launches is held against the threshold. Until such rounds are
quarantined and repeated, a crowded machine is said in the verdict's own sentence, and does not take the verdict away.
"""

import statistics
from collections.abc import Iterable, Iterator

from accelbench.validity.check import CaseCheck, Finding, passed, untested
from accelbench.validity.evidence import Evidence, Launch, Neighbours, Unreadable, fact

ALLOWED_SHARE = 0.10


def share_taken(launches: Iterable[Launch]) -> float | None:
    """The share of the processors' time that others took, the median over launches; None where none of them says."""
    told = [fact(launch, "neighbours", Neighbours) for launch in launches]
    shares = [max(0.0, each.busy_seconds) / each.offered_seconds for each in told if not isinstance(each, Unreadable)]
    return statistics.median(shares) if shares else None


def _look(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    for variant in evidence.variants:
        share = share_taken(evidence.of(variant))
        if share is None:
            yield variant, untested("the launches did not report neighbours")
            continue
        reading = f"others took {share:.0%} of the processors, in the median over launches"
        yield variant, passed(reading) if share <= ALLOWED_SHARE else untested(reading)


CHECK = CaseCheck(
    name="shared-device",
    threshold=f"at most {ALLOWED_SHARE:.0%}",
    reason="a machine at rest was seen at 0.4 %, one that runs a whole Kubernetes node at 3 %",
    look=_look,
)

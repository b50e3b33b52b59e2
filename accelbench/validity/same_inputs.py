"""Check that every launch of every variant started from the same bits."""

from collections import Counter
from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.validity.check import CaseCheck, VariantFinding, failed, passed
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail for all variants (None) if launches had different inputs; fail for a variant without a digest of them."""
    digests: Counter[str] = Counter()
    for launch in evidence.launches:
        digest = launch.facts.inputs_digest
        if isinstance(digest, Unreadable):
            yield launch.variant, failed(f"round {launch.round}: {digest.why}")
            return  # all launches must have the same digest, so one unknown digest decides
        digests[digest] += 1
    if len(digests) > 1:
        counts = ", ".join(f"{digest[:12]} in {count} launches" for digest, count in digests.most_common())
        yield None, failed(counts)
    elif digests:
        (digest,) = digests
        yield None, passed(f"{digest[:12]} in all launches")


CHECK = CaseCheck(
    name="same-inputs",
    threshold="one digest in all launches",
    reason="weights and data determine how long an iteration takes and which output is right",
    evaluate=_evaluate,
    observed=True,
    remedy=(
        "draw every random number in arrays() from its argument rng, and let nothing there depend on the time, the "
        "process or the framework"
    ),
)

"""Write the page with the claims' earlier conditions and earlier results. Pure."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from accelbench.claims.answers import AGES, VERDICT_NAMES
from accelbench.claims.ledger import Claim, ClaimVerdict, Earlier
from accelbench.claims.settle import SettledClaim
from accelbench.report.markdown import escape, markdown_table

INTRODUCTION = (
    "Conditions that were changed, with what came out under them and why they were changed; results that newer ones "
    "replaced; and the commit that first wrote the present bounds."
)
MEASURED_VERDICTS: tuple[ClaimVerdict, ...] = ("confirmed", "in-direction", "example-exists", "refuted", "inconclusive")
"""Verdicts that need a measurement."""


def page(settled_claims: Sequence[SettledClaim]) -> str:
    """Return the page as Markdown."""
    paragraphs = [
        "# Claims: earlier conditions and results",
        INTRODUCTION,
        *_changed_conditions(settled_claims),
        "## When the bounds were written",
        _bounds_table(settled_claims),
    ]
    for settled_claim in settled_claims:
        claim = settled_claim.claim
        if claim.history or claim.replaced:
            paragraphs += [
                f"## Row {claim.row}",
                f"**{escape(claim.asks)}**",
                *_history(claim),
                *_replaced_results(claim),
            ]
    return "\n\n".join(paragraphs) + "\n"


def _bounds_table(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a table with the commit that first wrote the bounds of each decidable row."""
    rows = []
    for settled_claim in settled_claims:
        record = settled_claim.bounds
        if settled_claim.claim.is_decidable:
            written = (record.commit[:8], f"{record.written:%Y-%m-%d %H:%M}") if record else ("", "")
            age = AGES[settled_claim.bounds_age] if settled_claim.deciding_results else "nothing measured yet"
            rows.append((str(settled_claim.claim.row), *written, age, str(len(settled_claim.claim.history))))
    return markdown_table(("row", "commit", "written", "bounds were written", "changes"), rows, right={0, 4})


def _changed_conditions(settled_claims: Sequence[SettledClaim]) -> list[str]:
    """Return paragraphs that count changed conditions and changed verdicts."""
    changed_claims = [settled_claim for settled_claim in settled_claims if settled_claim.claim.history]
    if not changed_claims:
        return []
    entry_count = sum(len(settled_claim.claim.history) for settled_claim in changed_claims)
    summary = (
        f"{len(changed_claims)} rows had other conditions before, with {entry_count} changes in all. Each says what "
        "the conditions were, what the verdict was, and why they were changed."
    )
    verdict_changes = _count_verdict_changes(changed_claims)
    if not verdict_changes:
        return [summary]
    summary += (
        f" {verdict_changes.total()} of the changes replaced a verdict that was based on a measurement. The table "
        "shows the next verdict on record, which may be based on a new measurement."
    )
    rows = [
        (VERDICT_NAMES[before], VERDICT_NAMES[after], str(count))
        for (before, after), count in verdict_changes.most_common()
    ]
    table = markdown_table(("was", "became", "changes"), rows, right={2})
    return [summary, table]


def _count_verdict_changes(settled_claims: Sequence[SettledClaim]) -> Counter[tuple[ClaimVerdict, ClaimVerdict]]:
    """Count how often each measured verdict was replaced by another; the keys are (old verdict, new verdict)."""
    changes: Counter[tuple[ClaimVerdict, ClaimVerdict]] = Counter()
    for settled_claim in settled_claims:
        verdicts = [*(earlier.verdict for earlier in settled_claim.claim.history), settled_claim.verdict]
        for before, after in pairwise(verdicts):
            if before in MEASURED_VERDICTS and after != before:
                changes[before, after] += 1
    return changes


def _history(claim: Claim) -> list[str]:
    """Return a Markdown list of the claim's earlier conditions, as one paragraph; no paragraph without them."""
    if not claim.history:
        return []
    return ["\n".join(f"- {_describe_earlier_condition(earlier)}" for earlier in claim.history)]


def _replaced_results(claim: Claim) -> list[str]:
    """Return a heading and a Markdown list of the results that newer results replaced; no paragraphs without them."""
    if not claim.replaced:
        return []
    entries = []
    for replaced in claim.replaced:
        sentences = [escape(replaced.found), _git_command(replaced.result)]
        entries.append(f"- {replaced.measured:%Y-%m-%d}: {' '.join(filter(None, sentences))}")
    return ["Earlier measurements:", "\n".join(entries)]


def _git_command(result: str) -> str:
    """Return a sentence with the git command that shows `result` (COMMIT:PATH); empty if no result was kept."""
    return f"The result: `git show {result}/report.md`." if result else ""


def _describe_earlier_condition(earlier: Earlier) -> str:
    """Describe an earlier condition and why it was changed."""
    description = (
        f"Until {earlier.changed:%Y-%m-%d} the condition was this: {escape(earlier.asked)}. The verdict was "
        f"{VERDICT_NAMES[earlier.verdict]}: {escape(earlier.found)} It was changed because {escape(earlier.why)}"
    )
    return " ".join(filter(None, (description, _git_command(earlier.result))))

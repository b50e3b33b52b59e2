"""Write the page of the claims that no result decides, as Markdown. Pure."""

from collections.abc import Sequence

from accelbench.claims.articles import Articles
from accelbench.claims.page import links, quote_and_answer
from accelbench.claims.settle import SettledClaim
from accelbench.report.markdown import escape

INTRODUCTION = (
    "Some wait for a measurement or for hardware, some are of things that their article does not name, and some claim "
    "nothing that can be measured. [The others](../claims.md) have a result."
)


def page(settled_claims: Sequence[SettledClaim], articles: Articles) -> str:
    """Return the page as Markdown: for each claim its quote, why nothing decides it, and its conditions."""
    claims_by_row = {each.claim.row: each for each in settled_claims if not each.deciding_results}
    paragraphs = ["# Claims without a result that decides them", INTRODUCTION]
    for topic in articles.topics:
        topic_claims = [claims_by_row[row] for row in topic.rows if row in claims_by_row]
        if topic_claims:
            paragraphs.append(f"## {escape(topic.title)}")
        for settled_claim in topic_claims:
            paragraphs += _section(settled_claim)
    return "\n\n".join(paragraphs) + "\n"


def _section(settled_claim: SettledClaim) -> list[str]:
    """Return the paragraphs of one claim: quote, answer, why a verdict would be withheld, conditions and links."""
    paragraphs = [*quote_and_answer(settled_claim)]
    if settled_claim.withheld:
        paragraphs.append("\n".join(f"- {escape(sentence)}" for sentence in settled_claim.withheld))
    if settled_claim.conditions:
        paragraphs.append(escape(f"Asked: {'; '.join(settled_claim.conditions)}."))
    return [*paragraphs, links(settled_claim, "")]

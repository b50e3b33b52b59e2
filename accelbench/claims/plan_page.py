"""Write the page with what is measured next, for a quiet machine or a borrowed GPU. Pure."""

from collections.abc import Sequence

from accelbench.claims.answers import VERDICT_NAMES
from accelbench.claims.settle import SettledClaim
from accelbench.report.markdown import markdown_table


def page(settled_claims: Sequence[SettledClaim]) -> str:
    """Return the page as Markdown: each row that needs a new measurement, and which."""
    rows = [
        (
            str(settled_claim.claim.row),
            VERDICT_NAMES[settled_claim.verdict],
            " or ".join(settled_claim.claim.hardware),
            settled_claim.claim.to_measure,
        )
        for settled_claim in settled_claims
        if settled_claim.claim.to_measure
    ]
    paragraphs = ["# Claims: what is measured next", f"{len(rows)} rows need a new measurement, on an idle machine."]
    if rows:
        paragraphs.append(
            markdown_table(("row", "verdict today", "hardware", "what is to be measured"), rows, right={0})
        )
    if commands := _commands(settled_claims):
        paragraphs += [
            "Manifests that decide these rows, or answer a question of ours, have no result yet. In a checkout:",
            commands,
            "`--beside` also runs the manifests that decide nothing. Then read each row's answer beside its results.",
        ]
    return "\n\n".join(paragraphs) + "\n"


def _commands(settled_claims: Sequence[SettledClaim]) -> str:
    """Return the command for each row with a manifest to run, a line each, as a block of Markdown."""
    return "\n".join(
        f"    accelbench claims run --results docs/results/claims --rows {settled_claim.claim.row}"
        f"  # {', '.join(settled_claim.manifests_to_run)}"
        for settled_claim in settled_claims
        if settled_claim.manifests_to_run
    )

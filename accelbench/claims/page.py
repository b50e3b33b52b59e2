"""The claims with their verdicts, as one page of Markdown. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from accelbench.claims.ledger import ARTICLES, Claim, Hardware
from accelbench.claims.settle import ClaimVerdict, Settled
from accelbench.report.markdown import escaped, markdown_table

NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}

HOW = """A verdict is derived from the expectations of the claim's manifest: `confirmed` where a valid measurement meets
all of them, `refuted` where one contradicts any, `inconclusive` where an interval has a bound inside
it, where too few rounds were measured, or where a check failed;
`untestable-here` where other hardware is needed. A claim about a whole suite is a geometric mean over the results of
several manifests. To check them on your own machine:"""


def page(settled: Sequence[Settled], *, here: Hardware, results: str) -> str:
    """The whole page; `results` is the directory of the results, as a link from it."""
    counts = Counter(each.verdict for each in settled)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in get_args(ClaimVerdict) if counts[verdict])
    parts = [
        "# What the articles claim, and what came out",
        f"{len(settled)} claims on {NAMES[here]}: {said}. {HOW}",
        "    accelbench claims run --rows 2,3\n    accelbench claims report",
        markdown_table(
            ("row", "article", "claim", "verdict"),
            [
                (f"[{each.claim.row}](#row-{each.claim.row})", each.claim.article, each.claim.words, each.verdict)
                for each in settled
            ],
            right={0},
        ),
    ]
    for each in settled:
        parts += _section(each, results)
    return "\n\n".join(parts) + "\n"


def _section(settled: Settled, results: str) -> list[str]:
    claim = settled.claim
    corrected = claim.corrected if settled.verdict != "not-run" else ""
    parts = [
        f"## Row {claim.row}",
        f"{escaped(claim.words)} ({claim.article}, {ARTICLES[claim.article]})",
        f"**{settled.verdict}**" + (f". {escaped(corrected)}" if corrected else ""),
    ]
    if settled.found:
        parts.append("\n".join(f"- {escaped(sentence)}" for sentence in settled.found))
    parts.append(f"Confirmed {escaped(claim.confirms)}; refuted {escaped(claim.refutes)}.")
    manifests = _links(claim, "manifest", "../examples/claims", ".yaml")
    if settled.hardware:
        measured = f"{escaped(settled.hardware)}. {escaped(settled.certificate)}."
        reports = _links(claim, "Results and certificate", results, "/report.md")
        parts.append(f"{measured} {reports}, {manifests}.")
    elif settled.verdict == "untestable-here":
        needed = " or ".join(NAMES[each] for each in claim.hardware)
        parts.append(f"Needs {needed}; {manifests}.")
    return parts


def _links(claim: Claim, words: str, directory: str, ending: str) -> str:
    """One for each of the claim's manifests; several are numbered."""
    numbers = [f" {number}" for number in range(1, len(claim.names) + 1)] if len(claim.names) > 1 else [""]
    return ", ".join(
        f"[{words}{number}]({directory}/{name}{ending})" for number, name in zip(numbers, claim.names, strict=True)
    )

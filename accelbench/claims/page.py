"""The claims with their verdicts, as one page of Markdown. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from accelbench.claims.ledger import ARTICLES, Hardware
from accelbench.claims.settle import ClaimVerdict, Settled
from accelbench.report.markdown import escaped, markdown_table

NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}

HOW = """A verdict is derived from the expectations of the claim's manifest: `confirmed` where a valid measurement meets
all of them, `refuted` where one contradicts any, `inconclusive` where the interval of a comparison holds both, too few
rounds were measured or a check failed; a time by itself has no interval, and its median decides;
`untestable-here` where other hardware is needed. Check them on your own:"""


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
    parts = [
        f"## Row {claim.row}",
        f"{escaped(claim.words)} ({claim.article}, {ARTICLES[claim.article]})",
        f"**{settled.verdict}**" + (f". {escaped(claim.corrected)}" if claim.corrected else ""),
    ]
    if settled.found:
        parts.append("\n".join(f"- {escaped(sentence)}" for sentence in settled.found))
    parts.append(f"Confirmed {escaped(claim.confirms)}; refuted {escaped(claim.refutes)}.")
    manifest = f"[manifest](../examples/claims/{claim.manifest})"
    if settled.hardware:
        measured = f"{escaped(settled.hardware)}. {escaped(settled.certificate)}."
        parts.append(f"{measured} [Results and certificate]({results}/{claim.name}/report.md), {manifest}.")
    elif settled.verdict == "untestable-here":
        needed = " or ".join(NAMES[each] for each in claim.hardware)
        parts.append(f"Needs {needed}; {manifest}.")
    return parts

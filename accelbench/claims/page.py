"""The claims with their verdicts, as one page of Markdown for someone who has read none of the articles. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import get_args

from accelbench import figures
from accelbench.api.numbers import NUMBERS
from accelbench.api.result import Result
from accelbench.claims import tables, warnings
from accelbench.claims.ledger import ARTICLES, LEFT_OUT, Claim, ClaimVerdict, Earlier, Hardware
from accelbench.claims.settle import MeasuredRun, Settled
from accelbench.claims.words import plainly
from accelbench.report import machine
from accelbench.report.markdown import Written, escaped, markdown_table

NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}
SAID: dict[ClaimVerdict, str] = {
    "confirmed": "a valid measurement, or a compiled program, meets every condition of the claim",
    "refuted": "a valid measurement, or a compiled program, contradicts at least one condition of it",
    "inconclusive": "an interval has a bound inside it, too few rounds were measured, or a check failed",
    "measured": "the question is ours, and no article answers it: the numbers stand, and there is no verdict",
    "not-measured-yet": "what confirms and refutes it is written down, and the measurement is still to come",
    "untestable-here": (
        "it needs other hardware, or a machine that nobody names; "
        "what was found here stands beside, and decides nothing"
    ),
}
COMPILED = (
    "Nothing ran: XLA compiled the program for a device that is not here. For a GPU kernels and bytes are estimates, "
    "as nothing was tuned."
)
WORDS = (
    ("eager", "PyTorch as it comes: every operation runs when Python reaches it."),
    ("compile", "`torch.compile`: PyTorch's compiler."),
    ("op-by-op", "JAX without `jit`. Each operation is compiled by itself, when it first comes up, and then called."),
    ("jit", "`jax.jit`: JAX traces a whole function and compiles it with XLA, for each shape and type of argument."),
    ("scan", "`jax.lax.scan`: a loop inside the compiled program, its body compiled once."),
    ("donated", "The old array is given away (`donate_argnums`), so that the new one can take its memory."),
    ("baseline", "What the others are held against. 1.9 times as fast: it takes 1/1.9 of the baseline's time."),
    ("(1.6 to 2.2)", "The interval in which a ratio lies. The confidence, 95 %, is for all ratios of a run together."),
    ("first call", "What compiling and the first call take in a new process; all later calls are the time beside it."),
    ("compiled for", COMPILED),
    ("kernel", "What a device runs in one go. Operations that are fused are one kernel."),
    ("temporary", "Memory for what is neither argument nor result, such as copies."),
)
HOW = (
    "A verdict follows from what the file expects and from what was measured; nobody writes it by hand. The comment "
    "beside it was written for that verdict: where a new measurement changes the verdict, the comment disappears."
)
FULL, CHECKED = 60, 600
"""Seconds by which the claims to check are counted: a minute, ten minutes."""


def page(settled: Sequence[Settled], *, here: Hardware, results: str) -> str:
    """The whole page; `results` is the directory of the results, as a link from it."""
    cited = {each.claim.article for each in settled}
    parts = [
        "# What articles claim about JAX and PyTorch, and what came out",
        f"{len(settled)} claims, each a file that anybody can run. {HOW}",
        _verdicts(settled),
        _machines(settled, here),
        "## How to check one",
        _checking(settled),
        "## Words",
        "\n".join(f"- **{name}**: {escaped(title)}." for name, title in ARTICLES.items() if name in cited),
        "\n".join([*(f"- **{name}**: {meaning}" for name, meaning in WORDS), *_metrics(settled)]),
        "## All of them",
        markdown_table(
            ("row", "what is asked", "article", "verdict"),
            [(_to_row(each.claim), each.claim.asks, each.claim.article, _named(each.verdict)) for each in settled],
            right={0},
        ),
    ]
    several = len(_processors(result for each in settled for result in _results(each))) > 1
    for each in settled:
        parts += _section(each, results, several=several)
    return "\n\n".join(parts) + "\n"


def _named(verdict: ClaimVerdict) -> str:
    return verdict.replace("-", " ")


def _verdicts(settled: Sequence[Settled]) -> str:
    counts = Counter(each.verdict for each in settled)
    rows = [(str(counts[verdict]), _named(verdict), SAID[verdict]) for verdict in get_args(ClaimVerdict)]
    table = markdown_table(("claims", "verdict", "what it means"), rows, right={0})
    changed = sum(bool(each.claim.history) for each in settled)
    if not changed:
        return table
    before = f"{changed} of them were held to other conditions before."
    return f"{table}\n\n{before} Each says what they were, what came out then, and why they were changed."


def _metrics(settled: Sequence[Settled]) -> list[str]:
    """What claims were held to, by the names that stand in their files."""
    asked = [each for one in settled for each in one.claim.expectations]
    asked += [each.expectation for one in settled for run in one.runs for _, found in run.measured for each in found]
    names = dict.fromkeys(each.metric for each in asked if each.metric)
    return [f"- **{name}**: {escaped(NUMBERS[name].meaning)}" for name in sorted(names)]


def _machines(settled: Sequence[Settled], here: Hardware) -> str:
    """Each machine once, with all versions: the longest of its lines."""
    ran = [result for each in settled for result in _results(each) if not result.compiled]
    compiled = {result.case.accelerator.target for each in settled for result in _results(each) if result.compiled}
    said = f"This page is about {NAMES[here]}."
    for processor in _processors(ran):
        lines = (machine.line(result.fingerprint) for result in ran if result.fingerprint.get("cpu", "") == processor)
        said += f" Measured on: {max(lines, key=len)}."
    if compiled:
        targets = figures.listed(sorted(str(target) for target in compiled))
        said += f" Compiled without the device for: {targets}."
    return escaped(said)


def _results(settled: Settled) -> Iterable[Result]:
    return (result for run in (*settled.runs, *settled.beside) for result in run.results)


def _checking(settled: Sequence[Settled]) -> str:
    took = {
        run.name: sum(float(result.overhead.get("total", 0)) for result in run.results)
        for each in settled
        for run in each.runs
    }
    alone = [sum(took[run.name] for run in each.runs) for each in settled if each.runs and not each.waiting]
    quick, whole = sum(each <= FULL for each in alone), sum(each <= CHECKED for each in alone)
    all_of_them = figures.duration(sum(took.values()))
    older = {run.name for each in settled for run in (*each.runs, *each.beside) if run.older}
    marked = f" {len(older)} results are of older sources of their workloads, and marked so." if older else ""
    return (
        f"{len(alone)} of the {len(settled)} have a result that one command checks. On the machine above {quick} took "
        f"under a minute each, {whole} under ten minutes, and all together {all_of_them}. Compiling for a GPU or a TPU "
        f"needs neither, only packages: `pip install 'accelbench[targets-gpu,targets-tpu]'`.{marked}\n\n"
        "    accelbench claims run --rows 17\n    accelbench claims report --rows 17"
    )


def _to_row(claim: Claim) -> Written:
    return Written(f"[{claim.row}](#row-{claim.row})")


def _processors(results: Iterable[Result]) -> dict[str, None]:
    """The names of those that something was measured on."""
    return {result.fingerprint.get("cpu", ""): None for result in results if not result.compiled}


def _section(settled: Settled, results: str, *, several: bool) -> list[str]:
    """One claim; with `several` machines on the page it says which was its."""
    claim = settled.claim
    quote = claim.quote.replace(LEFT_OUT, " … ")
    parts = [
        f"## Row {claim.row}",
        f"**{escaped(claim.asks)}**",
        f"> {escaped(quote)} ({claim.article})",
        f"**{_named(settled.verdict)}.** {escaped(claim.answers.get(settled.verdict, ''))}".rstrip(),
    ]
    compared = frozenset(name for mean in claim.geometric_means for name in (mean.variant, mean.over))
    parts += tables.of(settled.runs, compared)
    if settled.beside:
        parts += ["Beside it, deciding nothing:", *tables.of(settled.beside, compared)]
    if settled.findings:
        parts.append("\n".join(f"- {escaped(plainly(sentence))}" for sentence in settled.found))
    parts += [*_rule(claim), *_doubts(settled), *_history(claim, results)]
    where = figures.listed(tuple(_processors(_results(settled)))) if several else ""
    parts.append(" ".join(filter(None, [escaped(f"Measured on: {where}.") if where else "", _links(settled, results)])))
    return parts


def _rule(claim: Claim) -> list[str]:
    said = []
    if claim.corrected:
        said.append(escaped(claim.corrected))
    if not claim.own:
        said.append(f"Confirmed {escaped(claim.confirms)}; refuted {escaped(claim.refutes)}.")
    if claim.machine:
        said.append(f"A time is claimed of one machine ({escaped(claim.machine)}), and no other can settle it.")
    return said


def _doubts(settled: Settled) -> list[str]:
    """What to know before the numbers are believed: older sources, younger bounds, warnings, what is still to come."""
    runs = (*settled.runs, *settled.beside)
    said = [
        f"Measured {_day(run)} with an older source of its workload ({run.name}): to be measured again."
        for run in runs
        if run.older
    ]
    said += [
        f"Its conditions were changed after the result of {_day(run)} ({run.name}) was known: see below what they were."
        for run in settled.runs
        if run.bounds_changed
    ]
    said += [f"Warning: {each}" for each in warnings.of(runs)]
    said += [f"Still to be measured: {name}." for name in settled.waiting]
    return ["\n".join(f"- {escaped(each)}" for each in said)] if said else []


def _day(run: MeasuredRun) -> str:
    return max((measured(result).date().isoformat() for result in run.results), default="")


def measured(result: Result) -> datetime:
    """When its last launch ended."""
    return datetime.fromisoformat(result.finished)


def _history(claim: Claim, results: str) -> list[str]:
    if not claim.history:
        return []
    entries = [f"- {_earlier(each, results)}" for each in claim.history]
    return ["What it was held to before:", "\n".join(entries)]


def _earlier(earlier: Earlier, results: str) -> str:
    there = results.rpartition("/")[0]
    link = f" [The result as it was]({there}/{earlier.result})." if earlier.result else ""
    return (
        f"Until {earlier.changed} it was to be confirmed {escaped(earlier.asked)}, and was {_named(earlier.verdict)}: "
        f"{escaped(earlier.found)} That changed because {escaped(earlier.why)}{link}"
    )


def _links(settled: Settled, results: str) -> str:
    """Results with what was checked, then the manifests; several are numbered."""
    runs = (*settled.runs, *settled.beside)
    there = results.rpartition("/")[0]
    said = []
    for run in runs:
        compiled = any(result.compiled for result in run.results)
        where = f"{there}/targets" if compiled else results
        said.append(f"[{run.name}]({where}/{run.name}/report.md)")
    asked = [f"[{name}](../examples/claims/{name}.yaml)" for name in settled.claim.names]
    found = f"Results with their certificates: {', '.join(said)}. " if said else ""
    return f"{found}To run: {', '.join(asked)}."

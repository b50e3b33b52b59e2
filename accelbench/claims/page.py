"""The claims with their verdicts, as one page of Markdown for someone who has read none of the articles. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import get_args

from accelbench import figures
from accelbench.api.result import Result
from accelbench.claims import glossary, tables, warnings
from accelbench.claims.articles import Article, Articles
from accelbench.claims.ledger import LEFT_OUT, UNNAMED, Claim, ClaimVerdict, Earlier, Hardware
from accelbench.claims.settle import CLASSES, MeasuredRun, Settled, class_of
from accelbench.claims.words import measured_on, plainly
from accelbench.report import machine
from accelbench.report.markdown import Written, escaped, markdown_table

NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}
SAID: dict[ClaimVerdict, str] = {
    "confirmed": "a valid measurement, or a compiled program, meets every condition of the claim",
    "refuted": "a valid measurement, or a compiled program, contradicts at least one condition of it",
    "inconclusive": (
        "an interval has a bound inside it, too few rounds were measured, or a check failed; or an article says that "
        "something can happen, and what was measured is no example of it"
    ),
    "measured": "the question is ours, and no article makes a claim about it: there are numbers, but no verdict",
    "not-measured-yet": "its conditions are written down, but nothing has been measured yet",
    "untestable-here": (
        "it needs hardware that we did not have, or had to give back before the measurement ended; what was measured "
        "is shown, but decides nothing"
    ),
    "untestable-anywhere": (
        "the article gives seconds on a machine that it does not name, so nothing can settle it; what was measured "
        "here is shown"
    ),
}
KNOWN: tuple[ClaimVerdict, ...] = ("confirmed", "refuted", "inconclusive")
"""Verdicts that something was measured for."""
HOW = (
    "A verdict follows from the files' conditions and from the measurement; nobody writes it by hand. Each comment was "
    "written for one verdict, and disappears if a new measurement changes that verdict; one that was written for older "
    "numbers says so. Where an article says that something can happen, one example confirms it, and nothing refutes it."
)
LIBRARIES = {"flax": "Flax", "optax": "Optax", "orbax": "Orbax"}
OUTDATED = "Written for an earlier measurement; its numbers may not be those below."
FULL, CHECKED = 60, 600
"""Seconds by which the claims to check are counted: a minute, ten minutes."""


def page(
    settled: Sequence[Settled],
    articles: Articles,
    *,
    here: Hardware,
    results: str,
    pictures: Mapping[int, tuple[str, str]] | None = None,
) -> str:
    """The whole page; `results` is the directory of all results, as a link from it.

    `pictures`, by row: the file's name, in `pictures` in that directory, and what it shows.
    """
    cited = {each.claim.article for each in settled}
    parts = [
        "# What articles claim about JAX and PyTorch, and what came out",
        f"{_rows(settled)} Each names the files that test it, and anybody can run them. {HOW}",
        _verdicts(settled),
        articles.chosen,
        *_machines(settled, here),
        "## How to check one",
        _checking(settled),
        "## The articles",
        "\n".join(f"- **{each.name}**: {_by_whom(each)}" for each in articles.articles),
        "## Words",
        glossary.words(settled),
        "[The end of the page](#workloads) says what each workload computes and what its parameters mean.",
        "## All of them",
        markdown_table(
            ("row", "what is asked", "article", "verdict", "measured with"),
            [
                (_to_row(each.claim), each.claim.asks, each.claim.article, _named(each.verdict), _source(each))
                for each in settled
            ],
            right={0},
        ),
    ]
    several = _several(result for each in settled for result in _results(each))
    for each in settled:
        parts += _section(each, results, (pictures or {}).get(each.claim.row), several=several)
    if mistakes := [each for each in articles.mistakes if each.article in cited]:
        parts += [
            "## What else is wrong in the articles' code",
            "No row asks for a verdict on these. The exceptions were seen with JAX 0.10.2.",
            markdown_table(
                ("article", "what it says", "what is so"),
                [(each.article, each.said, each.shown) for each in mistakes],
                right=set(),
            ),
        ]
    parts += ["## Workloads", glossary.of_workloads(result for each in settled for result in _results(each))]
    return "\n\n".join(parts) + "\n"


def _rows(settled: Sequence[Settled]) -> str:
    own = sum(each.claim.own for each in settled)
    rows = f"{len(settled)} row{'s' * (len(settled) != 1)}"
    if not own:
        return f"{rows}, each a claim of an article."
    return (
        f"{rows}: {len(settled) - own} are claims of articles, and {own} are questions of our own about what they say."
    )


def _source(settled: Settled) -> str:
    """Whether the programs that decided are those of today."""
    if not settled.runs:
        return ""
    return "an older source" if any(run.older for run in settled.runs) else "today's source"


def _named(verdict: ClaimVerdict) -> str:
    return verdict.replace("-", " ")


def _by_whom(article: Article) -> str:
    said = escaped(article.title)
    if article.link:
        said = f"[{said}]({article.link})"
    author = f"By {escaped(article.author)}" if article.author else "No author is given"
    return f"{said}. {author}; {article.published or 'no date is given'}."


def _verdicts(settled: Sequence[Settled]) -> str:
    counts = Counter(each.verdict for each in settled)
    rows = [(str(counts[verdict]), _named(verdict), SAID[verdict]) for verdict in get_args(ClaimVerdict)]
    table = markdown_table(("rows", "verdict", "what it means"), rows, right={0})
    return "\n\n".join([table, *_changes([each for each in settled if each.claim.history])])


def _changes(changed: Sequence[Settled]) -> list[str]:
    """How many were held to something else before, and what became of verdicts that were known."""
    if not changed:
        return []
    turns: Counter[tuple[ClaimVerdict, ClaimVerdict]] = Counter()
    for each in changed:
        verdicts = [*(earlier.verdict for earlier in each.claim.history), each.verdict]
        turns.update((before, after) for before, after in pairwise(verdicts) if before in KNOWN and after != before)
    entries = sum(len(each.claim.history) for each in changed)
    said = (
        f"{len(changed)} of them had other conditions before, with {entries} changes in all. Each says what the "
        "conditions were, what the verdict was, and why they were changed."
    )
    if turns:
        said += (
            f" {turns.total()} of the changes replaced a verdict that something was measured for. What it became is "
            "the next verdict on record, which may come from a new measurement."
        )
        rows = [(_named(before), _named(after), str(count)) for (before, after), count in turns.most_common()]
        return [said, _folded("Verdicts that changed", markdown_table(("was", "became", "changes"), rows, right={2}))]
    return [said]


def _folded(summary: str, text: str) -> str:
    """A forge folds it, and so does the site."""
    return f'<details markdown="1"><summary>{summary}</summary>\n\n{text}\n\n</details>'


def _machines(settled: Sequence[Settled], here: Hardware) -> list[str]:
    """Paragraphs that name each machine once, with all versions: the longest of its lines."""
    ran = [result for each in settled for result in _results(each) if not result.compiled]
    compiled = {result.case.accelerator.target for each in settled for result in _results(each) if result.compiled}
    found = []
    for device in _devices(ran):
        there = [result for result in ran if _device(result) == device]
        found.append(escaped(f"{max((machine.line(each.fingerprint) for each in there), key=len)}{_libraries(there)}"))
    parts = [f"Times are of {NAMES[here]}. Measured on: {found[0]}."] if len(found) == 1 else []
    if len(found) > 1:
        machines = "\n".join(f"- {each}" for each in found)
        parts = [f"Times come from {len(found)} machines, and each row says from which:", machines]
    if compiled:
        targets = figures.listed(sorted(str(target) for target in compiled))
        parts.append(escaped(f"Programs were also compiled, without the device, for: {targets}."))
    return parts


def _libraries(results: Iterable[Result]) -> str:
    """The versions of what is built on the frameworks."""
    found: dict[str, str] = {}
    for result in results:
        found |= {name: told for name in LIBRARIES if (told := result.fingerprint.get(f"version.{name}", ""))}
    known = {name: version for name, version in found.items() if version not in {"", "unknown"}}
    return "".join(f", {LIBRARIES[name]} {version}" for name, version in known.items())


def _results(settled: Settled) -> Iterable[Result]:
    return (result for run in (*settled.runs, *settled.beside) for result in run.results)


def _checking(settled: Sequence[Settled]) -> str:
    took = {
        run.name: sum(float(result.overhead.get("total", 0)) for result in run.results)
        for each in settled
        for run in each.runs
    }
    settled_here = [each for each in settled if each.runs and not each.waiting]
    whole_rows = [each for each in settled_here if not each.verdict.startswith("untestable")]
    partly = [f"row {each.claim.row}" for each in settled_here if each not in whole_rows]
    alone = [sum(took[run.name] for run in each.runs) for each in whole_rows]
    in_part = f", and {figures.listed(partly)} in part" if partly else ""
    machines = "machines" if _several(result for each in settled for result in _results(each)) else "machine"
    quick, whole = sum(each <= FULL for each in alone), sum(each <= CHECKED for each in alone)
    all_of_them = figures.duration(sum(took.values()))
    older = {run.name for each in settled for run in (*each.runs, *each.beside) if run.older}
    several = f"{len(older)} results were measured with older versions of their programs, and are marked."
    one = "1 result was measured with an older version of its program, and is marked."
    marked = f" {one if len(older) == 1 else several}" if older else ""
    return (
        "In a checkout, `pip install '.[jax,torch]'` installs what a check needs, and `.[targets-gpu,targets-tpu]` "
        "the compilers for GPUs and TPUs, which need neither. Anybody with the hardware can check a row with one "
        f"command. We did so for {len(alone)} of the {len(settled)}{in_part}; for the others we did not have the "
        f"hardware, or no machine can settle them. On the {machines} above, {quick} of them took less than a minute, "
        f"and {whole} less than ten minutes, those included; all together took {all_of_them}.{marked}\n\n"
        "    accelbench claims run --rows 17\n    accelbench claims report --rows 17"
    )


def _to_row(claim: Claim) -> Written:
    return Written(f"[{claim.row}](#row-{claim.row})")


def _devices(results: Iterable[Result]) -> dict[str, None]:
    """The names of those that something was measured on."""
    return {_device(result): None for result in results if not result.compiled}


def _device(result: Result) -> str:
    if result.case.accelerator.platform != "cpu":
        return measured_on(result)
    # Virtual machines give several models one name.
    processor, vectors = result.fingerprint.get("cpu", ""), result.fingerprint.get("cpuVectors", "")
    return f"{processor} ({vectors.rpartition(', ')[2]})" if vectors else processor


def _several(results: Iterable[Result]) -> bool:
    """Whether something was measured on more than one of them."""
    return len(_devices(results)) > 1


def _section(settled: Settled, results: str, picture: tuple[str, str] | None, *, several: bool) -> list[str]:
    """One claim; with `several` machines on the page it says which was its."""
    claim = settled.claim
    quote = claim.quote.replace(LEFT_OUT, " … ")
    parts = [
        f"## Row {claim.row}",
        f"**{escaped(claim.asks)}**",
        f"> {escaped(quote)} ({claim.article})",
        f"**{_named(settled.verdict)}.** {_answer(settled)}".rstrip(),
    ]
    if picture:
        name, shows = picture
        parts.append(f"![{escaped(shows)}]({results}/pictures/{name})")
    parts += tables.of(settled.runs, claim)
    if settled.beside:
        parts += ["Also measured, deciding nothing:", *tables.of(settled.beside, claim)]
    if settled.findings:
        parts.append("\n".join(f"- {escaped(plainly(sentence))}" for sentence in settled.found))
    parts += [*_rule(settled), *_doubts(settled), *_history(claim), *_replaced(claim)]
    where = figures.listed(tuple(_devices(_results(settled)))) if several else ""
    parts.append(" ".join(filter(None, [escaped(f"Measured on: {where}.") if where else "", _links(settled, results)])))
    return parts


def _answer(settled: Settled) -> str:
    """What was written of the verdict; of other numbers than these, where there are younger ones."""
    claim = settled.claim
    said = escaped(claim.answers.get(settled.verdict, ""))
    younger = any(measured(result).date() > claim.written for result in _results(settled))
    return f"({OUTDATED}) {said}" if said and younger else said


def _rule(settled: Settled) -> list[str]:
    claim, said = settled.claim, []
    if claim.corrected:
        said.append(escaped(claim.corrected))
    if not claim.own:
        said.append(f"Confirmed {escaped(claim.confirms)}; refuted {escaped(claim.refutes)}.")
    said.append(_settled_on(settled))
    return said


def _settled_on(settled: Settled) -> str:
    claim = settled.claim
    if claim.machine == UNNAMED:
        return "The article gives a time on a machine that it does not name, so nothing can settle it."
    if claim.machine:
        return f"The article gives a time on one machine ({escaped(claim.machine)}), and no other can settle it."
    asked = f"Asked of: {figures.listed([NAMES[each] for each in claim.hardware])}."
    seen = {_class(result) for result in _results(settled)}
    unseen = [NAMES[each] for each in claim.hardware if each not in seen]
    return f"{asked} There is no result for {figures.listed(unseen)}." if seen and unseen else asked


def _class(result: Result) -> Hardware | None:
    """The class of hardware that it was measured on, or compiled for."""
    there = result.case.accelerator
    return class_of(there.target) if there.target else CLASSES.get(there.platform)


def _doubts(settled: Settled) -> list[str]:
    """What to know before the numbers are believed: older sources, younger bounds, warnings, what is still to come."""
    runs = (*settled.runs, *settled.beside)
    said = [
        f"Measured {_day(run)} with an older source of its workload ({run.name}): to be measured again."
        for run in runs
        if run.older
    ]
    said += [
        f"The conditions changed after the result of {_day(run)} ({run.name}) was measured; earlier conditions are "
        "below."
        for run in settled.runs
        if run.bounds_changed
    ]
    said += [f"Warning: {each}" for each in warnings.of(runs, settled.claim.compared)]
    said += [f"Still to be measured: {name}." for name in settled.waiting]
    return ["\n".join(f"- {escaped(each)}" for each in said)] if said else []


def _day(run: MeasuredRun) -> str:
    return max((measured(result).date().isoformat() for result in run.results), default="")


def measured(result: Result) -> datetime:
    """When its last launch ended."""
    return datetime.fromisoformat(result.finished)


def _history(claim: Claim) -> list[str]:
    if not claim.history:
        return []
    entries = [f"- {_earlier(each)}" for each in claim.history]
    return [_folded("Earlier conditions", "\n".join(entries))]


def _replaced(claim: Claim) -> list[str]:
    """List the results that newer ones replaced, as the ledger records them."""
    if not claim.replaced:
        return []
    entries = [
        f"- {each.measured}:{f' {escaped(each.found)}' * bool(each.found)}{_in_git(each.result)}"
        for each in claim.replaced
    ]
    return [_folded("Earlier measurements", "\n".join(entries))]


def _in_git(result: str) -> str:
    return f" The result: `git show {result}/report.md`." if result else ""


def _earlier(earlier: Earlier) -> str:
    return (
        f"Until {earlier.changed:%Y-%m-%d} the condition was this: {escaped(earlier.asked)}. The verdict was "
        f"{_named(earlier.verdict)}: {escaped(earlier.found)} It was changed because {escaped(earlier.why)}"
        f"{_in_git(earlier.result)}"
    )


def _links(settled: Settled, results: str) -> str:
    """Results with what was checked, then the manifests; several are numbered."""
    runs = (*settled.runs, *settled.beside)
    said = [f"[{run.name}]({results}/{run.where}/{run.name}/report.md)" for run in runs]
    asked = [f"[{name}](../examples/claims/{name}.yaml)" for name in settled.claim.names]
    found = f"Results with their certificates: {', '.join(said)}. " if said else ""
    return f"{found}To run: {', '.join(asked)}."

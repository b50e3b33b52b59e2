"""Write the claims with their verdicts as a page of Markdown, for readers who know none of the articles. Pure."""

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
from accelbench.claims.words import measured_on, simplify_sentence
from accelbench.report import machine
from accelbench.report.markdown import RawMarkdown, escaped, markdown_table

NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}
VERDICT_MEANINGS: dict[ClaimVerdict, str] = {
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
MEASURED_VERDICTS: tuple[ClaimVerdict, ...] = ("confirmed", "refuted", "inconclusive")
"""Verdicts that rest on a measurement."""
HOW = (
    "A verdict follows from the files' conditions and from the measurement; none is written by hand. Each comment was "
    "written for one verdict, and disappears if a new measurement changes that verdict; one that was written for older "
    "numbers says so. Where an article says that something can happen, one example confirms it, and nothing refutes it."
)
LIBRARIES = {"flax": "Flax", "optax": "Optax", "orbax": "Orbax"}
OUTDATED = "Written for an earlier measurement; its numbers may not be those below."
A_MINUTE, TEN_MINUTES = 60, 600
"""Seconds by which the quick rows are counted: one minute and ten minutes."""


def page(
    settled: Sequence[Settled],
    articles: Articles,
    *,
    here: Hardware,
    results: str,
    pictures: Mapping[int, tuple[str, str]] | None = None,
) -> str:
    """Return the page; `results` is the link from it to the directory of all results.

    `pictures`, by row: the file's name in `pictures` of that directory, and its description.
    """
    cited = {row.claim.article for row in settled}
    parts = [
        "# What articles claim about JAX and PyTorch, and what came out",
        f"{_count_rows(settled)} Each names the files that test it, and anybody can run them. {HOW}",
        _verdicts(settled),
        articles.chosen,
        *_machines(settled, here),
        "## How to check one",
        _how_to_check(settled),
        "## The articles",
        "\n".join(f"- **{article.name}**: {_citation(article)}" for article in articles.articles),
        "## Words",
        glossary.words(settled),
        "[The end of the page](#workloads) says what each workload computes and what its parameters mean.",
        "## All of them",
        markdown_table(
            ("row", "what is asked", "article", "verdict", "measured with"),
            [
                (
                    _row_link(row.claim),
                    row.claim.asks,
                    row.claim.article,
                    _verdict_text(row.verdict),
                    _age_of_source(row),
                )
                for row in settled
            ],
            right={0},
        ),
    ]
    several = _has_several_devices(result for row in settled for result in _results(row))
    for row in settled:
        parts += _section(row, results, (pictures or {}).get(row.claim.row), several=several)
    if mistakes := [mistake for mistake in articles.mistakes if mistake.article in cited]:
        parts += [
            "## What else is wrong in the articles' code",
            "No row asks for a verdict on these. The exceptions were seen with JAX 0.10.2.",
            markdown_table(
                ("article", "what it says", "what is so"),
                [(mistake.article, mistake.said, mistake.shown) for mistake in mistakes],
                right=set(),
            ),
        ]
    parts += ["## Workloads", glossary.of_workloads(result for row in settled for result in _results(row))]
    return "\n\n".join(parts) + "\n"


def _count_rows(settled: Sequence[Settled]) -> str:
    """Return how many rows are claims of articles, and how many are questions of our own."""
    own = sum(row.claim.own for row in settled)
    rows = f"{len(settled)} row{'s' * (len(settled) != 1)}"
    if not own:
        return f"{rows}, each a claim of an article."
    return (
        f"{rows}: {len(settled) - own} are claims of articles, and {own} are questions of our own about what they say."
    )


def _age_of_source(settled: Settled) -> str:
    """Return `today's source`, or `an older source` if a deciding result has one; empty without results."""
    if not settled.runs:
        return ""
    return "an older source" if any(run.older for run in settled.runs) else "today's source"


def _verdict_text(verdict: ClaimVerdict) -> str:
    return verdict.replace("-", " ")


def _citation(article: Article) -> str:
    """Return title with link, author and date of an article."""
    text = escaped(article.title)
    if article.link:
        text = f"[{text}]({article.link})"
    author = f"By {escaped(article.author)}" if article.author else "No author is given"
    return f"{text}. {author}; {article.published or 'no date is given'}."


def _verdicts(settled: Sequence[Settled]) -> str:
    """Return a table that counts the verdicts, and what changed of them."""
    counts = Counter(row.verdict for row in settled)
    rows = [
        (str(counts[verdict]), _verdict_text(verdict), VERDICT_MEANINGS[verdict]) for verdict in get_args(ClaimVerdict)
    ]
    table = markdown_table(("rows", "verdict", "what it means"), rows, right={0})
    return "\n\n".join([table, *_changes([row for row in settled if row.claim.history])])


def _changes(changed: Sequence[Settled]) -> list[str]:
    """Count the rows whose conditions changed, and the verdicts that changed with them."""
    if not changed:
        return []
    changes: Counter[tuple[ClaimVerdict, ClaimVerdict]] = Counter()
    for row in changed:
        verdicts = [*(earlier.verdict for earlier in row.claim.history), row.verdict]
        changes.update(
            (before, after) for before, after in pairwise(verdicts) if before in MEASURED_VERDICTS and after != before
        )
    entries = sum(len(row.claim.history) for row in changed)
    summary = (
        f"{len(changed)} of them had other conditions before, with {entries} changes in all. Each says what the "
        "conditions were, what the verdict was, and why they were changed."
    )
    if changes:
        summary += (
            f" {changes.total()} of the changes replaced a verdict that something was measured for. What it became is "
            "the next verdict on record, which may come from a new measurement."
        )
        rows = [
            (_verdict_text(before), _verdict_text(after), str(count))
            for (before, after), count in changes.most_common()
        ]
        return [
            summary,
            _details_section("Verdicts that changed", markdown_table(("was", "became", "changes"), rows, right={2})),
        ]
    return [summary]


def _details_section(summary: str, text: str) -> str:
    """Return a section that forges and the site fold."""
    return f'<details markdown="1"><summary>{summary}</summary>\n\n{text}\n\n</details>'


def _machines(settled: Sequence[Settled], here: Hardware) -> list[str]:
    """Return paragraphs that name each machine once, with the longest of its lines."""
    ran = [result for row in settled for result in _results(row) if not result.compiled]
    compiled = {result.case.accelerator.target for row in settled for result in _results(row) if result.compiled}
    lines = []
    for device in _devices(ran):
        of_device = [result for result in ran if _device(result) == device]
        lines.append(
            escaped(
                f"{max((machine.line(result.fingerprint) for result in of_device), key=len)}{_libraries(of_device)}"
            )
        )
    parts = [f"Times are of {NAMES[here]}. Measured on: {lines[0]}."] if len(lines) == 1 else []
    if len(lines) > 1:
        machines = "\n".join(f"- {line}" for line in lines)
        parts = [f"Times come from {len(lines)} machines, and each row says from which:", machines]
    if compiled:
        targets = figures.listed(sorted(str(target) for target in compiled))
        parts.append(escaped(f"Programs were also compiled, without the device, for: {targets}."))
    return parts


def _libraries(results: Iterable[Result]) -> str:
    """Return the versions of the frameworks' libraries."""
    versions: dict[str, str] = {}
    for result in results:
        versions |= {name: version for name in LIBRARIES if (version := result.fingerprint.get(f"version.{name}", ""))}
    known = {name: version for name, version in versions.items() if version not in {"", "unknown"}}
    return "".join(f", {LIBRARIES[name]} {version}" for name, version in known.items())


def _results(settled: Settled) -> Iterable[Result]:
    """Return the results of a claim, including those that decide nothing."""
    return (result for run in (*settled.runs, *settled.beside) for result in run.results)


def _how_to_check(settled: Sequence[Settled]) -> str:
    """Return how to check a row, and how long the recorded checks took."""
    seconds_by_run = {
        run.name: sum(float(result.overhead.get("total", 0)) for result in run.results)
        for row in settled
        for run in row.runs
    }
    settled_here = [row for row in settled if row.runs and not row.waiting]
    whole_rows = [row for row in settled_here if not row.verdict.startswith("untestable")]
    partial_rows = [f"row {row.claim.row}" for row in settled_here if row not in whole_rows]
    seconds_by_row = [sum(seconds_by_run[run.name] for run in row.runs) for row in whole_rows]
    in_part = f", and {figures.listed(partial_rows)} in part" if partial_rows else ""
    machines = "machines" if _has_several_devices(result for row in settled for result in _results(row)) else "machine"
    below_one = sum(seconds <= A_MINUTE for seconds in seconds_by_row)
    below_ten = sum(seconds <= TEN_MINUTES for seconds in seconds_by_row)
    all_of_them = figures.duration(sum(seconds_by_run.values()))
    older = {run.name for row in settled for run in (*row.runs, *row.beside) if run.older}
    several = f"{len(older)} results were measured with older versions of their programs, and are marked."
    one = "1 result was measured with an older version of its program, and is marked."
    marked = f" {one if len(older) == 1 else several}" if older else ""
    return (
        "In a checkout, `pip install '.[jax,torch]'` installs what a check needs, and `.[targets-gpu,targets-tpu]` "
        "the compilers for GPUs and TPUs, which need neither. Anybody with the hardware can check a row with one "
        f"command. We did so for {len(seconds_by_row)} of the {len(settled)}{in_part}; for the others we did not have "
        f"the hardware, or no machine can settle them. On the {machines} above, {below_one} of them took less than a "
        f"minute, and {below_ten} less than ten minutes, those included; all together took {all_of_them}.{marked}\n\n"
        "    accelbench claims run --rows 17\n    accelbench claims report --rows 17"
    )


def _row_link(claim: Claim) -> RawMarkdown:
    return RawMarkdown(f"[{claim.row}](#row-{claim.row})")


def _devices(results: Iterable[Result]) -> dict[str, None]:
    """Return the names of the measured devices, in order."""
    return {_device(result): None for result in results if not result.compiled}


def _device(result: Result) -> str:
    """Return the device's name; for a CPU, with the last of its vector extensions."""
    if result.case.accelerator.platform != "cpu":
        return measured_on(result)
    # Virtual machines can report the same name for models with different vector extensions.
    processor, vectors = result.fingerprint.get("cpu", ""), result.fingerprint.get("cpuVectors", "")
    return f"{processor} ({vectors.rpartition(', ')[2]})" if vectors else processor


def _has_several_devices(results: Iterable[Result]) -> bool:
    """Return True if results are of more than one device."""
    return len(_devices(results)) > 1


def _section(settled: Settled, results: str, picture: tuple[str, str] | None, *, several: bool) -> list[str]:
    """Return the section of one claim; if the page has `several` machines, it names the claim's."""
    claim = settled.claim
    quote = claim.quote.replace(LEFT_OUT, " … ")
    parts = [
        f"## Row {claim.row}",
        f"**{escaped(claim.asks)}**",
        f"> {escaped(quote)} ({claim.article})",
        f"**{_verdict_text(settled.verdict)}.** {_answer(settled)}".rstrip(),
    ]
    if picture:
        name, shows = picture
        parts.append(f"![{escaped(shows)}]({results}/pictures/{name})")
    parts += tables.of_runs(settled.runs, claim)
    if settled.beside:
        parts += ["Also measured, deciding nothing:", *tables.of_runs(settled.beside, claim)]
    if settled.findings:
        parts.append("\n".join(f"- {escaped(simplify_sentence(sentence))}" for sentence in settled.found))
    parts += [*_rule(settled), *_caveats(settled), *_history(claim), *_replaced_results(claim)]
    where = figures.listed(tuple(_devices(_results(settled)))) if several else ""
    parts.append(" ".join(filter(None, [escaped(f"Measured on: {where}.") if where else "", _links(settled, results)])))
    return parts


def _answer(settled: Settled) -> str:
    """Return the ledger's sentence for the verdict, marked if a result is newer than it."""
    claim = settled.claim
    sentence = escaped(claim.answers.get(settled.verdict, ""))
    has_newer_result = any(measured_at(result).date() > claim.written for result in _results(settled))
    return f"({OUTDATED}) {sentence}" if sentence and has_newer_result else sentence


def _rule(settled: Settled) -> list[str]:
    """Return the correction of the article, what confirms and refutes the claim, and on which hardware."""
    claim, paragraphs = settled.claim, []
    if claim.corrected:
        paragraphs.append(escaped(claim.corrected))
    if not claim.own:
        paragraphs.append(f"Confirmed {escaped(claim.confirms)}; refuted {escaped(claim.refutes)}.")
    paragraphs.append(_deciding_hardware(settled))
    return paragraphs


def _deciding_hardware(settled: Settled) -> str:
    """Return a sentence about the hardware that can settle the claim, and which of it has no result."""
    claim = settled.claim
    if claim.machine == UNNAMED:
        return "The article gives a time on a machine that it does not name, so nothing can settle it."
    if claim.machine:
        return f"The article gives a time on one machine ({escaped(claim.machine)}), and no other can settle it."
    asked = f"Asked of: {figures.listed([NAMES[kind] for kind in claim.hardware])}."
    seen = {_hardware_of(result) for result in _results(settled)}
    unseen = [NAMES[kind] for kind in claim.hardware if kind not in seen]
    return f"{asked} There is no result for {figures.listed(unseen)}." if seen and unseen else asked


def _hardware_of(result: Result) -> Hardware | None:
    """Return the class of hardware that the result was measured on or compiled for."""
    accelerator = result.case.accelerator
    return class_of(accelerator.target) if accelerator.target else CLASSES.get(accelerator.platform)


def _caveats(settled: Settled) -> list[str]:
    """List older sources, changed bounds, warnings and missing runs."""
    runs = (*settled.runs, *settled.beside)
    lines = [
        f"Measured {_day(run)} with an older source of its workload ({run.name}): to be measured again."
        for run in runs
        if run.older
    ]
    lines += [
        f"The conditions changed after the result of {_day(run)} ({run.name}) was measured; earlier conditions are "
        "below."
        for run in settled.runs
        if run.bounds_changed
    ]
    lines += [f"Warning: {warning}" for warning in warnings.collect(runs, settled.claim.compared)]
    lines += [f"Still to be measured: {name}." for name in settled.waiting]
    return ["\n".join(f"- {escaped(warning)}" for warning in lines)] if lines else []


def _day(run: MeasuredRun) -> str:
    """Return the day on which the run's last launch ended; empty without results."""
    return max((measured_at(result).date().isoformat() for result in run.results), default="")


def measured_at(result: Result) -> datetime:
    """Return when the result's last launch ended."""
    return datetime.fromisoformat(result.finished)


def _history(claim: Claim) -> list[str]:
    """List the claim's earlier conditions."""
    if not claim.history:
        return []
    entries = [f"- {_describe_earlier(earlier)}" for earlier in claim.history]
    return [_details_section("Earlier conditions", "\n".join(entries))]


def _replaced_results(claim: Claim) -> list[str]:
    """Return the section of results that newer ones replaced; empty if there are none."""
    if not claim.replaced:
        return []
    entries = [
        f"- {replaced.measured}: {escaped(replaced.found)}{_in_git(replaced.result)}".replace(":  ", ": ")
        for replaced in claim.replaced
    ]
    return [_details_section("Earlier measurements", "\n".join(entries))]


def _in_git(result: str) -> str:
    """Return the command that shows a result in git's history; empty without one."""
    return f" The result: `git show {result}/report.md`." if result else ""


def _describe_earlier(earlier: Earlier) -> str:
    """Return what the condition was, its verdict, and why it was changed."""
    return (
        f"Until {earlier.changed:%Y-%m-%d} the condition was this: {escaped(earlier.asked)}. The verdict was "
        f"{_verdict_text(earlier.verdict)}: {escaped(earlier.found)} It was changed because {escaped(earlier.why)}"
        f"{_in_git(earlier.result)}"
    )


def _links(settled: Settled, results: str) -> str:
    """Return a line of links: to the report of each run, then to the claim's manifests."""
    runs = (*settled.runs, *settled.beside)
    reports = [f"[{run.name}]({results}/{run.where}/{run.name}/report.md)" for run in runs]
    manifests = [f"[{name}](../examples/claims/{name}.yaml)" for name in settled.claim.names]
    results_text = f"Results with their certificates: {', '.join(reports)}. " if reports else ""
    return f"{results_text}To run: {', '.join(manifests)}."

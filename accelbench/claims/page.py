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
from accelbench.claims.pictures import PictureFile
from accelbench.claims.settle import HARDWARE_OF_PLATFORM, MeasuredRun, SettledClaim, hardware_of_target
from accelbench.claims.words import device_name, simplify_sentence
from accelbench.report import machine
from accelbench.report.markdown import RawMarkdown, escape, markdown_table

HARDWARE_NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}
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
"""Verdicts that need a measurement."""
HOW_VERDICTS_FOLLOW = (
    "A verdict follows from the files' conditions and from the measurement; none is written by hand. Each comment was "
    "written for one verdict, and disappears if a new measurement changes that verdict; one that was written for older "
    "numbers says so. Where an article says that something can happen, one example confirms it, and nothing refutes it."
)
LIBRARIES = {"flax": "Flax", "optax": "Optax", "orbax": "Orbax"}
OUTDATED = "Written for an earlier measurement; its numbers may not be those below."
ONE_MINUTE_SECONDS, TEN_MINUTES_SECONDS = 60, 600
"""Limits of time; the page counts the rows whose check took no longer."""


def page(
    settled_claims: Sequence[SettledClaim],
    articles: Articles,
    *,
    hardware: Hardware,
    results_link: str,
    pictures: Mapping[int, PictureFile] | None = None,
) -> str:
    """Return the page as Markdown.

    Args:
        settled_claims: The claims, in the order of the page.
        articles: The articles that the claims quote.
        hardware: The class of hardware of the results; the page names it if all are from one machine.
        results_link: The link from the page to the directory of all results.
        pictures: The picture of each row that has one, by row.
    """
    pictures = pictures or {}
    results = [result for settled_claim in settled_claims for result in _results(settled_claim)]
    introduction = f"{_row_count_text(settled_claims)} Each names the files that test it, and anybody can run them."
    paragraphs = [
        "# What articles claim about JAX and PyTorch, and what came out",
        f"{introduction} {HOW_VERDICTS_FOLLOW}",
        *_verdict_counts(settled_claims),
        articles.chosen,
        *_machines(results, hardware),
        "## How to check one",
        _how_to_check(settled_claims),
        "## The articles",
        "\n".join(f"- **{article.name}**: {_citation(article)}" for article in articles.articles),
        "## Words",
        glossary.list_terms(settled_claims),
        "[The end of the page](#workloads) says what each workload computes and what its parameters mean.",
        "## All of them",
        _overview_table(settled_claims),
    ]
    names_devices = _has_several_devices(results)
    for settled_claim in settled_claims:
        picture = pictures.get(settled_claim.claim.row)
        paragraphs += _claim_section(settled_claim, results_link, picture, names_devices=names_devices)
    paragraphs += _mistakes_section(settled_claims, articles)
    paragraphs += ["## Workloads", glossary.workloads_table(results)]
    return "\n\n".join(paragraphs) + "\n"


def _overview_table(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a table with a row for each claim."""
    rows = [
        (
            _row_link(settled_claim.claim),
            settled_claim.claim.asks,
            settled_claim.claim.article,
            _verdict_text(settled_claim.verdict),
            _measured_source(settled_claim),
        )
        for settled_claim in settled_claims
    ]
    return markdown_table(("row", "what is asked", "article", "verdict", "measured with"), rows, right={0})


def _mistakes_section(settled_claims: Sequence[SettledClaim], articles: Articles) -> list[str]:
    """Return the section on mistakes in the quoted articles that no claim asks about; nothing if there are none."""
    quoted_articles = {settled_claim.claim.article for settled_claim in settled_claims}
    rows = [
        (mistake.article, mistake.said, mistake.shown)
        for mistake in articles.mistakes
        if mistake.article in quoted_articles
    ]
    if not rows:
        return []
    return [
        "## What else is wrong in the articles' code",
        "No row asks for a verdict on these. The exceptions were seen with JAX 0.10.2.",
        markdown_table(("article", "what it says", "what is so"), rows, right=set()),
    ]


def _row_count_text(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a sentence that counts the rows."""
    row_count = len(settled_claims)
    # `own` marks a question of our own that no article answers.
    question_count = sum(settled_claim.claim.own for settled_claim in settled_claims)
    rows_text = "1 row" if row_count == 1 else f"{row_count} rows"
    if not question_count:
        return f"{rows_text}, each a claim of an article."
    return (
        f"{rows_text}: {row_count - question_count} are claims of articles, and {question_count} are questions of our "
        "own about what they say."
    )


def _measured_source(settled_claim: SettledClaim) -> str:
    """Return `today's source` or `an older source`, whichever the deciding runs measured; empty without such runs."""
    if not settled_claim.deciding_runs:
        return ""
    has_older_source = any(run.has_older_source for run in settled_claim.deciding_runs)
    return "an older source" if has_older_source else "today's source"


def _verdict_text(verdict: ClaimVerdict) -> str:
    return verdict.replace("-", " ")


def _citation(article: Article) -> str:
    """Return the article's title with its link, its author and its date."""
    text = escape(article.title)
    if article.link:
        text = f"[{text}]({article.link})"
    author = f"By {escape(article.author)}" if article.author else "No author is given"
    return f"{text}. {author}; {article.published or 'no date is given'}."


def _verdict_counts(settled_claims: Sequence[SettledClaim]) -> list[str]:
    """Return a table with the number of claims of each verdict, then paragraphs on changed conditions."""
    counts = Counter(settled_claim.verdict for settled_claim in settled_claims)
    rows = [
        (str(counts[verdict]), _verdict_text(verdict), VERDICT_MEANINGS[verdict]) for verdict in get_args(ClaimVerdict)
    ]
    table = markdown_table(("rows", "verdict", "what it means"), rows, right={0})
    return [table, *_changed_conditions(settled_claims)]


def _changed_conditions(settled_claims: Sequence[SettledClaim]) -> list[str]:
    """Return paragraphs that count changed conditions and changed verdicts."""
    changed_claims = [settled_claim for settled_claim in settled_claims if settled_claim.claim.history]
    if not changed_claims:
        return []
    entry_count = sum(len(settled_claim.claim.history) for settled_claim in changed_claims)
    summary = (
        f"{len(changed_claims)} of them had other conditions before, with {entry_count} changes in all. Each says what "
        "the conditions were, what the verdict was, and why they were changed."
    )
    verdict_changes = _count_verdict_changes(changed_claims)
    if not verdict_changes:
        return [summary]
    summary += (
        f" {verdict_changes.total()} of the changes replaced a verdict that something was measured for. What it became "
        "is the next verdict on record, which may come from a new measurement."
    )
    rows = [
        (_verdict_text(before), _verdict_text(after), str(count))
        for (before, after), count in verdict_changes.most_common()
    ]
    table = markdown_table(("was", "became", "changes"), rows, right={2})
    return [summary, _details_section("Verdicts that changed", table)]


def _count_verdict_changes(settled_claims: Sequence[SettledClaim]) -> Counter[tuple[ClaimVerdict, ClaimVerdict]]:
    """Count how often each measured verdict was replaced by another; the keys are (old verdict, new verdict)."""
    changes: Counter[tuple[ClaimVerdict, ClaimVerdict]] = Counter()
    for settled_claim in settled_claims:
        verdicts = [*(earlier.verdict for earlier in settled_claim.claim.history), settled_claim.verdict]
        for before, after in pairwise(verdicts):
            if before in MEASURED_VERDICTS and after != before:
                changes[before, after] += 1
    return changes


def _details_section(summary: str, text: str) -> str:
    """Return a section that is folded until readers click on the summary."""
    return f'<details markdown="1"><summary>{summary}</summary>\n\n{text}\n\n</details>'


def _machines(results: Sequence[Result], hardware: Hardware) -> list[str]:
    """Return paragraphs that describe each machine and each compile target."""
    measured_results = [result for result in results if not result.compiled]
    descriptions = []
    for device in _devices(measured_results):
        device_results = [result for result in measured_results if _device(result) == device]
        # Results from one machine can describe it differently: take the description that says most.
        description = max((machine.describe(result.fingerprint) for result in device_results), key=len)
        descriptions.append(escape(f"{description}{_libraries(device_results)}"))
    paragraphs = []
    if len(descriptions) == 1:
        paragraphs = [f"Times are of {HARDWARE_NAMES[hardware]}. Measured on: {descriptions[0]}."]
    elif descriptions:
        paragraphs = [
            f"Times come from {len(descriptions)} machines, and each row says from which:",
            "\n".join(f"- {description}" for description in descriptions),
        ]
    targets = {str(result.case.accelerator.target) for result in results if result.compiled}
    if targets:
        text = f"Programs were also compiled, without the device, for: {figures.join_names(sorted(targets))}."
        paragraphs.append(escape(text))
    return paragraphs


def _libraries(results: Iterable[Result]) -> str:
    """Return text to append to a machine's description: the libraries' versions, as `, Flax 0.12, Optax 0.2`.

    The text is empty if no version is known.
    """
    versions: dict[str, str] = {}
    for result in results:
        for name, title in LIBRARIES.items():
            version = result.fingerprint.get(f"version.{name}", "")
            if version:  # empty in a result whose launches did not import the library
                versions[title] = version
    # A launch reports `unknown` for a library that does not say its version.
    return "".join(f", {title} {version}" for title, version in versions.items() if version != "unknown")


def _results(settled_claim: SettledClaim) -> list[Result]:
    """Return all results of a claim, deciding or not."""
    return [result for run in (*settled_claim.deciding_runs, *settled_claim.other_runs) for result in run.results]


def _run_seconds(run: MeasuredRun) -> float:
    """Return how long the run took: the sum of its cases' whole times."""
    return sum(float(result.overhead.get("total", 0)) for result in run.results)


def _how_to_check(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a paragraph on how to check a row, with how many rows we checked and how long that took."""
    fully_checked, partly_checked_rows = [], []
    for settled_claim in settled_claims:
        if not settled_claim.deciding_runs or settled_claim.manifests_to_run:
            continue  # nothing was run, or not everything that can decide here
        # An untestable row has a manifest that cannot decide here, so its deciding runs check only a part of it.
        if settled_claim.verdict.startswith("untestable"):
            partly_checked_rows.append(f"row {settled_claim.claim.row}")
        else:
            fully_checked.append(settled_claim)
    partly_text = f", and {figures.join_names(partly_checked_rows)} in part" if partly_checked_rows else ""
    row_seconds = [sum(map(_run_seconds, settled_claim.deciding_runs)) for settled_claim in fully_checked]
    below_one_minute = sum(seconds <= ONE_MINUTE_SECONDS for seconds in row_seconds)
    below_ten_minutes = sum(seconds <= TEN_MINUTES_SECONDS for seconds in row_seconds)
    # Several rows can share a run, whose time counts once in the total.
    runs = {run.name: run for settled_claim in settled_claims for run in settled_claim.deciding_runs}
    total_time = figures.duration(sum(map(_run_seconds, runs.values())))
    results = [result for settled_claim in settled_claims for result in _results(settled_claim)]
    machines = "machines" if _has_several_devices(results) else "machine"
    return (
        "In a checkout, `pip install '.[jax,torch]'` installs what a check needs, and `.[targets-gpu,targets-tpu]` "
        "the compilers for GPUs and TPUs, which need neither. Anybody with the hardware can check a row with one "
        f"command. We did so for {len(fully_checked)} of the {len(settled_claims)}{partly_text}; for the others we did "
        f"not have the hardware, or no machine can settle them. On the {machines} above, {below_one_minute} of them "
        f"took less than a minute, and {below_ten_minutes} less than ten minutes, those included; all together took "
        f"{total_time}.{_older_sources_text(settled_claims)}\n\n"
        "    accelbench claims run --rows 17\n    accelbench claims report --rows 17"
    )


def _older_sources_text(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a sentence that counts the runs of older workload sources, with a space before it; empty without any."""
    run_names = {
        run.name
        for settled_claim in settled_claims
        for run in (*settled_claim.deciding_runs, *settled_claim.other_runs)
        if run.has_older_source
    }
    if not run_names:
        return ""
    if len(run_names) == 1:
        return " 1 result was measured with an older version of its program, and is marked."
    return f" {len(run_names)} results were measured with older versions of their programs, and are marked."


def _row_link(claim: Claim) -> RawMarkdown:
    return RawMarkdown(f"[{claim.row}](#row-{claim.row})")


def _devices(results: Iterable[Result]) -> list[str]:
    """Return the names of the measured devices, each once."""
    return list(dict.fromkeys(_device(result) for result in results if not result.compiled))


def _device(result: Result) -> str:
    """Return the device's name; for a CPU, the model and its last vector extension."""
    if result.case.accelerator.platform != "cpu":
        return device_name(result)
    # Virtual machines can report the same name for models with different vector extensions.
    cpu_model, vectors = result.fingerprint.get("cpu", ""), result.fingerprint.get("cpuVectors", "")
    last_extension = vectors.rpartition(", ")[2]
    return f"{cpu_model} ({last_extension})" if vectors else cpu_model


def _has_several_devices(results: Iterable[Result]) -> bool:
    """Return True if the results were measured on more than one device."""
    return len(_devices(results)) > 1


def _claim_section(
    settled_claim: SettledClaim, results_link: str, picture: PictureFile | None, *, names_devices: bool
) -> list[str]:
    """Return the paragraphs of one claim; if `names_devices`, the last one names the devices of its results."""
    claim = settled_claim.claim
    quote = claim.quote.replace(LEFT_OUT, " … ")
    paragraphs = [
        f"## Row {claim.row}",
        f"**{escape(claim.asks)}**",
        f"> {escape(quote)} ({claim.article})",
        f"**{_verdict_text(settled_claim.verdict)}.** {_answer(settled_claim)}".rstrip(),
    ]
    if picture:
        paragraphs.append(f"![{escape(picture.description)}]({results_link}/pictures/{picture.file_name})")
    paragraphs += tables.run_tables(settled_claim.deciding_runs, claim)
    if settled_claim.other_runs:
        paragraphs += ["Also measured, deciding nothing:", *tables.run_tables(settled_claim.other_runs, claim)]
    if settled_claim.findings:
        paragraphs.append("\n".join(f"- {escape(simplify_sentence(sentence))}" for sentence in settled_claim.sentences))
    paragraphs += [*_conditions(settled_claim), *_caveats(settled_claim), *_history(claim), *_replaced_results(claim)]
    devices = figures.join_names(_devices(_results(settled_claim))) if names_devices else ""
    links = _links(settled_claim, results_link)
    paragraphs.append(f"{escape(f'Measured on: {devices}.')} {links}" if devices else links)
    return paragraphs


def _answer(settled_claim: SettledClaim) -> str:
    """Return the ledger's sentence for the verdict, or an empty string.

    A sentence that was written before the newest result is marked as outdated.
    """
    claim = settled_claim.claim
    sentence = escape(claim.answers.get(settled_claim.verdict, ""))
    has_newer_result = any(measured_at(result).date() > claim.written for result in _results(settled_claim))
    return f"({OUTDATED}) {sentence}" if sentence and has_newer_result else sentence


def _conditions(settled_claim: SettledClaim) -> list[str]:
    """Return paragraphs on the claim's conditions and its hardware."""
    claim, paragraphs = settled_claim.claim, []
    if claim.corrected:
        paragraphs.append(escape(claim.corrected))
    if not claim.own:  # a question of our own is neither confirmed nor refuted
        paragraphs.append(f"Confirmed {escape(claim.confirms)}; refuted {escape(claim.refutes)}.")
    paragraphs.append(_deciding_hardware(settled_claim))
    return paragraphs


def _deciding_hardware(settled_claim: SettledClaim) -> str:
    """Return a sentence on the hardware that can settle the claim."""
    claim = settled_claim.claim
    if claim.machine == UNNAMED:
        return "The article gives a time on a machine that it does not name, so nothing can settle it."
    if claim.machine:
        return f"The article gives a time on one machine ({escape(claim.machine)}), and no other can settle it."
    sentence = f"Asked of: {figures.join_names([HARDWARE_NAMES[hardware] for hardware in claim.hardware])}."
    hardware_with_result = {_hardware_of_result(result) for result in _results(settled_claim)}
    names_without_result = [HARDWARE_NAMES[name] for name in claim.hardware if name not in hardware_with_result]
    if hardware_with_result and names_without_result:
        return f"{sentence} There is no result for {figures.join_names(names_without_result)}."
    return sentence


def _hardware_of_result(result: Result) -> Hardware | None:
    """Return the class of hardware of the result's target or device; None if no claim is about such hardware."""
    accelerator = result.case.accelerator
    if accelerator.target:
        return hardware_of_target(accelerator.target)
    return HARDWARE_OF_PLATFORM.get(accelerator.platform)


def _caveats(settled_claim: SettledClaim) -> list[str]:
    """Return a Markdown list of what limits the claim's verdict: outdated runs, warnings, missing runs."""
    runs = (*settled_claim.deciding_runs, *settled_claim.other_runs)
    caveats = [
        f"Measured {_last_day(run)} with an older source of its workload ({run.name}): to be measured again."
        for run in runs
        if run.has_older_source
    ]
    caveats += [
        f"The conditions changed after the result of {_last_day(run)} ({run.name}) was measured; earlier conditions "
        "are below."
        for run in settled_claim.deciding_runs
        if run.has_other_bounds
    ]
    caveats += [f"Warning: {warning}" for warning in warnings.collect(runs, settled_claim.claim.compared_variants)]
    caveats += [f"Still to be measured: {name}." for name in settled_claim.manifests_to_run]
    return ["\n".join(f"- {escape(caveat)}" for caveat in caveats)] if caveats else []


def _last_day(run: MeasuredRun) -> str:
    """Return the day on which the run's last launch ended; empty without results."""
    days = [measured_at(result).date().isoformat() for result in run.results]
    return max(days, default="")


def measured_at(result: Result) -> datetime:
    """Return when the result's last launch ended."""
    return datetime.fromisoformat(result.finished)


def _history(claim: Claim) -> list[str]:
    """Return the section on the claim's earlier conditions."""
    if not claim.history:
        return []
    entries = [f"- {_describe_earlier_condition(earlier)}" for earlier in claim.history]
    return [_details_section("Earlier conditions", "\n".join(entries))]


def _replaced_results(claim: Claim) -> list[str]:
    """Return the section on results that newer results replaced."""
    if not claim.replaced:
        return []
    entries = []
    for replaced in claim.replaced:
        sentences = [escape(replaced.found), _git_command(replaced.result)]
        entries.append(f"- {replaced.measured}: {' '.join(filter(None, sentences))}")
    return [_details_section("Earlier measurements", "\n".join(entries))]


def _git_command(result: str) -> str:
    """Return a sentence with the git command that shows `result` (COMMIT:PATH); empty if no result was kept."""
    return f"The result: `git show {result}/report.md`." if result else ""


def _describe_earlier_condition(earlier: Earlier) -> str:
    """Describe an earlier condition and why it was changed."""
    description = (
        f"Until {earlier.changed:%Y-%m-%d} the condition was this: {escape(earlier.asked)}. The verdict was "
        f"{_verdict_text(earlier.verdict)}: {escape(earlier.found)} It was changed because {escape(earlier.why)}"
    )
    return " ".join(filter(None, (description, _git_command(earlier.result))))


def _links(settled_claim: SettledClaim, results_link: str) -> str:
    """Return links to the reports of all runs and to the manifests."""
    reports = [
        f"[{run.name}]({results_link}/{run.parent_directory}/{run.name}/report.md)"
        for run in (*settled_claim.deciding_runs, *settled_claim.other_runs)
    ]
    manifests = [f"[{name}](../examples/claims/{name}.yaml)" for name in settled_claim.claim.manifest_names]
    reports_text = f"Results with their certificates: {', '.join(reports)}. " if reports else ""
    return f"{reports_text}To run: {', '.join(manifests)}."

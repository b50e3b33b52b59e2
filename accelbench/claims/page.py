"""Write the page of all claims as Markdown, for readers who know none of the articles. Pure.

Each claim is a row of the ledger, and the page refers to it by the row's number.

The page has the answers to the claims that a result decides. Other pages have the other claims (`unmeasured_page`), all
tables and warnings (`results_page`), earlier conditions and results (`history_page`), what is measured next
(`plan_page`) and the terms (`glossary`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from accelbench import figures
from accelbench.claims import answers, machines, tables, training
from accelbench.claims.answers import VERDICT_NAMES
from accelbench.claims.articles import Article, Articles
from accelbench.claims.ledger import LEFT_OUT, ClaimVerdict
from accelbench.claims.pictures import PictureFile
from accelbench.claims.settle import MeasuredRun, SettledClaim
from accelbench.claims.words import brief, simplify_sentence, times
from accelbench.report.markdown import RawMarkdown, escape, markdown_table

VERDICT_MEANINGS: dict[ClaimVerdict, str] = {
    "confirmed": "every condition of the claim is met",
    "in-direction": "it is met, but the interval excludes the figure that the article gives",
    "example-exists": "the article says that something can be so, and one of our examples is so",
    "refuted": "a valid result contradicts at least one condition",
    "inconclusive": "an interval contains a bound, or a check failed, or no example was found",
    "measured": "the question is ours, and no article claims an answer",
    "measured-not-decided": "a measurement was cut short, or a part of it is missing",
    "withheld": "a side is not as its community runs it, or the ratio is that of a plain product on this processor",
    "opinion": "nothing in the sentence can be measured",
    "not-measured-yet": "the bounds are written, and the result is still to come",
    "untestable-here": "it needs hardware, or a setting, that we have no result of",
    "untestable-anywhere": "it is about a machine, a program or a comparison that the article does not name",
}
FIRST_SCREEN: Sequence[tuple[str, frozenset[ClaimVerdict]]] = (
    ("Wrong", frozenset({"refuted"})),
    ("Right, and worth knowing", frozenset({"confirmed", "in-direction", "example-exists"})),
    ("Measured by us", frozenset({"measured"})),
    (
        "Not decided yet",
        frozenset({"untestable-here", "measured-not-decided", "withheld", "inconclusive", "not-measured-yet"}),
    ),
    ("Nobody can settle", frozenset({"untestable-anywhere", "opinion"})),
)
"""The lists of the first screen: their titles, and the verdicts of their rows."""
DECIDED: frozenset[ClaimVerdict] = frozenset({"confirmed", "in-direction", "example-exists", "refuted", "measured"})
"""Verdicts that answer what a row asks."""
UNMEASURED_PAGE = "unmeasured.md"
RESULTS_PAGE, HISTORY_PAGE, PLAN_PAGE, WORDS_PAGE = "results.md", "history.md", "next.md", "words.md"
"""Names of the other pages, in `DIRECTORY`."""
DIRECTORY = "claims/"
"""The directory of the other pages, next to the main page."""
HOW_VERDICTS_FOLLOW = (
    "Verdicts follow from bounds in files and from results; none is written by hand. An answer in words belongs to one "
    "verdict and to the results that it was written for: with others it gives way to a generated sentence. A range of "
    "launches or a single number never decides like an interval ([rules](method/claims-policy.md))."
)
OTHER_PAGES = (
    f"Other pages: [rows without a result](claims/{UNMEASURED_PAGE}), [all tables, with warnings](claims/"
    f"{RESULTS_PAGE}), [earlier conditions and results](claims/{HISTORY_PAGE}), [what is measured "
    f"next](claims/{PLAN_PAGE}), [words](claims/{WORDS_PAGE}), [workloads](reference/workloads.md)."
)


def page(
    settled_claims: Sequence[SettledClaim],
    articles: Articles,
    *,
    results_link: str,
    pictures: Mapping[int, PictureFile] | None = None,
) -> str:
    """Return the page as Markdown.

    Args:
        settled_claims: The claims.
        articles: The articles that the claims quote, and the order of the page.
        results_link: The link from the page to the directory of all results.
        pictures: The picture of each row that has one, by row.
    """
    paragraphs = [
        "# What articles claim about JAX and PyTorch, and what came out",
        *_first_screen(settled_claims),
        "## All of them",
        _verdicts_table(settled_claims),
        _overview_table(settled_claims, articles),
    ]
    claims_by_row = {settled_claim.claim.row: settled_claim for settled_claim in settled_claims}
    shown_runs: dict[str, int] = {}
    for topic in articles.topics:
        topic_claims = [claims_by_row[row] for row in topic.rows if row in claims_by_row]
        topic_claims = [settled_claim for settled_claim in topic_claims if settled_claim.deciding_results]
        if topic_claims:
            paragraphs.append(f"## {escape(topic.title)}")
            paragraphs += _topic_section(topic_claims, shown_runs, results_link, pictures or {})
    paragraphs += _mistakes_section(settled_claims, articles)
    paragraphs += ["## How it was done", *_method_section(settled_claims, articles)]
    return "\n\n".join(paragraphs) + "\n"


def _first_screen(settled_claims: Sequence[SettledClaim]) -> list[str]:
    """Return the summary: how many rows there are, and the first sentence of the answer to each notable row."""
    paragraphs = [_counts(settled_claims)]
    for title, verdicts in FIRST_SCREEN:
        notable = [each for each in settled_claims if each.verdict in verdicts and each.claim.notable]
        if notable:
            lines = [f"- {escape(_short_answer(each))} ({_row_link(each)})" for each in notable]
            paragraphs += [f"**{title}**", "\n".join(lines)]
    return paragraphs


def _counts(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a paragraph that counts the rows, those confirmed and those refuted."""
    counts = Counter(settled_claim.verdict for settled_claim in settled_claims)
    confirmed = [settled_claim for settled_claim in settled_claims if settled_claim.verdict == "confirmed"]
    early_count = sum(settled_claim.bounds_age == "before-any-result" for settled_claim in confirmed)
    row_count = len(settled_claims)
    rows_text = "1 sentence of an article" if row_count == 1 else f"{row_count} sentences of articles"
    return (
        f"{rows_text}, held against programs that anybody can run. Confirmed: {len(confirmed)}, of which {early_count} "
        f"by bounds that were written before any result. Refuted: {counts['refuted']}. [The others](#all-of-them) hold "
        f"in part, wait for hardware, or claim nothing that can be measured.{_count_gpu_rows(settled_claims)}"
    )


def _count_gpu_rows(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a sentence on how many rows that need a GPU are decided, after a space; empty without such rows.

    Left out are rows that compiled programs decide, which need no GPU, and rows that no GPU can settle: opinions, and
    articles that do not name what they measured.
    """
    gpu_rows = [
        each
        for each in settled_claims
        if each.claim.hardware == ("gpu",)
        and each.verdict not in {"opinion", "untestable-anywhere"}
        and not answers.is_by_program(each)
    ]
    if not gpu_rows:
        return ""
    decided_count = sum(each.verdict in DECIDED for each in gpu_rows)
    verb = "is" if decided_count <= 1 else "are"
    return f" Of {len(gpu_rows)} rows that only a GPU can settle, {decided_count or 'none'} {verb} decided."


def _short_answer(settled_claim: SettledClaim) -> str:
    return answers.first_sentence(answers.in_words(settled_claim))


def _verdicts_table(settled_claims: Sequence[SettledClaim]) -> str:
    """Return a table with the number of claims of each verdict, and what the verdict means."""
    counts = Counter(settled_claim.verdict for settled_claim in settled_claims)
    rows = [
        (str(counts[verdict]), VERDICT_NAMES[verdict], VERDICT_MEANINGS[verdict])
        for verdict in get_args(ClaimVerdict)
        if counts[verdict]
    ]
    return markdown_table(("rows", "verdict", "what it means"), rows, right={0})


def _overview_table(settled_claims: Sequence[SettledClaim], articles: Articles) -> str:
    """Return a table with a row for each claim, in the order of the topics."""
    order = [row for topic in articles.topics for row in topic.rows]
    rows = [
        (_row_link(settled_claim), settled_claim.claim.asks, _verdict(settled_claim))
        for settled_claim in sorted(settled_claims, key=lambda each: order.index(each.claim.row))
    ]
    return markdown_table(("row", "what is asked", "verdict"), rows, right={0})


def _verdict(settled_claim: SettledClaim) -> str:
    """Return the name of the verdict, with `by program` if it rests on compiled programs alone."""
    name = VERDICT_NAMES[settled_claim.verdict]
    return f"{name}, by program" if answers.is_by_program(settled_claim) else name


def _topic_section(
    settled_claims: Sequence[SettledClaim],
    shown_runs: dict[str, int],
    results_link: str,
    pictures: Mapping[int, PictureFile],
) -> list[str]:
    """Return the paragraphs of one topic's claims.

    Rows can share a run, whose table is shown once. `shown_runs` maps the directory of each run on the page so far to
    the row that shows its table; it is extended.
    """
    paragraphs: list[str] = []
    if trainings := [each for each in settled_claims if each.claim.trainings]:
        paragraphs.append(trainings_table(trainings))
    for settled_claim in settled_claims:
        row = settled_claim.claim.row
        new_runs: list[MeasuredRun] = []
        earlier_rows: set[int] = set()
        for run in _table_runs(settled_claim):
            row_with_table = shown_runs.setdefault(_directory(run), row)
            if row_with_table == row:
                new_runs.append(run)
            else:
                earlier_rows.add(row_with_table)
        paragraphs += _claim_section(settled_claim, new_runs, sorted(earlier_rows), results_link, pictures.get(row))
    return paragraphs


def _directory(run: MeasuredRun) -> str:
    return f"{run.parent_directory}/{run.name}"


def _table_runs(settled_claim: SettledClaim) -> tuple[MeasuredRun, ...]:
    """Return the runs whose tables are in the claim's section: the deciding runs; none if findings have the numbers."""
    return () if settled_claim.findings else settled_claim.deciding_runs


def trainings_table(settled_claims: Sequence[SettledClaim]) -> str:
    """Return one table of all claims about whole trainings: the ratios in the article and here, and the bounds."""
    rows = []
    for settled_claim in settled_claims:
        for condition in settled_claim.claim.trainings:
            for result in settled_claim.deciding_results:
                ratio = training.total_time_ratio(condition, result)
                cached = training.ratio_with_cache(condition, result)
                rows.append(
                    (
                        _row_link(settled_claim),
                        f"{condition.variant} against {condition.over}",
                        brief(times(float(condition.article))),
                        brief(times(ratio.typical, ratio.lowest, ratio.highest)) if ratio else "not measured",
                        brief(times(cached)) if cached else "",
                        brief(training.bounds_in_words(condition)),
                    )
                )
    heads = ("row", "whole training, compiling included", "article", "here", "here, cached", "confirmed if")
    return markdown_table(heads, rows, right={0})


def _claim_section(
    settled_claim: SettledClaim,
    runs: Sequence[MeasuredRun],
    earlier_rows: Sequence[int],
    results_link: str,
    picture: PictureFile | None,
) -> list[str]:
    """Return the paragraphs of one claim: quote, verdict with its answer, findings, picture and tables, basis.

    The section has the tables of `runs`; for those of the claim's other runs it refers to `earlier_rows`.
    """
    claim = settled_claim.claim
    paragraphs = [*quote_and_answer(settled_claim)]
    if explanations := dict.fromkeys((*settled_claim.withheld, *settled_claim.controls)):
        paragraphs.append("\n".join(f"- {escape(sentence)}" for sentence in explanations))
    # A generated answer contains the findings, and those on trainings are in the table of the topic.
    if settled_claim.findings and settled_claim.answer and not claim.trainings:
        paragraphs.append("\n".join(f"- {escape(simplify_sentence(each))}" for each in settled_claim.sentences))
    if picture:
        # The numbers of a picture's description are in the table next to it, and in the picture itself.
        summary = picture.description.partition(": ")[0]
        paragraphs.append(f"![{escape(summary)}]({results_link}/pictures/{picture.file_name})")
    paragraphs += tables.brief_tables(runs, claim)
    runs_with_results = [run for run in _table_runs(settled_claim) if run.results]
    has_table = any(not run.results[0].observations for run in runs_with_results)  # observations have no table
    if earlier_rows and has_table:
        paragraphs.append(f"Table: see {figures.join_names([f'[row {row}](#row-{row})' for row in earlier_rows])}.")
    basis = answers.basis(settled_claim)
    sentence = f"{basis[:1].upper()}{basis[1:]}."
    paragraphs.append(f"*{escape(sentence)}* {links(settled_claim, DIRECTORY)}")
    return paragraphs


def quote_and_answer(settled_claim: SettledClaim) -> tuple[str, ...]:
    """Return the first paragraphs of a claim's section: heading, quote, and verdict with its answer."""
    claim = settled_claim.claim
    text = f"{answers.in_words(settled_claim)} {claim.corrected}".rstrip()
    return (
        f"### Row {claim.row}",
        f"> {escape(claim.quote.replace(LEFT_OUT, ' … '))} ({claim.article})",
        f"**{_verdict(settled_claim)}.** {escape(text)}",
    )


def links(settled_claim: SettledClaim, directory: str) -> str:
    """Return links to all tables or manifests, the history and the plan; `directory` leads to those pages."""
    claim = settled_claim.claim
    texts = [f"[{'tables' if settled_claim.runs else 'manifests'}]({directory}{RESULTS_PAGE}#row-{claim.row})"]
    if claim.history or claim.replaced:
        texts.append(f"[history]({directory}{HISTORY_PAGE}#row-{claim.row})")
    if claim.to_measure:
        texts.append(f"[next]({directory}{PLAN_PAGE})")
    return " · ".join(texts)


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
    table = markdown_table(("article", "what it says", "what is so"), rows, right=set())
    return ["## What else is wrong in the articles", table]


def _method_section(settled_claims: Sequence[SettledClaim], articles: Articles) -> list[str]:
    """Return paragraphs on the articles, the machines, how to check a row, and the other pages."""
    results = [result for settled_claim in settled_claims for run in settled_claim.runs for result in run.results]
    devices = machines.devices(results)
    return [
        articles.chosen,
        "\n".join(f"- **{article.name}**: {_citation(article)}" for article in articles.articles),
        escape(f"Measured on {figures.join_names(devices)}.") if devices else "Nothing was measured.",
        HOW_VERDICTS_FOLLOW,
        OTHER_PAGES,
        "To check a row, in a checkout:",
        "    pip install '.[jax,torch]'\n    accelbench claims run --rows 17",
    ]


def _citation(article: Article) -> str:
    """Return the article's title with its link, its author and its date."""
    text = escape(article.title)
    if article.link:
        text = f"[{text}]({article.link})"
    author = f"By {escape(article.author)}" if article.author else "No author is given"
    return f"{text}. {author}; {article.published or 'no date is given'}."


def _row_link(settled_claim: SettledClaim) -> RawMarkdown:
    """Return a link to the claim's section, on this page or on that of claims without a result."""
    page_name = "" if settled_claim.deciding_results else f"{DIRECTORY}{UNMEASURED_PAGE}"
    return RawMarkdown(f"[{settled_claim.claim.row}]({page_name}#row-{settled_claim.claim.row})")

"""Implement `accelbench claims`: list the claims of articles, run their manifests here, and settle them."""

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from accelbench.local.exits import Exit
from accelbench.terminal.options import Output, output_option
from accelbench.terminal.program import Command, Group

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from accelbench.api.result import Result
    from accelbench.claims.articles import Articles
    from accelbench.claims.ledger import Claim, Hardware
    from accelbench.claims.settle import SettledClaim
    from accelbench.cli.claimed import ClaimRun
    from accelbench.local.interrupt import Signals

rows_option = click.option(
    "--rows", metavar="ROWS", default="", show_default=False, help="Such as 2,3,28-37. Default: all."
)
any_hardware_option = click.option(
    "--hardware",
    metavar="NAMES",
    default="cpu",
    help="cpu, gpu, gpus, tpu, or several (cpu,gpu): a claim is settled on the first that it is about.",
)
results_option = click.option(
    "--results",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("results", "claims"),
    help="Where results are, a directory for each claim.",
)


@click.group(cls=Group)
def claims() -> None:
    """List, run and settle claims of articles about JAX and PyTorch."""


@claims.command("list", cls=Command)
@rows_option
@any_hardware_option
@results_option
@output_option(Output)
def list_(rows: str, hardware: str, results: Path, output: Output) -> None:
    """List claims, each with its verdict if it was run."""
    import json

    from rich.table import Table

    from accelbench.terminal.console import console

    claims, hardware_classes = _parse_rows_and_hardware(rows, hardware)
    settled_claims = [_settle(claim, hardware_classes, results) for claim in claims]
    if output is Output.JSON:
        click.echo(
            json.dumps([_as_json(settled_claim) for settled_claim in settled_claims], indent=2, ensure_ascii=False)
        )
        return
    table = Table("row", "article", "what is asked", "verdict here", box=None, pad_edge=False)
    for settled_claim in settled_claims:
        table.add_row(
            str(settled_claim.claim.row), settled_claim.claim.article, settled_claim.claim.asks, settled_claim.verdict
        )
    console(listing=True).print(table)
    click.echo(f"Verdicts are from the results in {results}. docs/claims.md has accelbench's own.", err=True)


@claims.command("run", cls=Command)
@rows_option
@click.option("--hardware", metavar="NAME", default="cpu", help="cpu, gpu, gpus or tpu.")
@results_option
@click.option("--again", is_flag=True, help="Rerun claims that already have results.")
@click.option("--beside", is_flag=True, help="Also run manifests that decide nothing here.")
def run(rows: str, hardware: str, results: Path, again: bool, beside: bool) -> None:
    """Run the claims that can be settled here, except those already run from the workload's present source."""
    from accelbench.local.interrupt import Signals

    claims, hardware_classes = _parse_rows_and_hardware(rows, hardware)
    if len(hardware_classes) > 1:
        _exit("error: a run takes place on one kind of hardware: --hardware cpu or --hardware gpu", Exit.USAGE)
    [hardware_class] = hardware_classes
    measured_directories: set[Path] = set()
    all_have_results = True
    with Signals() as signals:
        for claim in claims:
            runs = _runs_to_measure(claim, hardware_class, results, include_additional=beside)
            if not runs:
                click.echo(f"row {claim.row}: {_explain_untestable(claim)}", err=True)
                continue
            pending_runs = _pending_runs(runs, measured_directories, again=again)
            # A run that was measured for an earlier row is not pending, but the verdict of this row is still new.
            measured_for_earlier_row = any(run.directory.path in measured_directories for run in runs)
            if not pending_runs and not measured_for_earlier_row:
                verdict = _settle(claim, [hardware_class], results).verdict
                click.echo(f"row {claim.row}: {verdict} (already run; --again reruns it)")
                continue
            click.echo(f"row {claim.row}: {claim.asks}", err=True)
            for run, complete_results in pending_runs:
                advice = run.compiler_advice
                if advice:
                    click.echo(f"row {claim.row}: skipping {run.name}: {advice}", err=True)
                    continue
                all_have_results &= _measure(run, signals, complete_results)
                measured_directories.add(run.directory.path)
            _print_verdict(_settle(claim, [hardware_class], results), runs)
    if not all_have_results:
        sys.exit(Exit.INTERNAL)


def _runs_to_measure(
    claim: "Claim", hardware: "Hardware", results: Path, *, include_additional: bool
) -> "list[ClaimRun]":
    """Return the claim's runs that decide it; with `include_additional`, all that can run on this hardware.

    Exit if the ledger is invalid.
    """
    from accelbench.cli import claimed

    with _exit_on_error():
        runs = list(claimed.claim_runs(claim, hardware, results))
        if not include_additional:
            return [run for run in runs if run.decides_claim]
        runs += claimed.claim_runs(claim, hardware, results, additional=True)
        return [run for run in runs if run.can_run]


def _pending_runs(
    runs: "Sequence[ClaimRun]", measured_directories: "Collection[Path]", *, again: bool
) -> "list[tuple[ClaimRun, dict[str, Result]]]":
    """Return the runs that lack the result of a case, each with its complete results by the case's name.

    Rows can share a run: a run that was measured for an earlier row is left out. With `again`, results that exist
    already are ignored.
    """
    from accelbench.cli import claimed
    from accelbench.plan.cases import count_cases

    pending_runs = []
    for run in runs:
        complete_results = {} if again else claimed.complete_results(run)
        was_measured = run.directory.path in measured_directories
        if not was_measured and len(complete_results) < count_cases(run.manifest):
            pending_runs.append((run, complete_results))
    return pending_runs


def _print_verdict(settled_claim: "SettledClaim", runs: "Sequence[ClaimRun]") -> None:
    """Print the claim's verdict, its question with the answer in words, and the results that the verdict rests on.

    The directories of the results are printed on stderr.
    """
    from accelbench.claims import answers

    row = f"row {settled_claim.claim.row}"
    click.echo(f"{row}: {settled_claim.verdict}")
    for run in runs:
        if run.directory.has_record:
            click.echo(f"{row}: results in {run.directory.path}", err=True)
    click.echo(f"  {settled_claim.claim.asks}")
    click.echo(f"  {answers.in_words(settled_claim)}")
    if rests_on := answers.basis(settled_claim):
        click.echo(f"  This rests on results {rests_on}.")


def _explain_untestable(claim: "Claim") -> str:
    """Return why the claim cannot be settled on this hardware."""
    from accelbench.claims.ledger import UNNAMED

    if claim.machine == UNNAMED:
        return "untestable anywhere: the article does not name what it measured"
    return f"untestable here: it needs {claim.machine or ' or '.join(claim.hardware)}"


def _measure(run: "ClaimRun", signals: "Signals", complete_results: "Mapping[str, Result]") -> bool:
    """Measure the cases of a run that have no complete result, and print problems; return True if there were none.

    Exit after an interruption, or if a file cannot be written.
    """
    from accelbench.local.device import platform_of, require_a_framework
    from accelbench.local.run import measure
    from accelbench.report.live import display
    from accelbench.terminal.console import console

    try:
        require_a_framework(run.manifest)
        with display(console(stderr=True)) as live_display:
            outcome = measure(
                run.manifest,
                platform_of(run.manifest),
                run.directory,
                signals=signals,
                display=live_display,
                earlier_results=complete_results,
            )
    except OSError as error:
        _exit(f"error: {error.filename or run.directory.path}: {error.strerror}", Exit.USAGE)
    problems = [line for case in outcome.cases for line in case.problems]
    for line in problems:
        click.echo(line, err=True)
    if signals.received is not None:
        _exit("interrupted: the claims that were settled are kept", outcome.exit)
    return not problems


@claims.command("report", cls=Command)
@rows_option
@any_hardware_option
@results_option
@click.option(
    "--pictures",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Draw the page's pictures, into this directory.",
)
@click.option(
    "--pages",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the other pages into this directory: rows without a result, all tables, the history, what is measured "
    "next, and words.",
)
def report(rows: str, hardware: str, results: Path, pictures: Path | None, pages: Path | None) -> None:
    """Print all verdicts as a Markdown page."""
    from accelbench.claims import articles, ledger
    from accelbench.claims.page import page
    from accelbench.claims.pictures import descriptions_by_row

    try:
        all_articles = articles.load(ledger.directory())
    except ledger.InvalidLedgerError as error:
        _exit(f"error: {error}", Exit.INTERNAL)
    claims, hardware_classes = _parse_rows_and_hardware(rows, hardware)
    settled_claims = [_settle(claim, hardware_classes, results) for claim in claims]
    if any(settled_claim.claim.table_baseline for settled_claim in settled_claims):
        _require_scipy()  # computes the intervals of comparisons with another baseline
    # The page is in docs/, so a link to a directory in docs/ begins after it.
    link_parts = results.parts[1:] if results.parts[:1] == ("docs",) else results.parts
    results_link = "/".join(link_parts)
    if pictures is not None:
        _write_pictures(settled_claims, pictures)
    if pages is not None:
        _write_pages(settled_claims, all_articles, pages, results_link)
    text = page(
        settled_claims,
        all_articles,
        results_link=results_link,
        pictures=descriptions_by_row(settled_claims),
    )
    click.echo(text, nl=False)


def _write_pictures(settled_claims: "list[SettledClaim]", directory: Path) -> None:
    """Write the pictures of the page of claims as SVG files to the directory; exit on an error."""
    from accelbench.claims import pictures

    if importlib.util.find_spec("matplotlib") is None:
        _exit("error: pictures need matplotlib: pip install 'accelbench[report]'", Exit.USAGE)
    _write_files(directory, pictures.svg_files(settled_claims))


def _write_pages(
    settled_claims: "list[SettledClaim]", all_articles: "Articles", directory: Path, results_link: str
) -> None:
    """Write the pages next to the main one to the directory; `results_link` leads from the main page to the results."""
    from accelbench.claims import glossary, history_page, plan_page, results_page, unmeasured_page
    from accelbench.claims.page import HISTORY_PAGE, PLAN_PAGE, RESULTS_PAGE, UNMEASURED_PAGE, WORDS_PAGE

    _write_files(
        directory,
        {
            UNMEASURED_PAGE: unmeasured_page.page(settled_claims, all_articles),
            RESULTS_PAGE: results_page.page(settled_claims, f"../{results_link}"),
            HISTORY_PAGE: history_page.page(settled_claims),
            PLAN_PAGE: plan_page.page(settled_claims),
            WORDS_PAGE: glossary.page(settled_claims),
        },
    )


def _write_files(directory: Path, texts: "Mapping[str, str]") -> None:
    """Write each text to the file of its name in the directory; exit on an error."""
    from accelbench.local.directory import write_atomically

    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomically(directory / name, text)
    except OSError as error:
        _exit(f"error: {error.filename or directory}: {error.strerror}", Exit.USAGE)


def _parse_rows_and_hardware(rows: str, hardware: str) -> "tuple[tuple[Claim, ...], list[Hardware]]":
    """Parse --rows and --hardware: return the claims of these rows, and the classes of hardware; exit on an error."""
    from accelbench.claims import ledger

    try:
        hardware_classes = [ledger.parse_hardware(name.strip()) for name in hardware.split(",")]
        return ledger.choose(ledger.load(ledger.directory()), rows), hardware_classes
    except (ValueError, ledger.UnknownRowError) as error:
        _exit(f"error: {error}", Exit.USAGE)
    except ledger.InvalidLedgerError as error:
        _exit(f"error: {error}", Exit.INTERNAL)


def _settle(claim: "Claim", hardware: "Sequence[Hardware]", results: Path) -> "SettledClaim":
    """Decide the claim by the results on disk; exit on an error."""
    from accelbench.cli import claimed

    with _exit_on_error():
        return claimed.settle_claim(claim, hardware, results)


@contextmanager
def _exit_on_error() -> "Iterator[None]":
    """Exit if the code in the `with` block finds an invalid ledger, or needs scipy, which is not installed."""
    from accelbench.claims.ledger import InvalidLedgerError

    try:
        yield
    except InvalidLedgerError as error:
        _exit(f"error: {error}", Exit.INTERNAL)
    except ModuleNotFoundError:
        _require_scipy()
        raise  # another module is missing


def _require_scipy() -> None:
    """Exit with a message if scipy is not installed."""
    if importlib.util.find_spec("scipy") is None:
        _exit("error: intervals over a suite need scipy: pip install 'accelbench[report]'", Exit.USAGE)


def _as_json(settled_claim: "SettledClaim") -> dict[str, object]:
    """Return the claim, its verdict and its findings, as a JSON document."""
    from accelbench.claims.answers import basis, in_words

    claim = settled_claim.claim
    return {
        "row": claim.row,
        "article": claim.article,
        "asks": claim.asks,
        "quote": claim.quote,
        "hardware": list(claim.hardware),
        "verdict": settled_claim.verdict,
        "answer": in_words(settled_claim),
        "basis": basis(settled_claim),
        "resultsDigest": settled_claim.results_digest,
        "found": list(settled_claim.sentences),
        "withheld": list(settled_claim.withheld),
        "corrected": claim.corrected,
    }


def _exit(message: str, code: Exit) -> NoReturn:
    """Print a message to standard error, and exit."""
    click.echo(message, err=True)
    sys.exit(code)

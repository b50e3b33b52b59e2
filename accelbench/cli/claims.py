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
    from collections.abc import Iterator, Mapping, Sequence

    from accelbench.api.result import Result
    from accelbench.claims.ledger import Claim, Hardware
    from accelbench.claims.settle import Settled
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
    """List every claim, with its verdict if it was run."""
    import json

    from rich.table import Table

    from accelbench.terminal.console import console

    claims, kinds = _choose(rows, hardware)
    settled = [_settle(claim, kinds, results) for claim in claims]
    if output is Output.JSON:
        click.echo(json.dumps([_as_json(item) for item in settled], indent=2, ensure_ascii=False))
        return
    table = Table("row", "article", "what is asked", "verdict here", box=None, pad_edge=False)
    for item in settled:
        table.add_row(str(item.claim.row), item.claim.article, item.claim.asks, item.verdict)
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
    from accelbench.plan.cases import count_cases

    claims, (kind, *others) = _choose(rows, hardware)
    if others:
        _exit("error: a run takes place on one kind of hardware: --hardware cpu or --hardware gpu", Exit.USAGE)
    measured: set[Path] = set()  # several rows can share a directory
    complete = True
    with Signals() as signals:
        for claim in claims:
            runs = _runs(claim, kind, results, beside=beside)
            if not runs:
                click.echo(f"row {claim.row}: {_untestable(claim)}", err=True)
                continue
            stored = [({} if again else _stored(run)) for run in runs]
            pending = [
                (run, done)
                for run, done in zip(runs, stored, strict=True)
                if run.directory.path not in measured and len(done) < count_cases(run.manifest)
            ]
            if not pending and measured.isdisjoint(run.directory.path for run in runs):
                verdict = _settle(claim, [kind], results).verdict
                click.echo(f"row {claim.row}: {verdict} (already run; --again reruns it)")
                continue
            click.echo(f"row {claim.row}: {claim.asks}", err=True)
            for run, done in pending:
                if missing := run.missing:
                    click.echo(f"row {claim.row}: skipping {run.name}: {missing}", err=True)
                    continue
                complete &= _measure(run, signals, done)
                measured.add(run.directory.path)
            _print_verdict(_settle(claim, [kind], results), runs)
    if not complete:
        sys.exit(Exit.INTERNAL)


def _runs(claim: "Claim", hardware: "Hardware", results: Path, *, beside: bool) -> "list[ClaimRun]":
    """Return the claim's runs on this hardware; with `beside`, its additional runs too."""
    from accelbench.cli import claimed

    with _exit_on_error():
        runs = [run for run in claimed.runs(claim, hardware, results) if run.able or (beside and run.possible)]
        if beside:
            runs += [run for run in claimed.runs(claim, hardware, results, beside=True) if run.possible]
    return runs


def _stored(run: "ClaimRun") -> "Mapping[str, Result]":
    from accelbench.cli import claimed

    return claimed.stored(run)


def _print_verdict(settled: "Settled", runs: "Sequence[ClaimRun]") -> None:
    """Print the verdict, its findings, and the directories of the results."""
    from accelbench.claims.words import simplify_sentence

    row = f"row {settled.claim.row}"
    click.echo(f"{row}: {settled.verdict}")
    for sentence in settled.found:
        click.echo(f"  {simplify_sentence(sentence)}")
    for run in runs:
        if run.directory.begun:
            click.echo(f"{row}: results in {run.directory.path}", err=True)


def _untestable(claim: "Claim") -> str:
    from accelbench.claims.ledger import UNNAMED

    if claim.machine == UNNAMED:
        return "untestable anywhere: the article does not name its machine"
    return f"untestable here: it needs {claim.machine or ' or '.join(claim.hardware)}"


def _measure(run: "ClaimRun", signals: "Signals", done: "Mapping[str, Result]") -> bool:
    """Run the cases that are not done, and return True if each has a result.

    An interrupt, an invalid manifest or an unwritable directory ends the process.
    """
    from accelbench.local.device import platform_of, require_a_framework
    from accelbench.local.run import measure
    from accelbench.report.live import display
    from accelbench.terminal.console import console

    try:
        require_a_framework(run.manifest)
        with display(console(stderr=True)) as shown:
            platform = platform_of(run.manifest)
            outcome = measure(run.manifest, platform, run.directory, signals=signals, display=shown, done=done)
    except OSError as error:
        _exit(f"error: {error.filename or run.directory.path}: {error.strerror}", Exit.USAGE)
    trouble = [line for case in outcome.cases for line in case.trouble]
    for line in trouble:
        click.echo(line, err=True)
    if signals.received is not None:
        _exit("interrupted: the claims that were settled are kept", outcome.exit)
    return not trouble


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
def report(rows: str, hardware: str, results: Path, pictures: Path | None) -> None:
    """Print all verdicts as a Markdown page, with what confirms and refutes each."""
    from accelbench.claims import articles, ledger
    from accelbench.claims import pictures as drawn
    from accelbench.claims.page import page

    try:
        about = articles.load(ledger.directory())
    except ledger.InvalidLedgerError as error:
        _exit(f"error: {error}", Exit.INTERNAL)
    claims, kinds = _choose(rows, hardware)
    settled = [_settle(claim, kinds, results) for claim in claims]
    if any(item.claim.over for item in settled):
        _require_scipy()
    link = "/".join(results.parts[1:] if results.parts[:1] == ("docs",) else results.parts)
    if pictures is not None:
        _draw(settled, pictures)
    click.echo(page(settled, about, here=kinds[0], results=link, pictures=drawn.descriptions_by_row(settled)), nl=False)


def _draw(settled: "list[Settled]", directory: Path) -> None:
    from accelbench.claims import pictures
    from accelbench.local.directory import write_atomically

    if importlib.util.find_spec("matplotlib") is None:
        _exit("error: pictures need matplotlib: pip install 'accelbench[report]'", Exit.USAGE)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, svg in pictures.svg_files(settled).items():
            write_atomically(directory / name, svg)
    except OSError as error:
        _exit(f"error: {error.filename or directory}: {error.strerror}", Exit.USAGE)


def _choose(rows: str, hardware: str) -> "tuple[tuple[Claim, ...], list[Hardware]]":
    from accelbench.claims import ledger

    try:
        kinds = [ledger.hardware(name.strip()) for name in hardware.split(",")]
        return ledger.choose(ledger.load(ledger.directory()), rows), kinds
    except (ValueError, ledger.UnknownRowError) as error:
        _exit(f"error: {error}", Exit.USAGE)
    except ledger.InvalidLedgerError as error:
        _exit(f"error: {error}", Exit.INTERNAL)


def _settle(claim: "Claim", hardware: "Sequence[Hardware]", results: Path) -> "Settled":
    from accelbench.cli import claimed

    with _exit_on_error():
        return claimed.settled(claim, hardware, results)


@contextmanager
def _exit_on_error() -> "Iterator[None]":
    """End the process if the ledger is invalid, or scipy is missing."""
    from accelbench.claims.ledger import InvalidLedgerError

    try:
        yield
    except InvalidLedgerError as error:
        _exit(f"error: {error}", Exit.INTERNAL)
    except ModuleNotFoundError:
        _require_scipy()
        raise


def _require_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        _exit("error: intervals over a suite need scipy: pip install 'accelbench[report]'", Exit.USAGE)


def _as_json(settled: "Settled") -> dict[str, object]:
    claim = settled.claim
    return {
        "row": claim.row,
        "article": claim.article,
        "asks": claim.asks,
        "quote": claim.quote,
        "hardware": list(claim.hardware),
        "verdict": settled.verdict,
        "answer": claim.answers.get(settled.verdict, ""),
        "found": list(settled.found),
        "corrected": claim.corrected,
    }


def _exit(message: str, code: Exit) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)

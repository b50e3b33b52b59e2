"""`accelbench claims`: what articles say, run here and settled."""

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
    """Claims of articles about JAX and PyTorch: list, run, settle."""


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

    claims, here = _chosen(rows, hardware)
    settled = [_settle(claim, here, results) for claim in claims]
    if output is Output.JSON:
        click.echo(json.dumps([_as_json(each) for each in settled], indent=2, ensure_ascii=False))
        return
    table = Table("row", "article", "what is asked", "verdict here", box=None, pad_edge=False)
    for each in settled:
        table.add_row(str(each.claim.row), each.claim.article, each.claim.asks, each.verdict)
    console(listing=True).print(table)
    click.echo(f"Verdicts are from the results in {results}. docs/claims.md has ours.", err=True)


@claims.command("run", cls=Command)
@rows_option
@click.option("--hardware", metavar="NAME", default="cpu", help="cpu, gpu, gpus or tpu.")
@results_option
@click.option("--again", is_flag=True, help="Rerun claims that already have results.")
@click.option("--beside", is_flag=True, help="Also run manifests that decide nothing here.")
def run(rows: str, hardware: str, results: Path, again: bool, beside: bool) -> None:
    """Run the claims that can be settled here, except those already run from the workload's present source."""
    from accelbench.cli import claimed
    from accelbench.local.interrupt import Signals
    from accelbench.plan.cases import count_cases

    claims, (here, *others) = _chosen(rows, hardware)
    if others:
        _end("error: a run takes place on one kind of hardware: --hardware cpu or --hardware gpu", Exit.USAGE)
    afresh: set[Path] = set()  # rows share runs
    whole = True
    with Signals() as signals:
        for claim in claims:
            with _told():
                runs = [each for each in claimed.runs(claim, here, results) if each.able or (beside and each.possible)]
                if beside:
                    runs += [each for each in claimed.runs(claim, here, results, beside=True) if each.possible]
            if not runs:
                click.echo(f"row {claim.row}: {_why_not(claim)}", err=True)
                continue
            stored = [{} if again else claimed.stored(each) for each in runs]
            todo = [
                (each, done)
                for each, done in zip(runs, stored, strict=True)
                if each.directory.path not in afresh and len(done) < count_cases(each.asked)
            ]
            if not todo and afresh.isdisjoint(each.directory.path for each in runs):
                click.echo(
                    f"row {claim.row}: {_settle(claim, [here], results).verdict} (already run; --again reruns it)"
                )
                continue
            click.echo(f"row {claim.row}: {claim.asks}", err=True)
            for each, done in todo:
                if missing := each.missing:
                    click.echo(f"row {claim.row}: {each.name} is left: {missing}", err=True)
                    continue
                whole &= _measure(each, signals, done)
                afresh.add(each.directory.path)
            _tell(_settle(claim, [here], results), runs)
    if not whole:
        sys.exit(Exit.INTERNAL)


def _tell(settled: "Settled", runs: "Sequence[ClaimRun]") -> None:
    """The verdict, what it rests on, and where that is."""
    from accelbench.claims.words import plainly

    row = f"row {settled.claim.row}"
    click.echo(f"{row}: {settled.verdict}")
    for sentence in settled.found:
        click.echo(f"  {plainly(sentence)}")
    for each in runs:
        if each.directory.begun:
            click.echo(f"{row}: results in {each.directory.path}", err=True)


def _why_not(claim: "Claim") -> str:
    from accelbench.claims.ledger import UNNAMED

    if claim.machine == UNNAMED:
        return "untestable anywhere: the article does not name its machine"
    return f"untestable here: it needs {claim.machine or ' or '.join(claim.hardware)}"


def _measure(run: "ClaimRun", signals: "Signals", done: "Mapping[str, Result]") -> bool:
    """All cases that are not done; ends the process where it cannot go on, or was told to stop.

    Returns whether each left its result.
    """
    from accelbench.local.device import platform_of, require_a_framework
    from accelbench.local.errors import InvalidSpecError
    from accelbench.local.run import measure
    from accelbench.report.live import display
    from accelbench.terminal.console import console

    try:
        require_a_framework(run.asked)
        with display(console(stderr=True)) as shown:
            platform = platform_of(run.asked)
            outcome = measure(run.asked, platform, run.directory, signals=signals, display=shown, done=done)
    except InvalidSpecError as error:
        _end(error.explained(), Exit.INVALID_SPEC)
    except OSError as error:
        _end(f"error: {error.filename or run.directory.path}: {error.strerror}", Exit.USAGE)
    trouble = [line for case in outcome.cases for line in case.trouble]
    for line in trouble:
        click.echo(line, err=True)
    if signals.received is not None:
        _end("interrupted: the claims that were settled are kept", outcome.exit)
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
        _end(f"error: {error}", Exit.INTERNAL)
    claims, here = _chosen(rows, hardware)
    settled = [_settle(claim, here, results) for claim in claims]
    if any(each.claim.over for each in settled):
        _require_scipy()
    link = "/".join(results.parts[1:] if results.parts[:1] == ("docs",) else results.parts)
    if pictures is not None:
        _draw(settled, pictures)
    click.echo(page(settled, about, here=here[0], results=link, pictures=drawn.described(settled)), nl=False)


def _draw(settled: "list[Settled]", directory: Path) -> None:
    from accelbench.claims import pictures
    from accelbench.local.directory import write_atomically

    if importlib.util.find_spec("matplotlib") is None:
        _end("error: pictures need matplotlib: pip install 'accelbench[report]'", Exit.USAGE)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, svg in pictures.drawn(settled).items():
            write_atomically(directory / name, svg)
    except OSError as error:
        _end(f"error: {error.filename or directory}: {error.strerror}", Exit.USAGE)


def _chosen(rows: str, hardware: str) -> "tuple[tuple[Claim, ...], list[Hardware]]":
    from accelbench.claims import ledger

    try:
        here = [ledger.hardware(name.strip()) for name in hardware.split(",")]
        return ledger.choose(ledger.load(ledger.directory()), rows), here
    except (ValueError, ledger.UnknownRowError) as error:
        _end(f"error: {error}", Exit.USAGE)
    except ledger.InvalidLedgerError as error:
        _end(f"error: {error}", Exit.INTERNAL)


def _settle(claim: "Claim", here: "Sequence[Hardware]", results: Path) -> "Settled":
    from accelbench.cli import claimed

    with _told():
        return claimed.settled(claim, here, results)


@contextmanager
def _told() -> "Iterator[None]":
    """Ends the process where a manifest, the ledger, or what settles a suite is amiss."""
    from accelbench.claims.ledger import InvalidLedgerError
    from accelbench.local.errors import InvalidSpecError

    try:
        yield
    except InvalidSpecError as error:
        _end(error.explained(), Exit.INVALID_SPEC)
    except InvalidLedgerError as error:
        _end(f"error: {error}", Exit.INTERNAL)
    except ModuleNotFoundError:
        _require_scipy()
        raise


def _require_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        _end("error: intervals over a suite need scipy: pip install 'accelbench[report]'", Exit.USAGE)


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


def _end(message: str, code: Exit) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)

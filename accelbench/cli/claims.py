"""`accelbench claims`: what articles say, run here and settled."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from accelbench.cli.exits import Exit
from accelbench.cli.options import Output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accelbench.api.result import Result
    from accelbench.api.run import BenchmarkRun
    from accelbench.claims.ledger import Claim, Hardware
    from accelbench.claims.settle import MeasuredRun, Settled
    from accelbench.cli.files import RunDirectory
    from accelbench.cli.interrupt import Signals

claims = typer.Typer(no_args_is_help=True, help="What articles say of JAX and PyTorch: list it, run it, settle it.")

Rows = Annotated[str, typer.Option("--rows", metavar="ROWS", help="Such as 2,3,28-37. Default: all.")]
On = Annotated[str, typer.Option("--hardware", metavar="NAME", help="cpu, gpu, gpus or tpu.")]
Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="Where results lie, a directory a claim.")]
DEFAULT = Path("results", "claims")
PROFILES = {"gpu": "nvidia"}
"""Hardware that a manifest does not name by itself."""


@claims.command("list")
def list_(
    rows: Rows = "",
    hardware: On = "cpu",
    results: Results = DEFAULT,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
) -> None:
    """Every claim, and what became of it as far as it was run."""
    import json

    from rich.table import Table

    from accelbench.cli.console import console

    settled = [_settle(claim, here, results) for claim, here in _chosen(rows, hardware)]
    if output is Output.JSON:
        typer.echo(json.dumps([_as_json(each) for each in settled], indent=2, ensure_ascii=False))
        return
    table = Table("row", "article", "claim", "verdict", box=None, pad_edge=False)
    for each in settled:
        table.add_row(str(each.claim.row), each.claim.article, each.claim.words, each.verdict)
    console().print(table)


@claims.command("run")
def run(
    rows: Rows = "",
    hardware: On = "cpu",
    results: Results = DEFAULT,
    again: Annotated[bool, typer.Option("--again", help="Rerun claims that already have results.")] = False,
) -> None:
    """Run the claims that this hardware can settle; what was run already is left, so that a stopped run goes on."""
    from accelbench.cli.interrupt import Signals
    from accelbench.plan.cases import count_cases

    afresh: set[Path] = set()  # rows share runs
    with Signals() as signals:
        for claim, here in _chosen(rows, hardware):
            if here not in claim.hardware:
                typer.echo(f"row {claim.row}: untestable here, it needs {' or '.join(claim.hardware)}", err=True)
                continue
            runs = list(_runs(claim, here, results))
            stored = [{} if again else _stored(asked, directory) for asked, directory in runs]
            todo = [
                (asked, directory, done)
                for (asked, directory), done in zip(runs, stored, strict=True)
                if directory.path not in afresh and len(done) < count_cases(asked)
            ]
            if not todo and afresh.isdisjoint(directory.path for _, directory in runs):
                typer.echo(
                    f"row {claim.row}: {_settle(claim, here, results).verdict} (run before; --again runs it anew)"
                )
                continue
            typer.echo(f"row {claim.row}: {claim.words}", err=True)
            for asked, directory, done in todo:
                _measure(asked, directory, signals, done)
                afresh.add(directory.path)
            settled = _settle(claim, here, results)
            typer.echo(f"row {claim.row}: {settled.verdict}")
            for sentence in settled.found:
                typer.echo(f"  {sentence}")


def _measure(
    asked: "BenchmarkRun", directory: "RunDirectory", signals: "Signals", done: "Mapping[str, Result]"
) -> None:
    """All cases that are not done; ends the process where it cannot go on, or was told to stop."""
    from accelbench.cli.console import console
    from accelbench.cli.device import platform_of
    from accelbench.cli.laptop import measure
    from accelbench.cli.live import display
    from accelbench.cli.manifests import InvalidSpecError

    try:
        with display(console(stderr=True)) as shown:
            outcome = measure(asked, platform_of(asked), directory, signals=signals, display=shown, done=done)
    except InvalidSpecError as error:
        _end(error.explained(), Exit.INVALID_SPEC)
    except OSError as error:
        _end(f"error: {error.filename or directory.path}: {error.strerror}", Exit.USAGE)
    for line in (line for case in outcome.cases for line in case.trouble):
        typer.echo(line, err=True)
    if signals.received is not None:
        _end("interrupted: the claims that were settled are kept", outcome.exit)


@claims.command("report")
def report(rows: Rows = "", hardware: On = "cpu", results: Results = DEFAULT) -> None:
    """All verdicts as a page of Markdown, with what confirms and refutes each."""
    from accelbench.claims.page import page

    chosen = _chosen(rows, hardware)
    settled = [_settle(claim, here, results) for claim, here in chosen]
    here = chosen[0][1]
    inside = (results / here).parts
    link = "/".join(inside[1:] if inside[:1] == ("docs",) else inside)
    typer.echo(page(settled, here=here, results=link), nl=False)


def _chosen(rows: str, name: str) -> "list[tuple[Claim, Hardware]]":
    from accelbench.claims import ledger

    try:
        here = ledger.hardware(name)
        return [(claim, here) for claim in ledger.choose(ledger.load(ledger.directory()), rows)]
    except (ValueError, ledger.UnknownRowError) as error:
        _end(f"error: {error}", Exit.USAGE)
    except ledger.InvalidLedgerError as error:
        _end(f"error: {error}", Exit.INTERNAL)


def _runs(claim: "Claim", here: "Hardware", results: Path) -> "Iterator[tuple[BenchmarkRun, RunDirectory]]":
    """What the claim asks on this hardware, and where its results lie."""
    from accelbench.claims import ledger
    from accelbench.cli.files import RunDirectory
    from accelbench.cli.manifests import InvalidSpecError, read

    overrides = [f"accelerator.profile={PROFILES[here]}"] if here in PROFILES else []
    for manifest, name in zip(claim.manifests, claim.names, strict=True):
        try:
            [asked] = read(str(ledger.directory() / manifest), overrides)
            ledger.check_variants(claim, manifest, asked)
        except InvalidSpecError as error:
            _end(error.explained(), Exit.INVALID_SPEC)
        except ledger.InvalidLedgerError as error:
            _end(f"error: {error}", Exit.INTERNAL)
        yield asked, RunDirectory(results / here / name)


def _stored(asked: "BenchmarkRun", directory: "RunDirectory") -> "dict[str, Result]":
    """What was measured to its end with the same manifest, by the case's name."""
    from accelbench.cli.files import UnreadableResultError

    if not directory.begun:
        return {}
    try:
        record, results = directory.load()
    except UnreadableResultError as error:
        typer.echo(f"{error}; it is run again", err=True)
        return {}
    return {result.case.name: result for result in results if result.complete} if record.run == asked else {}


def _settle(claim: "Claim", here: "Hardware", results: Path) -> "Settled":
    from accelbench.claims.settle import settle

    if here not in claim.hardware:
        return settle(claim, [], here=here)
    found = [_load_run(*run) for run in _runs(claim, here, results)]
    if claim.geometric_means and None not in found and importlib.util.find_spec("scipy") is None:
        _end("error: a mean over a suite needs scipy: pip install 'accelbench[report]'", Exit.USAGE)
    return settle(claim, found, here=here)


def _load_run(asked: "BenchmarkRun", directory: "RunDirectory") -> "MeasuredRun | None":
    """None where it was not run, or what was asked is not what the claim asks today."""
    from accelbench.claims.settle import MeasuredRun
    from accelbench.cli.files import UnreadableResultError
    from accelbench.cli.results import read

    if not directory.begun:
        return None
    try:
        found = read(directory.path)
    except UnreadableResultError as error:
        typer.echo(f"{error}; it counts as not run", err=True)
        return None
    if found.record is None or found.record.run != asked:
        return None
    return MeasuredRun(found.measured, cases=len(found.record.cases))


def _as_json(settled: "Settled") -> dict[str, object]:
    claim = settled.claim
    return {
        "row": claim.row,
        "article": claim.article,
        "claim": claim.words,
        "hardware": list(claim.hardware),
        "verdict": settled.verdict,
        "found": list(settled.found),
        "corrected": claim.corrected,
    }


def _end(message: str, code: Exit) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)

"""`accelbench claims`: what articles say, run here and settled."""

import functools
import importlib.util
from dataclasses import dataclass
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

claims = typer.Typer(no_args_is_help=True, help="Claims of articles about JAX and PyTorch: list, run, settle.")

Rows = Annotated[str, typer.Option("--rows", metavar="ROWS", help="Such as 2,3,28-37. Default: all.")]
On = Annotated[str, typer.Option("--hardware", metavar="NAME", help="cpu, gpu, gpus or tpu.")]
Results = Annotated[
    Path, typer.Option("--results", metavar="DIR", help="Where results are, a directory for each claim.")
]
DEFAULT = Path("results", "claims")
EARLIER = "earlier"
"""Below the results: those that others have replaced."""
PROFILES = {"gpu": "nvidia"}
"""Hardware that a manifest does not name by itself."""


@claims.command("list")
def list_(
    rows: Rows = "",
    hardware: On = "cpu",
    results: Results = DEFAULT,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
) -> None:
    """List every claim, with its verdict if it was run."""
    import json

    from rich.table import Table

    from accelbench.cli.console import console

    settled = [_settle(claim, here, results) for claim, here in _chosen(rows, hardware)]
    if output is Output.JSON:
        typer.echo(json.dumps([_as_json(each) for each in settled], indent=2, ensure_ascii=False))
        return
    table = Table("row", "article", "what is asked", "verdict", box=None, pad_edge=False)
    for each in settled:
        table.add_row(str(each.claim.row), each.claim.article, each.claim.asks, each.verdict)
    console().print(table)


@claims.command("run")
def run(
    rows: Rows = "",
    hardware: On = "cpu",
    results: Results = DEFAULT,
    again: Annotated[bool, typer.Option("--again", help="Rerun claims that already have results.")] = False,
    beside: Annotated[
        bool,
        typer.Option("--beside", help="Also run manifests that decide nothing here."),
    ] = False,
) -> None:
    """Run the claims that can be settled here, except those already run from the workload's present source."""
    from accelbench.cli.interrupt import Signals
    from accelbench.plan.cases import count_cases

    afresh: set[Path] = set()  # rows share runs
    whole = True
    with Signals() as signals:
        for claim, here in _chosen(rows, hardware):
            runs = [each for each in _runs(claim, here, results) if each.able or (beside and each.possible)]
            runs += [each for each in _runs(claim, here, results, beside=True) if beside and each.possible]
            if not runs:
                typer.echo(f"row {claim.row}: {_why_not(claim)}", err=True)
                continue
            stored = [{} if again else _stored(each) for each in runs]
            todo = [
                (each, done)
                for each, done in zip(runs, stored, strict=True)
                if each.directory.path not in afresh and len(done) < count_cases(each.asked)
            ]
            if not todo and afresh.isdisjoint(each.directory.path for each in runs):
                typer.echo(f"row {claim.row}: {_settle(claim, here, results).verdict} (already run; --again reruns it)")
                continue
            typer.echo(f"row {claim.row}: {claim.asks}", err=True)
            for each, done in todo:
                if missing := each.missing:
                    typer.echo(f"row {claim.row}: {each.name} is left: {missing}", err=True)
                    continue
                _keep(each.directory, results / EARLIER / each.directory.path.parent.name, done)
                whole &= _measure(each.asked, each.directory, signals, done)
                afresh.add(each.directory.path)
            settled = _settle(claim, here, results)
            typer.echo(f"row {claim.row}: {settled.verdict}")
            for sentence in settled.found:
                typer.echo(f"  {sentence}")
    if not whole:
        raise typer.Exit(Exit.INTERNAL)


def _keep(directory: "RunDirectory", earlier: Path, done: "Mapping[str, Result]") -> None:
    """Copy what is about to be replaced, or somebody could measure until the answer pleases, and hide the others."""
    import shutil

    from accelbench.claims.page import measured
    from accelbench.cli.files import REPORT_FILE, RESULT_SUFFIX, RUN_FILE, UnreadableResultError

    try:
        _, found = directory.load()
    except UnreadableResultError:
        return
    if len(found) == len(done) or not all(result.complete for result in found):
        return
    ended = max(measured(result) for result in found)
    kept = earlier / f"{directory.path.name}-{ended.date()}"
    if kept.exists():
        kept = earlier / f"{directory.path.name}-{ended:%Y-%m-%dT%H%M%S}"
    kept.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.path.iterdir()):
        if path.name in {RUN_FILE, REPORT_FILE} or path.name.endswith(RESULT_SUFFIX):
            shutil.copyfile(path, kept / path.name)


def _why_not(claim: "Claim") -> str:
    from accelbench.claims.ledger import UNNAMED

    if claim.machine == UNNAMED:
        return "untestable anywhere: the article does not name its machine"
    return f"untestable here: it needs {claim.machine or ' or '.join(claim.hardware)}"


def _measure(
    asked: "BenchmarkRun", directory: "RunDirectory", signals: "Signals", done: "Mapping[str, Result]"
) -> bool:
    """All cases that are not done; ends the process where it cannot go on, or was told to stop.

    Returns whether each left its result.
    """
    from accelbench.cli.console import console
    from accelbench.cli.device import platform_of, require_a_framework
    from accelbench.cli.laptop import measure
    from accelbench.cli.live import display
    from accelbench.cli.manifests import InvalidSpecError

    try:
        require_a_framework(asked)
        with display(console(stderr=True)) as shown:
            outcome = measure(asked, platform_of(asked), directory, signals=signals, display=shown, done=done)
    except InvalidSpecError as error:
        _end(error.explained(), Exit.INVALID_SPEC)
    except OSError as error:
        _end(f"error: {error.filename or directory.path}: {error.strerror}", Exit.USAGE)
    trouble = [line for case in outcome.cases for line in case.trouble]
    for line in trouble:
        typer.echo(line, err=True)
    if signals.received is not None:
        _end("interrupted: the claims that were settled are kept", outcome.exit)
    return not trouble


@claims.command("report")
def report(
    rows: Rows = "",
    hardware: On = "cpu",
    results: Results = DEFAULT,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", metavar="DIR", help="Draw the page's pictures, into this directory.")
    ] = None,
) -> None:
    """Print all verdicts as a Markdown page, with what confirms and refutes each."""
    from accelbench.claims import articles, ledger
    from accelbench.claims import pictures as drawn
    from accelbench.claims.page import page

    try:
        about = articles.load(ledger.directory())
    except ledger.InvalidLedgerError as error:
        _end(f"error: {error}", Exit.INTERNAL)
    chosen = _chosen(rows, hardware)
    settled = [_settle(claim, here, results) for claim, here in chosen]
    if any(each.claim.over for each in settled):
        _require_scipy()
    here = chosen[0][1]
    inside = (results / here).parts
    link = "/".join(inside[1:] if inside[:1] == ("docs",) else inside)
    if pictures is not None:
        _draw(settled, pictures)
    typer.echo(page(settled, about, here=here, results=link, pictures=drawn.described(settled)), nl=False)


def _draw(settled: "list[Settled]", directory: Path) -> None:
    from accelbench.claims import pictures
    from accelbench.cli.files import write_atomically

    if importlib.util.find_spec("matplotlib") is None:
        _end("error: pictures need matplotlib: pip install 'accelbench[report]'", Exit.USAGE)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, svg in pictures.drawn(settled).items():
            write_atomically(directory / name, svg)
    except OSError as error:
        _end(f"error: {error.filename or directory}: {error.strerror}", Exit.USAGE)


def _chosen(rows: str, name: str) -> "list[tuple[Claim, Hardware]]":
    from accelbench.claims import ledger

    try:
        here = ledger.hardware(name)
        return [(claim, here) for claim in ledger.choose(ledger.load(ledger.directory()), rows)]
    except (ValueError, ledger.UnknownRowError) as error:
        _end(f"error: {error}", Exit.USAGE)
    except ledger.InvalidLedgerError as error:
        _end(f"error: {error}", Exit.INTERNAL)


@dataclass(frozen=True)
class _Run:
    """What one of a claim's manifests asks on this hardware, and where its results lie."""

    name: str
    asked: "BenchmarkRun"
    directory: "RunDirectory"
    able: bool
    """It can be run here for the claim: on hardware that the claim is about, or for a target."""
    possible: bool
    """It can be run here at all: it asks for no other kind of device."""

    @property
    def targets(self) -> tuple[str, ...]:
        """What it compiles for in place of running."""
        return self.asked.spec.accelerator.targets or ()

    @property
    def missing(self) -> str:
        """The compilers to install before it can be run here; empty where all are there."""
        from accelbench import targets

        return "; ".join(dict.fromkeys(filter(None, (targets.find(name).missing for name in self.targets))))


def _runs(claim: "Claim", here: "Hardware", results: Path, *, beside: bool = False) -> "Iterator[_Run]":
    """Of the manifests that decide; `beside`: of those that only stand beside."""
    from accelbench.claims import ledger
    from accelbench.cli.files import RunDirectory
    from accelbench.cli.manifests import InvalidSpecError, read

    for manifest in claim.beside if beside else claim.manifests:
        name = manifest.removesuffix(".yaml")
        try:
            [asked] = read(str(ledger.directory() / manifest), [])
            if here in PROFILES and not asked.spec.accelerator.targets:
                [asked] = read(str(ledger.directory() / manifest), [f"accelerator.profile={PROFILES[here]}"])
            if not beside:
                ledger.check_variants(claim, manifest, asked)
        except InvalidSpecError as error:
            _end(error.explained(), Exit.INVALID_SPEC)
        except ledger.InvalidLedgerError as error:
            _end(f"error: {error}", Exit.INTERNAL)
        compiled = bool(asked.spec.accelerator.targets)
        directory = RunDirectory(results / ("targets" if compiled else here) / name)
        possible = compiled or asked.spec.accelerator.profile == PROFILES.get(here, "cpu")
        able = compiled or (possible and here in claim.hardware and not claim.machine)
        yield _Run(name, asked, directory, able=able, possible=possible)


def _stored(run: _Run) -> "dict[str, Result]":
    """What was measured to its end, as the same question and from the same source, by the case's name."""
    from accelbench.cli.files import UnreadableResultError

    if not run.directory.begun:
        return {}
    try:
        record, results = run.directory.load()
    except UnreadableResultError as error:
        typer.echo(f"{error}; it is run again", err=True)
        return {}
    if not _same_question(record.run, run.asked):
        return {}
    return {result.case.name: result for result in results if result.complete and not _older(result)}


def _same_question(recorded: "BenchmarkRun", asked: "BenchmarkRun") -> bool:
    """The same measurement, whatever it was expected to show."""
    unbound = [
        each.model_copy(update={"spec": each.spec.model_copy(update={"expectations": ()})})
        for each in (recorded, asked)
    ]
    return unbound[0] == unbound[1]


def _older(result: "Result") -> bool:
    """Whether the source of its workload has changed since; not, where either is not known."""
    measured, today = result.fingerprint.get("workloadSource"), _source(result.case.workload)
    return bool(measured and today) and measured != today


@functools.cache
def _source(workload: str) -> str | None:
    """The digest of a workload's source, as a result would have it today."""
    from accelbench import catalogue
    from accelbench.machine import fingerprint

    return fingerprint.of_source(type(catalogue.find(workload))).get("workloadSource")


def _settle(claim: "Claim", here: "Hardware", results: Path) -> "Settled":
    from accelbench.claims.settle import Asked, settle

    asked = [Asked(each.name, _load_run(claim, each), each.targets) for each in _runs(claim, here, results)]
    beside = [found for each in _runs(claim, here, results, beside=True) if (found := _load_run(claim, each))]
    complete = all(each.run for each in asked)
    if claim.suites and complete:
        _require_scipy()
    every = (*_runs(claim, here, results), *_runs(claim, here, results, beside=True))
    before = [found for each in every for found in _replaced(each, results)]
    return settle(claim, asked, here=here, beside=beside, before=before)


def _replaced(run: _Run, results: Path) -> "Iterator[MeasuredRun]":
    """Earlier results of the same manifest, in their order; its question may have been another."""
    from accelbench.claims.settle import MeasuredRun
    from accelbench.cli.files import UnreadableResultError
    from accelbench.cli.results import read
    from accelbench.verdict.expectations import evaluate

    there = results / EARLIER / run.directory.path.parent.name
    for record in sorted(there.glob(f"{run.name}-[0-9][0-9][0-9][0-9]-[0-9][0-9]-*/run.json")):
        try:
            found = read(record.parent)
        except UnreadableResultError as error:
            typer.echo(f"{error}; it is not shown", err=True)
            continue
        yield MeasuredRun(
            [(result, evaluate(run.asked.spec.expectations, result)) for result in found.results],
            cases=len(found.results),
            name=record.parent.name,
            older=any(_older(result) for result in found.results),
        )


def _require_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        _end("error: intervals over a suite need scipy: pip install 'accelbench[report]'", Exit.USAGE)


def _load_run(claim: "Claim", run: _Run) -> "MeasuredRun | None":
    """None where it was not run, or where something else was asked than today.

    Bounds that changed after the result are another question too, unless the ledger says why.
    """
    from accelbench.claims.page import measured
    from accelbench.claims.settle import MeasuredRun
    from accelbench.cli.files import UnreadableResultError
    from accelbench.cli.results import read
    from accelbench.verdict.expectations import evaluate

    if not run.directory.begun:
        return None
    try:
        found = read(run.directory.path)
    except UnreadableResultError as error:
        typer.echo(f"{error}; it counts as not run", err=True)
        return None
    if found.record is None or not _same_question(found.record.run, run.asked):
        return None
    decides = f"{run.name}.yaml" in claim.manifests and not claim.decides_by_itself
    changed = decides and run.able and found.record.run.spec.expectations != run.asked.spec.expectations
    explained = all(claim.explains(measured(result).date()) for result in found.results)
    if changed and not explained:
        typer.echo(
            f"row {claim.row}: the bounds of {run.name} changed after its result, and its history does not say why",
            err=True,
        )
        return None
    return MeasuredRun(
        [(result, evaluate(run.asked.spec.expectations, result)) for result in found.results],
        cases=len(found.record.cases),
        name=run.name,
        older=any(_older(result) for result in found.results),
        bounds_changed=changed or (claim.decides_by_itself and not claim.own and explained),
    )


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
    typer.echo(message, err=True)
    raise typer.Exit(code)

"""The `accelbench` command: one module a subcommand, each importing what it needs only when it runs.

`accelbench --help` imports neither pydantic nor a framework; a test holds that line.
"""

import typer

import accelbench
from accelbench.cli.check import check
from accelbench.cli.claims import claims
from accelbench.cli.compare import compare
from accelbench.cli.init import init
from accelbench.cli.profiles import profiles
from accelbench.cli.report import report
from accelbench.cli.run import run
from accelbench.cli.validate import validate
from accelbench.cli.workloads import workloads
from accelbench.local.exits import help_text
from accelbench.terminal.program import PlainCommand, PlainGroup, replace_unencodable

app = typer.Typer(
    name="accelbench",
    cls=PlainGroup,
    # Plain help: the drawn one takes longer to import than all the rest, and cannot be piped through grep.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    epilog=help_text(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=PlainCommand, epilog=help_text())(run)
app.command("init", cls=PlainCommand)(init)
app.command("check", cls=PlainCommand, epilog=help_text())(check)
app.command("validate", cls=PlainCommand)(validate)
app.command("workloads", cls=PlainCommand)(workloads)
app.command("profiles", cls=PlainCommand)(profiles)
app.command("report", cls=PlainCommand)(report)
app.command("compare", cls=PlainCommand, epilog=help_text())(compare)
app.add_typer(claims, name="claims")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"accelbench {accelbench.__version__}")
        raise typer.Exit


@app.callback()
def _accelbench(
    _version_wanted: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Which is faster, JAX or PyTorch, by how much, and how certain is that?

    Runs benchmarks on this machine. accelbench's Kubernetes operator runs the same manifests, with the same checks, in
    a cluster.
    """


def main() -> None:
    """The console script."""
    replace_unencodable()
    app()

"""`kubectl accelbench`: the plugin's commands, one module each, which import what they need only when they run.

kubectl finds it as `kubectl-accelbench` in PATH, and passes on whatever stands after `kubectl accelbench`.
"""

import sys

import typer

import accelbench
from accelbench.kubectl.cancel import cancel
from accelbench.kubectl.compare import compare
from accelbench.kubectl.logs import logs
from accelbench.kubectl.ls import ls
from accelbench.kubectl.profiles import profiles
from accelbench.kubectl.report import report
from accelbench.kubectl.rerun import rerun
from accelbench.kubectl.run import run
from accelbench.local.exits import help_text
from accelbench.terminal.program import PlainCommand, PlainGroup, replace_unencodable

COMPLETE = "__complete"
"""What kubectl's own plugins answer to: the words of a command line, the one to complete last."""

app = typer.Typer(
    name="kubectl accelbench",
    cls=PlainGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    epilog=help_text(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=PlainCommand, epilog=help_text())(run)
app.command("rerun", cls=PlainCommand, epilog=help_text())(rerun)
app.command("ls", cls=PlainCommand)(ls)
app.command("logs", cls=PlainCommand)(logs)
app.command("cancel", cls=PlainCommand)(cancel)
app.command("report", cls=PlainCommand, epilog=help_text())(report)
app.command("compare", cls=PlainCommand, epilog=help_text())(compare)
app.command("profiles", cls=PlainCommand)(profiles)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kubectl accelbench {accelbench.__version__}")
        raise typer.Exit


@app.callback()
def _kubectl_accelbench(
    _version_wanted: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Run benchmarks in a cluster: which is faster, JAX or PyTorch, by how much, and how certain is that?

    Speaks to accelbench's operator through BenchmarkRuns, with your kubeconfig. `accelbench` measures on this machine.
    """


def main() -> None:
    """The console script."""
    replace_unencodable()
    if sys.argv[1:2] == [COMPLETE]:
        from accelbench.kubectl.complete import complete

        complete(sys.argv[2:])
        return
    app(prog_name="kubectl accelbench")

"""Assemble `kubectl accelbench` from one module for each command, which imports what it needs only when it runs.

kubectl finds the plugin as `kubectl-accelbench` in PATH and passes on all words after `kubectl accelbench`.
"""

import sys

import click

import accelbench
from accelbench.kubectl.cancel import cancel
from accelbench.kubectl.compare import compare
from accelbench.kubectl.complete import complete
from accelbench.kubectl.logs import logs
from accelbench.kubectl.ls import ls
from accelbench.kubectl.profiles import profiles
from accelbench.kubectl.report import report
from accelbench.kubectl.rerun import rerun
from accelbench.kubectl.run import run
from accelbench.local.exits import help_text
from accelbench.terminal.program import CONTEXT_SETTINGS, Group, replace_unencodable

COMPLETE = "__complete"
"""First word with which kubectl asks a plugin to complete the words that follow."""


@click.group("kubectl accelbench", cls=Group, epilog=help_text(), context_settings=CONTEXT_SETTINGS)
@click.version_option(
    accelbench.__version__, message="kubectl accelbench %(version)s", help="Print the version and exit."
)
def app() -> None:
    """Run benchmarks in a cluster: which is faster, JAX or PyTorch, by how much, and how certain is that?

    Speaks to accelbench's operator through BenchmarkRuns, with your kubeconfig. `accelbench` measures on this machine.
    """


for command in (run, rerun, ls, logs, cancel, report, compare, profiles):
    app.add_command(command)


def main() -> None:
    """Run the console script `kubectl-accelbench`."""
    replace_unencodable()
    if sys.argv[1:2] == [COMPLETE]:  # kubectl asks for completions of the words that follow
        complete(app, sys.argv[2:])
        return
    app(prog_name="kubectl accelbench")


def main_complete() -> None:
    """Run the console script `kubectl_complete-accelbench`."""
    complete(app, sys.argv[1:])

"""Define the `accelbench` command, with one module for each subcommand.

Subcommands import inside their functions, so that `accelbench --help` imports neither pydantic nor a framework.
"""

import click

import accelbench
from accelbench.cli.check import check
from accelbench.cli.claims import claims
from accelbench.cli.compare import compare
from accelbench.cli.init import init
from accelbench.cli.profiles import profiles
from accelbench.cli.report import report
from accelbench.cli.run import run
from accelbench.cli.suite import suite
from accelbench.cli.validate import validate
from accelbench.cli.versions import versions
from accelbench.cli.workloads import workloads
from accelbench.local.exits import help_text
from accelbench.terminal.program import CONTEXT_SETTINGS, Group, replace_unencodable


@click.group("accelbench", cls=Group, epilog=help_text(), context_settings=CONTEXT_SETTINGS)
@click.version_option(accelbench.__version__, message="accelbench %(version)s", help="Print the version and exit.")
def app() -> None:
    """Compare JAX and PyTorch: which is faster, by how much, and how certain is that?

    Runs benchmarks on this machine. accelbench's Kubernetes operator runs the same manifests, with the same checks, in
    a cluster.
    """


for command in (run, init, check, validate, workloads, profiles, report, compare, suite, versions, claims):
    app.add_command(command)


def main() -> None:
    """Run the console script `accelbench`."""
    replace_unencodable()
    app()

"""Implement `accelbench versions`: compare releases of a framework with each other, on one page."""

from collections.abc import Sequence
from pathlib import Path

import click

from accelbench.local.exits import help_text
from accelbench.terminal.options import Output, assignments_option, output_option
from accelbench.terminal.program import Command


@click.command(cls=Command, epilog=help_text())
@click.argument(
    "releases",
    metavar="RELEASE...",
    nargs=-1,
    required=True,
    help="What to install, the baseline first: jax==0.9.2. With other packages or a Python, in quotes: "
    "'jax==0.12.0.1 flax==0.12.8 python3.12'.",
)
@click.option(
    "--workload",
    "workloads",
    metavar="FILE",
    multiple=True,
    help="A workload's name, a script (.py) or a BenchmarkRun manifest to compare the releases by; repeatable.",
)
@click.option("--suite", "suite_name", metavar="SUITE", help="A suite's file or name, instead of --workload.")
@click.option(
    "--variant",
    "variants",
    metavar="USE",
    multiple=True,
    help="How the workload or script runs, such as jax/scan; repeatable. Default: the usual ones of that framework.",
)
@assignments_option
@click.option(
    "--results",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where results are kept, a directory for each run. Default: results/versions/RELEASES.",
)
@click.option("--again", is_flag=True, help="Measure runs again that already have results.")
@output_option(Output, "How to print the report.")
def versions(
    releases: Sequence[str],
    workloads: Sequence[str],
    suite_name: str | None,
    variants: Sequence[str],
    assignments: Sequence[str],
    results: Path | None,
    *,
    again: bool,
    output: Output,
) -> None:
    """Compare releases of a framework on the same programs.

    uv installs each release into an environment of its own. The releases take turns in one run, as variants of a
    manifest do. The page first shows what a call runs in each release, which needs no quiet machine; then the speedups
    over the first release; then which other packages differ between the environments.

    Ctrl-C keeps what is measured; the same command continues. `accelbench suite report DIR` shows the page again.
    """
    from accelbench.cli import shipped_suites, suite_runs
    from accelbench.local import versions as planning
    from accelbench.local.errors import UsageError
    from accelbench.local.suites.directory import SuiteDirectory

    parsed_releases = planning.read_releases(releases)
    has_suite = suite_name is not None
    if bool(workloads) == has_suite:  # both or neither
        raise UsageError("give either --workload, what to compare the releases by, or --suite", planning.WORKLOAD)
    if suite_name is None:
        planned_runs = planning.plan_targets(workloads, variants, assignments, parsed_releases)
    elif variants:
        raise UsageError("the entries of a suite list their variants themselves, in spec.runs[].variants", "--variant")
    else:
        suite, source = shipped_suites.read(suite_name)
        planned_runs = planning.plan_suite(suite, source, assignments, parsed_releases)
    directory = SuiteDirectory(results or Path("results", "versions", planning.directory_name(parsed_releases)))
    suite_runs.measure(directory, ", ".join(releases), "", planned_runs, again=again, output=output)

"""Complete the arguments of `kubectl accelbench ...` on the command line of a shell.

kubectl's completion script calls `kubectl_complete-accelbench` with the arguments so far; the last is the one to
complete. The answer has the format of cobra's commands: a line for each choice, its description after a tab, and at
the end the number of a directive. The script passes the answer on to bash, zsh and fish.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

FILES, NO_FILES = ":0", ":4"
"""Directives of cobra: the shell completes file names, or completes only the given choices."""

Items = list[CompletionItem[str]]


def complete(app: click.Group, arguments: Sequence[str]) -> None:
    """Print completions of the last argument for the shell; after an error, print none."""
    try:
        lines = list(_answer_lines(app, arguments))
    except (Exception, SystemExit):  # noqa: BLE001 - a message would disturb the user
        lines = [NO_FILES]  # no choices, and no names of files either
    sys.stdout.write("\n".join(lines) + "\n")


def _answer_lines(app: click.Group, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the completions of the last argument, then a directive for the shell."""
    *earlier_arguments, last_argument = arguments or ("",)
    # After an unknown command, click would offer the commands again.
    if earlier_arguments and earlier_arguments[0] not in app.commands:
        yield NO_FILES
        return
    items = ShellComplete(app, {}, app.name or "", "").get_completions(earlier_arguments, last_argument)
    if any(item.type in {"file", "dir"} for item in items):
        yield FILES
        return
    # For `--option=value`, click returns only values, but kubectl needs the whole argument.
    option, equals_sign, _ = last_argument.partition("=")
    prefix = f"{option}=" if last_argument.startswith("--") and equals_sign else ""
    for item in items:
        description = f"\t{item.help}" if item.help else ""
        yield f"{prefix}{item.value}{description}"
    yield NO_FILES


def contexts(context: click.Context, _parameter: click.Parameter, prefix: str) -> Items:
    """Complete the name of a context of the kubeconfig."""
    from accelbench.cluster_api import client

    names = client.contexts(context.params.get("kubeconfig"))
    return _matching_items(prefix, [(name, "") for name in names])


def namespaces(context: click.Context, _parameter: click.Parameter, prefix: str) -> Items:
    """Complete the name of a namespace of the cluster."""
    from accelbench.cluster_api.kinds import NAMESPACE

    with _connect(context) as client:
        return _matching_items(prefix, [(item["metadata"]["name"], "") for item in client.items(NAMESPACE.path())])


def runs(context: click.Context, _parameter: click.Parameter, prefix: str) -> Items:
    """Complete the name of a run that is not on the command line yet."""
    from accelbench.cluster_api.kinds import RUN

    # `cancel` takes any number of `names`; in `compare`, `before` is given when `after` is completed.
    names_on_line = {*(context.params.get("names") or ()), context.params.get("before")}
    with _connect(context) as client:
        items = client.items(RUN.path(client.namespace))
    phases = {item["metadata"]["name"]: (item.get("status") or {}).get("phase", "") for item in items}
    return _matching_items(prefix, [(name, phase) for name, phase in phases.items() if name not in names_on_line])


def cases(context: click.Context, _parameter: click.Parameter, prefix: str) -> Items:
    """Complete the name of a case of the run on the command line."""
    from accelbench.kubectl.runs import get_run, parse_run
    from accelbench.plan.cases import plan_cases

    # If the line ends in an option without its value, click parses no argument and leaves the run's name in `args`.
    run_name = context.params.get("name") or context.args[0]
    with _connect(context) as client:
        run = parse_run(get_run(client, run_name))
    choices = []
    for case in plan_cases(run):
        description = ", ".join(f"{parameter} {value}" for parameter, value in case.swept.items())
        choices.append((case.name, description))
    return _matching_items(prefix, choices)


def _connect(context: click.Context) -> "Client":
    """Connect with the options that the command line has so far."""
    from accelbench.cluster_api.client import connect

    options = context.params
    return connect(options.get("context"), options.get("kubeconfig"), options.get("namespace"))


def _matching_items(prefix: str, names_with_descriptions: Sequence[tuple[str, str]]) -> Items:
    """Return an item for each pair of a name that starts with `prefix` and its description."""
    return [
        CompletionItem(name, help=description)
        for name, description in names_with_descriptions
        if name.startswith(prefix)
    ]

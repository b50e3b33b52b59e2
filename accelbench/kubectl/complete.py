"""Complete the words of `kubectl accelbench ...`.

kubectl's completion script calls `kubectl_complete-accelbench` with the words so far, the one to complete last. The
answer has the format of cobra's commands: a line for each choice, its description after a tab, and at the end the
number of a directive. The script passes it on to bash, zsh and fish.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

FILES, NO_FILES = ":0", ":4"
"""Directives: the shell completes file names, or does not."""

Items = list[CompletionItem[str]]


def complete(app: click.Group, words: Sequence[str]) -> None:
    """Print the answer; after any error complete nothing, because a message would disturb the line being typed."""
    try:
        answer = list(_answer_lines(app, words))
    except (Exception, SystemExit):  # noqa: BLE001 - see above
        answer = [NO_FILES]
    sys.stdout.write("\n".join(answer) + "\n")


def _answer_lines(app: click.Group, words: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the answer, the directive last."""
    *arguments, word = words or ("",)
    if arguments and arguments[0] not in app.commands:
        yield NO_FILES
        return
    items = ShellComplete(app, {}, app.name or "", "").get_completions(arguments, word)
    if any(item.type in {"file", "dir"} for item in items):
        yield FILES
        return
    # kubectl wants the whole word, of which click completes what follows `--option=`.
    option, equals, _ = word.partition("=")
    prefix = f"{option}=" if word.startswith("--") and equals else ""
    for item in items:
        yield f"{prefix}{item.value}\t{item.help}" if item.help else f"{prefix}{item.value}"
    yield NO_FILES


def contexts(context: click.Context, _parameter: click.Parameter, begin: str) -> Items:
    """Complete a context of the kubeconfig."""
    from accelbench.cluster_api.client import contexts

    return _starting_with(begin, [(name, "") for name in contexts(context.params.get("kubeconfig"))])


def namespaces(context: click.Context, _parameter: click.Parameter, begin: str) -> Items:
    """Complete a namespace of the cluster."""
    from accelbench.cluster_api.kinds import NAMESPACE

    with _connect(context) as client:
        return _starting_with(begin, [(item["metadata"]["name"], "") for item in client.items(NAMESPACE.path())])


def runs(context: click.Context, _parameter: click.Parameter, begin: str) -> Items:
    """Complete the name of a run that the command line does not have yet."""
    from accelbench.cluster_api.kinds import RUN

    names_on_line = {*(context.params.get("names") or ()), context.params.get("before")}
    with _connect(context) as client:
        items = client.items(RUN.path(client.namespace))
    choices = [(item["metadata"]["name"], (item.get("status") or {}).get("phase", "")) for item in items]
    return _starting_with(begin, [(name, phase) for name, phase in choices if name not in names_on_line])


def cases(context: click.Context, _parameter: click.Parameter, begin: str) -> Items:
    """Complete a case of the run that the command line names; describe it by its swept parameters."""
    from accelbench.kubectl.runs import parse_run, run_named
    from accelbench.plan.cases import plan_cases

    # click parses no argument of a line that ends in an option without its value.
    name = context.params.get("name") or context.args[0]
    with _connect(context) as client:
        run = parse_run(run_named(client, name))
    choices = [
        (case.name, ", ".join(f"{name} {value}" for name, value in case.swept.items())) for case in plan_cases(run)
    ]
    return _starting_with(begin, choices)


def _connect(context: click.Context) -> "Client":
    """Connect with the options that the command line has so far."""
    from accelbench.cluster_api.client import connect

    options = context.params
    return connect(options.get("context"), options.get("kubeconfig"), options.get("namespace"))


def _starting_with(begin: str, choices: Sequence[tuple[str, str]]) -> Items:
    return [CompletionItem(name, help=description) for name, description in choices if name.startswith(begin)]

"""`kubectl_complete-accelbench`: what kubectl asks while a shell completes `kubectl accelbench ...`.

It is called with the words so far, the one to complete last, and answers as cobra's commands do: a line for each
choice, its description after a tab, and the number of a directive at the end. kubectl's own completion script carries
the answer into bash, zsh and fish.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelbench.kubectl.words import Command, Parameter, commands

ANY_FILE = ":0"
"""The directive by which the shell completes files."""
NOTHING_ELSE = ":4"
FILES = ("files", "kubeconfig")
RUNS = {
    "name": ("logs", "report"),
    "names": ("cancel",),
    "old": ("rerun",),
    "before": ("compare",),
    "after": ("compare",),
}
"""Parameters that a run's name goes to, and of which commands."""

Choices = Iterable[tuple[str, str]]


@dataclass
class Line:
    """A command line that is being written."""

    command: Command | None = None
    awaited: Parameter | None = None
    """The option whose value comes next."""
    arguments: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)


def main() -> None:
    """The console script."""
    complete(sys.argv[1:])


def complete(words: Sequence[str]) -> None:
    """Print the answer; whatever goes wrong completes nothing, as a person in mid-sentence is asked no questions."""
    try:
        answer = [*answered(words)]
    except (Exception, SystemExit):  # noqa: BLE001 - see above
        answer = [NOTHING_ELSE]
    sys.stdout.write("\n".join(answer) + "\n")


def answered(words: Sequence[str]) -> Iterator[str]:
    """The lines of the answer."""
    *before, last = words or ("",)
    from accelbench.kubectl.main import app

    known = commands(app)
    line = _read(known, before)
    if line.command is None:
        yield from _fitting(((name, _first_line(each.help)) for name, each in known.items()), last)
        yield NOTHING_ELSE
        return
    option, equals, begun = last.partition("=")
    if last.startswith("--") and equals:
        wanted = line.command.option(option)
        yield from (f"{option}={choice}" for choice in _fitting(_values(wanted, line), begun))
    elif line.awaited is not None:
        wanted = line.awaited
        yield from _fitting(_values(wanted, line), last)
    elif last.startswith("-"):
        wanted = None
        yield from _fitting(_options(line.command), last)
    else:
        wanted = _next_argument(line.command, len(line.arguments))
        yield from _fitting(_values(wanted, line), last)
    yield ANY_FILE if wanted is not None and wanted.name in FILES else NOTHING_ELSE


def _read(known: Mapping[str, Command], words: Sequence[str]) -> Line:
    line = Line()
    for word in words:
        if line.command is None:
            line.command = known[word]
        elif line.awaited is not None:
            line.options[line.awaited.name], line.awaited = word, None
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            option = line.command.option(name)
            if option is not None and equals:
                line.options[option.name] = value
            elif option is not None and not option.is_flag:
                line.awaited = option
        else:
            line.arguments.append(word)
    return line


def _options(command: Command) -> Choices:
    for each in command.options:
        yield from ((name, each.help) for name in each.options)
    yield "--help", "Show this message and exit."


def _next_argument(command: Command, given: int) -> Parameter | None:
    if command.arguments and command.arguments[-1].repeated:
        return command.arguments[-1]
    return command.arguments[given] if given < len(command.arguments) else None


def _values(parameter: Parameter | None, line: Line) -> Choices:
    """What may stand for the parameter; a cluster is asked where only it knows."""
    if parameter is None or line.command is None:
        return ()
    if parameter.choices:
        return ((each, "") for each in parameter.choices)
    if parameter.name == "context":
        from accelbench.cluster_api.client import contexts

        return ((name, "") for name in contexts(_kubeconfig(line)))
    if parameter.name == "namespace":
        return _asked(line, "/api/v1/namespaces")
    if line.command.name in RUNS.get(parameter.name, ()):
        return ((name, told) for name, told in _runs(line) if name not in line.arguments)
    return _cases(line) if parameter.name == "case" and line.arguments else ()


def _kubeconfig(line: Line) -> Any:
    from pathlib import Path

    return Path(line.options["kubeconfig"]) if "kubeconfig" in line.options else None


def _server(line: Line) -> Any:
    from accelbench.cluster_api.client import connect

    return connect(line.options.get("context"), _kubeconfig(line), line.options.get("namespace"))


def _asked(line: Line, at: str) -> Choices:
    with _server(line) as client:
        return [(each["metadata"]["name"], "") for each in client.items(at)]


def _runs(line: Line) -> Choices:
    from accelbench.cluster_api.kinds import RUN

    with _server(line) as client:
        return [
            (each["metadata"]["name"], (each.get("status") or {}).get("phase", ""))
            for each in client.items(RUN.path(client.namespace))
        ]


def _cases(line: Line) -> Choices:
    from accelbench.kubectl.runs import parsed, run_named
    from accelbench.plan.cases import plan_cases

    with _server(line) as client:
        run = parsed(run_named(client, line.arguments[0]))
    return [(case.name, ", ".join(f"{name} {value}" for name, value in case.swept.items())) for case in plan_cases(run)]


def _fitting(choices: Choices, begun: str) -> Iterator[str]:
    for name, told in choices:
        if name.startswith(begun):
            yield f"{name}\t{told}" if told else name


def _first_line(text: str) -> str:
    return text.partition("\n")[0]

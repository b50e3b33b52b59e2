"""The help of every command, of `accelbench` and of `kubectl accelbench`."""

from collections.abc import Iterator

import typer
from typer.testing import CliRunner

from accelbench.cli.main import app
from accelbench.kubectl import words
from accelbench.kubectl.main import app as plugin
from accelbench.local.exits import Exit
from accelbench.report.markdown import markdown_table

CLI = """# The command line

The help of every command. Generated from the code by `python docs/reference/build.py`.
"""
KUBECTL = """# kubectl accelbench

Every command. Generated from the code by `python docs/reference/build.py`. In a terminal:
`kubectl accelbench COMMAND --help`. [The guide](../kubectl.md) explains what they are for.
"""


def cli() -> str:
    """A section for each command, in the words of its `--help`."""
    root = typer.main.get_command(app)
    return "\n\n".join([CLI.rstrip(), *_commands(root, ())]) + "\n"


def _commands(command: object, path: tuple[str, ...]) -> Iterator[str]:
    said = CliRunner().invoke(app, [*path, "--help"], prog_name="accelbench", env={"COLUMNS": "100"}).stdout
    yield f"## {' '.join(('accelbench', *path))}\n\n```text\n{said.strip()}\n```"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


def kubectl() -> str:
    """A section each, and what the exit codes mean."""
    sections = [f"## {each.name}\n\n{_command(each)}" for each in words.commands(plugin).values()]
    codes = [(str(code.value), code.meaning) for code in sorted(Exit)]
    table = markdown_table(("code", "what it means"), codes, right=set())
    return "\n\n".join([KUBECTL.rstrip(), *sections, f"## Exit codes\n\n{table}"]) + "\n"


def _command(command: words.Command) -> str:
    usage = " ".join(["kubectl accelbench", command.name, *(each.metavar for each in command.arguments), "[OPTIONS]"])
    rows = [
        (", ".join(each.options) or each.metavar, _values(each), each.help)
        for each in (*command.arguments, *command.options)
    ]
    told = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
    return f"```text\n{usage}\n```\n\n{told}\n\n{markdown_table(('', 'allowed', 'what it is'), rows, right=set())}"


def _values(parameter: words.Parameter) -> str:
    allowed = (f"{each} (default)" if each == parameter.default else each for each in parameter.choices)
    return ", ".join(allowed) or (parameter.metavar if parameter.options else "")

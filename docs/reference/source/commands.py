"""Write the help of every command of `accelbench` and of `kubectl accelbench`."""

from collections.abc import Iterator

import click
from click.testing import CliRunner

from accelbench.cli.main import app
from accelbench.kubectl.main import app as plugin
from accelbench.local.exits import Exit
from accelbench.report.markdown import markdown_table

CLI = """# The command line

The help of every command. Generated from the code by `python docs/reference/build.py`.
"""
CHECKS = f"""## Exit codes and checks

`accelbench check` ends with
- {Exit.SUCCESS:d} if no [check](checks.md) failed. Some may be untested, also `formula` and `parity`. The last line
  then is "Nothing failed, but not everything could be checked.";
- {Exit.VARIANT_FAILED:d} if a variant raised an exception or did not finish;
- {Exit.INVALID_MEASUREMENT:d} if a check failed.

`accelbench run` ends with
- {Exit.SUCCESS:d} if each comparison has a verdict, which may be `inconclusive`: on both sides no check failed, and
  `parity` and `non-finite` passed. Other checks may be untested, also `formula`;
- {Exit.VARIANT_FAILED:d} if a variant raised an exception or did not finish;
- {Exit.INVALID_MEASUREMENT:d} if a comparison has no verdict: a check failed, or `parity` or `non-finite` is untested.

A script that wants more than code {Exit.SUCCESS:d} reads the outcomes: `accelbench check FILE --output json` has them
under `variants[].checks[].outcome`, and a result under `certificate.checks[].outcome`.
"""
KUBECTL = """# kubectl accelbench

Every command. Generated from the code by `python docs/reference/build.py`. In a terminal:
`kubectl accelbench COMMAND --help`. [The guide](../kubectl.md) explains what they are for.
"""


def cli() -> str:
    """Return the page of `accelbench`: a section for each command with its `--help`, and the exit codes."""
    return "\n\n".join([CLI.rstrip(), *_commands(app, ()), CHECKS])


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    """Yield a section for the command at `path`, such as `("claims", "run")`, then one for each of its subcommands."""
    run = CliRunner().invoke(app, [*path, "--help"], prog_name="accelbench", env={"COLUMNS": "100"})
    yield f"## {' '.join(('accelbench', *path))}\n\n```text\n{run.stdout.strip()}\n```"
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            yield from _commands(subcommand, (*path, name))


def kubectl() -> str:
    """Return the page of the kubectl plugin: a section for each command, and a table of the exit codes."""
    sections = [f"## {name}\n\n{_command(name, command)}" for name, command in plugin.commands.items()]
    codes = [(str(code.value), code.meaning) for code in sorted(Exit)]
    table = markdown_table(("code", "what it means"), codes, right=set())
    return "\n\n".join([KUBECTL.rstrip(), *sections, f"## Exit codes\n\n{table}"]) + "\n"


def _command(name: str, command: click.Command) -> str:
    """Return the section of a command of the plugin: its usage, its help, and a table of its parameters."""
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    usage = " ".join(
        ["kubectl accelbench", name, *(argument.human_readable_name for argument in arguments), "[OPTIONS]"]
    )
    rows = [
        *((argument.human_readable_name, "", argument.help or "") for argument in arguments),
        *((", ".join(option.opts), _values(option), option.help or "") for option in options),
    ]
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    return f"```text\n{usage}\n```\n\n{text}\n\n{markdown_table(('', 'allowed', 'what it is'), rows, right=set())}"


def _values(option: click.Option) -> str:
    """Return the choices of an option, or the name of its value; empty for a flag."""
    if not isinstance(option.type, click.Choice):
        return "" if option.is_flag else option.metavar or ""
    choices = [str(choice) for choice in option.type.choices]
    return ", ".join(f"{choice} (default)" if choice == option.default else choice for choice in choices)

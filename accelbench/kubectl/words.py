"""The plugin's words: its commands, their options and arguments, and what each may be, from the functions themselves.

What completes a command line and what writes the reference read them here; typer's own objects differ from one release
to the next.
"""

import inspect
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo


@dataclass(frozen=True)
class Parameter:
    """An option, or an argument, which has no `options`."""

    name: str
    """The function's parameter."""
    options: tuple[str, ...]
    metavar: str
    help: str
    choices: tuple[str, ...]
    default: str
    is_flag: bool
    repeated: bool


@dataclass(frozen=True)
class Command:
    """A command and its parameters, in the order in which `--help` lists them."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """Those that are told by their place."""
        return tuple(each for each in self.parameters if not each.options)

    @property
    def options(self) -> tuple[Parameter, ...]:
        """Those that are told by their name."""
        return tuple(each for each in self.parameters if each.options)

    def option(self, name: str) -> Parameter | None:
        """The option that is written so."""
        return next((each for each in self.options if name in each.options), None)


def commands(app: typer.Typer) -> Mapping[str, Command]:
    """All commands by their names."""
    return {
        each.name: Command(each.name, inspect.getdoc(each.callback) or "", tuple(_parameters(each.callback)))
        for each in app.registered_commands
        if each.name and each.callback
    }


def _parameters(function: Any) -> Iterator[Parameter]:
    signature = inspect.signature(function).parameters
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        # The innermost: `Annotated[str | None, ...]` may stand for itself alone.
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, OptionInfo | ArgumentInfo):
                yield _parameter(name, typing.get_args(hint)[0], info, signature[name].default)


def _parameter(name: str, annotation: Any, info: OptionInfo | ArgumentInfo, default: Any) -> Parameter:
    kinds = [annotation, *typing.get_args(annotation)]
    is_option = isinstance(info, OptionInfo)
    # In Annotated, typer has the first name of an option where its default would be.
    first = (info.default,) if isinstance(info.default, str) else ()
    written = (*first, *(info.param_decls or ())) or (f"--{name.replace('_', '-')}",)
    choices = next((each for each in kinds if isinstance(each, type) and issubclass(each, Enum)), None)
    return Parameter(
        name=name,
        options=written if is_option else (),
        metavar=info.metavar or "",
        help=info.help or "",
        choices=tuple(str(each.value) for each in choices) if choices else (),
        default="" if default in {None, inspect.Parameter.empty} else str(getattr(default, "value", default)),
        is_flag=annotation is bool,
        repeated=any(typing.get_origin(each) is list for each in kinds),
    )

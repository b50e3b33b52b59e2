"""Describe what is wrong with a manifest in the same way everywhere: the field, the mistake, what to do."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from accelbench.document import on_one_line


@dataclass(frozen=True)
class Problem:
    """Describe one mistake in one field; `path` is as kubectl writes it: `spec.variants[1].use`."""

    path: str
    message: str

    def __str__(self) -> str:
        """Return `path: message`, or the message alone without a path."""
        return on_one_line(f"{self.path}: {self.message}" if self.path else self.message)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return `unknown WHAT "NAME"`, with the nearest known name, or all of them if none is near."""
    return f'unknown {what} "{name}"; {nearest(name, known)}'


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME?`, or all known names if none is near."""
    choices = sorted(known)
    suggestion = similar(name, choices)
    return f"did you mean {suggestion}?" if suggestion else f"one of: {', '.join(choices)}"


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the nearest known name, or None if none is near."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), None)

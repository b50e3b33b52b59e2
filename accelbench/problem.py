"""What is wrong with a manifest, said the same way at every door: which field, what about it, what to do."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from accelbench.document import on_one_line


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one field; `path` as kubectl writes it: `spec.variants[1].use`."""

    path: str
    message: str

    def __str__(self) -> str:
        """`path: message`, or the message alone where no field is to blame."""
        return on_one_line(f"{self.path}: {self.message}" if self.path else self.message)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """`unknown WHAT "NAME"`, with the nearest known name, or all of them where none is near."""
    return f'unknown {what} "{name}"; {nearest(name, known)}'


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean NAME?`, or all known names where none is near."""
    choices = sorted(known)
    near = similar(name, choices)
    return f"did you mean {near}?" if near else f"one of: {', '.join(choices)}"


def similar(name: str, known: Iterable[str]) -> str | None:
    """The known name that it is nearest to, if one is near."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), None)

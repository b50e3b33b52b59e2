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
        """Return `path: message`; without a path, the message alone."""
        text = f"{self.path}: {self.message}" if self.path else self.message
        return on_one_line(text)


def describe_unknown(kind: str, name: str, known_names: Iterable[str]) -> str:
    """Return the message `unknown KIND "NAME"; did you mean OTHER?`, or a list of all names if none is similar."""
    return f'unknown {kind} "{name}"; {suggest_name(name, known_names)}'


def suggest_name(name: str, known_names: Iterable[str]) -> str:
    """Return `did you mean OTHER?` or, if no known name is similar, `one of: ` and all of them."""
    choices = sorted(known_names)
    suggestion = find_similar(name, choices)
    return f"did you mean {suggestion}?" if suggestion else f"one of: {', '.join(choices)}"


def find_similar(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`; None if none is similar."""
    # difflib's default: at least 60 % of the characters of both names match.
    matches = difflib.get_close_matches(name, sorted(known_names), n=1, cutoff=0.6)
    return matches[0] if matches else None

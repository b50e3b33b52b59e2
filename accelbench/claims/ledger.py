"""The ledger: for each claim its words, what confirms and what refutes it, and the manifest that asks.

The claim itself is the manifest's expectations; nothing here decides anything.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, get_args

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from accelbench.document import Document

Hardware = Literal["cpu", "gpu", "gpus", "tpu"]
"""`gpus`: several in one machine."""
ARTICLES = {
    "A0": "why-jax-feels-faster",
    "A1": "jax-vs-pytorch-performance",
    "A2": "first-looking-into-jax",
    "A3": "jax-from-basics-to-internals",
    "A4": "pytorch-vs-jax-comparison",
}
LEDGER = "ledger.yaml"


class Claim(Document):
    """One row."""

    row: Annotated[int, Field(ge=1)]
    article: Literal["A0", "A1", "A2", "A3", "A4"]
    words: Annotated[str, Field(min_length=1)]
    """Its own, in short."""
    hardware: tuple[Hardware, ...]
    """On any of these the claim can be tested."""
    manifest: str
    """The file beside the ledger."""
    confirms: Annotated[str, Field(min_length=1)]
    refutes: Annotated[str, Field(min_length=1)]
    corrected: str = ""
    """How it should have been said; empty where the words will do."""

    @property
    def name(self) -> str:
        """Of its directory of results: the manifest's."""
        return self.manifest.removesuffix(".yaml")


class InvalidLedgerError(Exception):
    """There is no ledger, or it is not one; the message says which and where."""


class UnknownRowError(Exception):
    """A row that the ledger does not have."""


def directory() -> Path:
    """Where the claims lie: in an installed package beside this module, in a checkout among the examples."""
    packaged = Path(__file__).with_name("rows")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "examples" / "claims"


def load(path: Path) -> tuple[Claim, ...]:
    """All claims of the ledger in the directory `path`, by row; raises InvalidLedgerError."""
    file = path / LEDGER
    try:
        claims = TypeAdapter(tuple[Claim, ...]).validate_python(yaml.safe_load(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidLedgerError(f"{file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidLedgerError(f"{file}: {where}: {first['msg']}") from error
    rows = [claim.row for claim in claims]
    if twice := {row for row in rows if rows.count(row) > 1}:
        raise InvalidLedgerError(f"{file}: row {min(twice)} is there twice")
    return tuple(sorted(claims, key=lambda claim: claim.row))


def choose(claims: Iterable[Claim], rows: str) -> tuple[Claim, ...]:
    """The claims that `rows` names, as in `2,3,28-37`; all where it is empty. Raises UnknownRowError."""
    known = {claim.row: claim for claim in claims}
    if not rows.strip():
        return tuple(known.values())
    wanted: list[int] = []
    for part in rows.split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise UnknownRowError(f"{part.strip()!r} is no row and no range of rows, such as 28 or 28-37")
        several = [row for row in known if int(first) <= row <= int(last or first)]
        if not several:
            raise UnknownRowError(f"no claim in row {part.strip()}; there are {_ranges(known)}")
        wanted += several
    return tuple(known[row] for row in dict.fromkeys(wanted))


def hardware(name: str) -> Hardware:
    """The hardware of that name; raises ValueError."""
    for known in get_args(Hardware):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"no hardware is called {name}; there are {', '.join(get_args(Hardware))}")


def _ranges(rows: Iterable[int]) -> str:
    """`2, 3, 28 to 37`."""
    ordered = sorted(rows)
    runs: list[list[int]] = []
    for row in ordered:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)  # noqa: PLR2004

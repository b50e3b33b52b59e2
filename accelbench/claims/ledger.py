"""The ledger: for each claim its words, what confirms and what refutes it, and the manifest that asks.

The claim itself is the manifest's expectations, or for a whole suite geometric means over the results of several.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from accelbench.api.run import BenchmarkRun, Bound, VariantName
from accelbench.document import Document
from accelbench.problem import unknown

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


class GeometricMean(Document):
    """What the geometric mean of a variant's speedups over another is to be, over all cases of a claim's manifests."""

    variant: VariantName
    over: VariantName
    at_least: Bound | None = None
    at_most: Bound | None = None

    @model_validator(mode="after")
    def _something_is_asked(self) -> Self:
        if self.variant == self.over:
            raise ValueError("a variant's speedup over itself is 1: variant and over must differ")
        if self.at_least is None and self.at_most is None:
            raise ValueError("a mean without a bound settles nothing: give atLeast, atMost or both")
        return self


class Claim(Document):
    """One row."""

    row: Annotated[int, Field(ge=1)]
    article: Literal["A0", "A1", "A2", "A3", "A4"]
    words: Annotated[str, Field(min_length=1)]
    """Its own, in short."""
    hardware: Annotated[tuple[Hardware, ...], Field(min_length=1)]
    """On any of these the claim can be tested."""
    manifests: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files beside the ledger: the row's own, or where the claim is about a suite, other rows' too."""
    geometric_means: tuple[GeometricMean, ...] = ()
    """Where there are any they are the claim, and not the manifests' expectations."""
    confirms: Annotated[str, Field(min_length=1)]
    refutes: Annotated[str, Field(min_length=1)]
    corrected: str = ""
    """How it should have been said; empty where the words will do."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the directories of results: the manifests'."""
        return tuple(manifest.removesuffix(".yaml") for manifest in self.manifests)


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
    except UnicodeDecodeError as error:
        raise InvalidLedgerError(f"{file} is not UTF-8 text") from error
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
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()):
            raise UnknownRowError(f"{part.strip()!r} is no row and no range of rows, such as 28 or 28-37")
        several = [row for row in known if int(first) <= row <= int(last)]
        if not several:
            raise UnknownRowError(f"no claim in row {part.strip()}; there are {_ranges(known)}")
        wanted += several
    return tuple(known[row] for row in dict.fromkeys(wanted))


def check_variants(claim: Claim, manifest: str, asked: BenchmarkRun) -> None:
    """Raises InvalidLedgerError where the claim's means compare what the run of its manifest does not have."""
    offered = [variant.label for variant in asked.spec.variants]
    for mean in claim.geometric_means:
        for name in (mean.variant, mean.over):
            if name not in offered:
                what = f"{unknown('variant', name, offered)} ({manifest})"
                raise InvalidLedgerError(f"{directory() / LEDGER}: row {claim.row}: geometricMeans: {what}")


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

"""Read the ledger: for each claim its quote, what confirms and refutes it, and its manifests.

By default a claim is the expectations of its manifests. A claim about a suite is held to several results together, and
a claim about trainings to their total times. docs/method/claims-policy.md has the rules.
"""

import functools
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from accelbench.api.run import BenchmarkRun, Bound, Expectations, VariantName
from accelbench.document import Document
from accelbench.problem import unknown

Hardware = Literal["cpu", "gpu", "gpus", "tpu"]
"""`gpus`: several GPUs in one machine."""
ClaimVerdict = Literal[
    "confirmed",
    "refuted",
    "inconclusive",
    "measured",
    "not-measured-yet",
    "untestable-here",
    "untestable-anywhere",
]
"""`measured`: a question of our own, which no article answers, so nothing is confirmed or refuted."""
UNNAMED = "unnamed"
"""The machine of a claim about seconds whose article names no machine."""
LEDGER = "ledger.yaml"
REWORDED = "reworded.yaml"
StoredInGit = Annotated[str, Field(pattern=r"^([0-9a-f]{7,40}:\S+)?$")]
"""A directory in git's history, COMMIT:PATH, as `git show` takes it. Empty: no result was kept."""
LEFT_OUT = " [...] "
"""Separator of a quote's parts: the text between them is not about the claim."""


class Majority(Document):
    """Claim that most of a variant's speedups over another, in all cases of a suite, lie within bounds.

    A speedup counts only if its whole interval does.
    """

    variant: VariantName
    over: VariantName
    at_least: Bound | None = None
    at_most: Bound | None = None

    @model_validator(mode="after")
    def _require_bounds_on_two_variants(self) -> Self:
        if self.variant == self.over:
            raise ValueError("a variant's speedup over itself is 1: variant and over must differ")
        if self.at_least is None and self.at_most is None:
            raise ValueError("speedups without a bound settle nothing: give atLeast, atMost or both")
        return self


class Training(Document):
    """Claim a ratio of two whole trainings, compilation included, against the ratio that an article measured.

    A ratio confirms it from half of the article's advantage (or disadvantage) to twice its ratio: one rule for a whole
    table. If the article only claims faster or slower, there is no upper end.
    """

    variant: VariantName
    over: VariantName
    units: Annotated[int, Field(ge=1)]
    """Units of work in a training, such as epochs."""
    article: Bound
    """Ratio in the article: how many times as fast the variant was."""
    at_least_half: bool = False
    """True if there is no upper end: at least half of the article's advantage confirms."""


class Earlier(Document):
    """Record a condition that was changed after a result, its verdict, and the reason of the change."""

    changed: date | datetime
    """Day of the change, or its time if something was measured on that day."""
    asked: Annotated[str, Field(min_length=1)]
    verdict: ClaimVerdict
    found: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]
    """Reason of the change."""
    result: StoredInGit = ""


class Replaced(Document):
    """Record a result that a newer one replaced; it decides nothing, but stays visible."""

    measured: date
    result: StoredInGit
    found: str = ""
    """Comparison with the claim's present conditions; empty if the result decided nothing."""


class Picture(Document):
    """Name the picture of a row."""

    shows: Literal["speedups", "pays-back", "trainings"]
    """`trainings`: of all rows about trainings; the others show one result."""
    of: str = ""
    """Directory of that result."""


class Claim(Document):
    """Describe one row of the ledger."""

    row: Annotated[int, Field(ge=1)]
    article: Literal["A0", "A1", "A2", "A3", "A4"]
    quote: Annotated[str, Field(min_length=1)]
    """The article's own words; parts are joined by `LEFT_OUT`."""
    asks: Annotated[str, Field(min_length=1)]
    """The claim as a question that needs no article."""
    own: bool = False
    """True for a question of our own, which the article takes for granted or leaves open."""
    hardware: Annotated[tuple[Hardware, ...], Field(min_length=1)]
    """Classes of hardware that can settle it. Results of other classes are shown and decide nothing."""
    machine: str = ""
    """Part of the name of the only device that can settle a claim about seconds, or `UNNAMED`."""
    can: bool = False
    """True if the article claims that something can happen: one case confirms it, and none refutes it."""
    manifests: Annotated[tuple[str, ...], Field(min_length=1)]
    """File names next to the ledger; a claim about a suite also names manifests of other rows."""
    beside: tuple[str, ...] = ()
    """Manifests whose results are shown and decide nothing."""
    picture: Picture | None = None
    baseline: VariantName | None = None
    """Baseline of the tables, if not that of the manifests."""
    majorities: tuple[Majority, ...] = ()
    """If any of these three is given, it is the claim, and the manifests' expectations decide nothing."""
    trainings: tuple[Training, ...] = ()
    expectations: Expectations = ()
    confirms: str = ""
    refutes: str = ""
    answers: dict[ClaimVerdict, str] = {}
    """One sentence on the outcome for each verdict; only that of the present verdict is shown."""
    written: date
    """Day on which answers and corrections were last compared with the results."""
    corrected: str = ""
    """Possible reason for a difference from the article, and the correct statement."""
    history: tuple[Earlier, ...] = ()
    replaced: tuple[Replaced, ...] = ()

    @model_validator(mode="after")
    def _require_conditions_of_claims_only(self) -> Self:
        if self.own == bool(self.confirms or self.refutes):
            raise ValueError(f"row {self.row}: a claim needs confirms and refutes; a question of our own has neither")
        return self

    @model_validator(mode="after")
    def _require_history_of_unrecorded_bounds(self) -> Self:
        """Require a history for bounds that no run records."""
        if (self.trainings or self.expectations) and not self.history:
            raise ValueError(f"row {self.row}: bounds outside the manifests need a history entry with their date")
        return self

    @property
    def decides_by_itself(self) -> bool:
        """Return True if the manifests' expectations decide nothing."""
        return bool(self.own or self.majorities or self.trainings or self.expectations)

    @property
    def compared(self) -> frozenset[str]:
        """Return the variants that a claim about a suite compares; empty for other claims, which compare all."""
        return frozenset(name for majority in self.majorities for name in (majority.variant, majority.over))

    @property
    def over(self) -> str | None:
        """Return the baseline of the tables; None for that of each manifest."""
        return self.majorities[0].over if self.majorities else self.baseline

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the deciding manifests' result directories."""
        return tuple(manifest.removesuffix(".yaml") for manifest in self.manifests)

    def explains(self, measured: datetime) -> bool:
        """Return True if a condition was changed at or after the time `measured`, which explains different bounds."""
        return any(
            earlier.changed >= (measured if isinstance(earlier.changed, datetime) else measured.date())
            for earlier in self.history
        )


class InvalidLedgerError(Exception):
    """Report a missing or malformed ledger; the message has the file and the place."""


class UnknownRowError(Exception):
    """Report a row that the ledger does not have."""


def directory() -> Path:
    """Return the claims' directory: next to this module if installed, examples/claims in a checkout."""
    packaged = Path(__file__).with_name("rows")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "examples" / "claims"


def load(path: Path) -> tuple[Claim, ...]:
    """Read all claims of the ledger in directory `path`, by row; raises InvalidLedgerError."""
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
    if repeated := {row for row in rows if rows.count(row) > 1}:
        raise InvalidLedgerError(f"{file}: row {min(repeated)} is there twice")
    return tuple(sorted(claims, key=lambda claim: claim.row))


@functools.cache
def reworded_digests(path: Path) -> dict[str, list[str]]:
    """Return the digests of earlier sources that count as today's, by the digest of today's source."""
    file = path / REWORDED
    try:
        digests: dict[str, list[str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
    return digests


def choose(claims: Iterable[Claim], rows: str) -> tuple[Claim, ...]:
    """Return the claims that `rows` names, such as `2,3,28-37`; all if it is empty. Raises UnknownRowError."""
    known = {claim.row: claim for claim in claims}
    if not rows.strip():
        return tuple(known.values())
    wanted: list[int] = []
    for part in rows.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()):
            raise UnknownRowError(f"{part.strip()!r} is neither a row nor a range of rows, such as 28 or 28-37")
        several = [row for row in known if int(first) <= row <= int(last)]
        if not several:
            raise UnknownRowError(f"no claim in row {part.strip()}; rows are {_ranges(known)}")
        wanted += several
    return tuple(known[row] for row in dict.fromkeys(wanted))


def check_variants(claim: Claim, manifest: str, run: BenchmarkRun) -> None:
    """Raise InvalidLedgerError if the claim compares a variant that its manifest does not have."""
    variants = [variant.label for variant in run.spec.variants]
    compared: list[tuple[str, Majority | Training]] = [
        *(("majorities", majority) for majority in claim.majorities),
        *(("trainings", training) for training in claim.trainings),
    ]
    for where, one in compared:
        for name in (one.variant, one.over):
            if name not in variants:
                what = f"{unknown('variant', name, variants)} ({manifest})"
                raise InvalidLedgerError(f"{directory() / LEDGER}: row {claim.row}: {where}: {what}")


def hardware(name: str) -> Hardware:
    """Return `name` as a class of hardware; raises ValueError if it is none."""
    for known in get_args(Hardware):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"unknown hardware {name}; there are {', '.join(get_args(Hardware))}")


def _ranges(rows: Iterable[int]) -> str:
    """Format rows as `2, 3, 28 to 37`."""
    ordered = sorted(rows)
    runs: list[list[int]] = []
    for row in ordered:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)  # noqa: PLR2004

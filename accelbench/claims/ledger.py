"""The ledger: for each claim its words, what confirms and what refutes it, and the manifests that ask.

The claim itself is its manifests' expectations. A claim about a whole suite is held to several results together, one
about whole trainings to their total times. docs/method/claims-policy.md has the rules.
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
"""`gpus`: several in one machine."""
ClaimVerdict = Literal[
    "confirmed",
    "refuted",
    "inconclusive",
    "measured",
    "not-measured-yet",
    "untestable-here",
    "untestable-anywhere",
]
"""`measured`: the ledger's own question, which nobody answered before; there is nothing to confirm or refute."""
UNNAMED = "unnamed"
"""A machine whose time an article gives, and which it does not name."""
LEDGER = "ledger.yaml"
REWORDED = "reworded.yaml"
StoredInGit = Annotated[str, Field(pattern=r"^([0-9a-f]{7,40}:\S+)?$")]
"""A directory in git's history, COMMIT:PATH, as `git show` takes it. Empty: no result was kept."""
LEFT_OUT = " [...] "
"""Between parts of a quote: what stands between them in the article is not about the claim."""


class Majority(Document):
    """Of a variant's speedups over another, in all cases of a claim's manifests, more than half lie within the bounds.

    Each by its whole interval.
    """

    variant: VariantName
    over: VariantName
    at_least: Bound | None = None
    at_most: Bound | None = None

    @model_validator(mode="after")
    def _something_is_asked(self) -> Self:
        if self.variant == self.over:
            raise ValueError("a variant's speedup over itself is 1: variant and over must differ")
        if self.at_least is None and self.at_most is None:
            raise ValueError("speedups without a bound settle nothing: give atLeast, atMost or both")
        return self


class Training(Document):
    """What a whole training takes beside another's, compiling included, held against what an article measured.

    At least half of the article's advantage, or disadvantage, and at most twice its ratio: one rule for a table. Where
    the article says faster or slower and no more, there is no other end.
    """

    variant: VariantName
    over: VariantName
    units: Annotated[int, Field(ge=1)]
    """Of work in a training, such as epochs."""
    article: Bound
    """How many times as fast the article found the variant to be."""
    at_least_half: bool = False
    """More than the article's ratio is no contradiction, however much it is."""


class Earlier(Document):
    """What a claim was held against before, and what came out: bounds or workload that changed after a result."""

    changed: date | datetime
    """When it was replaced by what came next; a time, where something was measured on the same day."""
    asked: Annotated[str, Field(min_length=1)]
    verdict: ClaimVerdict
    found: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]
    """It was changed."""
    result: StoredInGit = ""


class Replaced(Document):
    """Record a result that a newer one replaced: it decides nothing, and is not hidden."""

    measured: date
    result: StoredInGit
    found: str = ""
    """How it compared with the claim's present conditions; empty if it was only shown."""


class Picture(Document):
    """What says more than a table."""

    shows: Literal["speedups", "pays-back", "trainings"]
    """`trainings`: of all rows that are held to one; the others are of one result."""
    of: str = ""
    """The directory of that result."""


class Claim(Document):
    """One row."""

    row: Annotated[int, Field(ge=1)]
    article: Literal["A0", "A1", "A2", "A3", "A4"]
    quote: Annotated[str, Field(min_length=1)]
    """The article's own words, whole; parts that belong together are joined by `LEFT_OUT`."""
    asks: Annotated[str, Field(min_length=1)]
    """What is asked, as a question that needs no article."""
    own: bool = False
    """The question is the ledger's: the article takes the answer for granted, or leaves it open."""
    hardware: Annotated[tuple[Hardware, ...], Field(min_length=1)]
    """Classes on which it can be settled. What was found on others stands beside it."""
    machine: str = ""
    """A time is claimed of this machine: no other settles it. Part of the device's name, or `UNNAMED`."""
    can: bool = False
    """The article says that it can be so: one case confirms it, and none refutes it."""
    manifests: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files beside the ledger: the row's own, or where the claim is about a suite, other rows' too."""
    beside: tuple[str, ...] = ()
    """Manifests whose results are shown and decide nothing."""
    picture: Picture | None = None
    baseline: VariantName | None = None
    """What the tables hold variants against, where it is not what the manifests do."""
    majorities: tuple[Majority, ...] = ()
    """Where there are any, they are the claim, and not the manifests' expectations. So are the next two."""
    trainings: tuple[Training, ...] = ()
    expectations: Expectations = ()
    confirms: str = ""
    refutes: str = ""
    answers: dict[ClaimVerdict, str] = {}
    """What came out in a sentence, for the verdict that it has: another verdict makes it untrue."""
    written: date
    """When answers and corrections were last read beside the results that they tell of."""
    corrected: str = ""
    """Why the article may differ, and how it should have been said; empty where the words will do."""
    history: tuple[Earlier, ...] = ()
    replaced: tuple[Replaced, ...] = ()

    @model_validator(mode="after")
    def _a_question_has_no_bounds_and_a_claim_has(self) -> Self:
        if self.own == bool(self.confirms or self.refutes):
            raise ValueError(f"row {self.row}: what confirms and refutes it stands with a claim, not with a question")
        return self

    @model_validator(mode="after")
    def _what_no_run_records_is_explained(self) -> Self:
        """A run's record holds the bounds that were asked of it, and none of these."""
        if (self.trainings or self.expectations) and not self.history:
            raise ValueError(f"row {self.row}: bounds that stand in no manifest need a history that says since when")
        return self

    @property
    def decides_by_itself(self) -> bool:
        """The manifests' expectations do not matter."""
        return bool(self.own or self.majorities or self.trainings or self.expectations)

    @property
    def compared(self) -> frozenset[str]:
        """The variants that a claim about a suite compares; of any other claim none, which is all."""
        return frozenset(name for each in self.majorities for name in (each.variant, each.over))

    @property
    def over(self) -> str | None:
        """What its tables hold variants against; None: what each manifest does."""
        return self.majorities[0].over if self.majorities else self.baseline

    @property
    def names(self) -> tuple[str, ...]:
        """Of the directories of results: those of the manifests that decide."""
        return tuple(manifest.removesuffix(".yaml") for manifest in self.manifests)

    def explains(self, measured: datetime) -> bool:
        """Whether it is said why bounds are not those that a result of that time was asked."""
        return any(
            earlier.changed >= (measured if isinstance(earlier.changed, datetime) else measured.date())
            for earlier in self.history
        )


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


@functools.cache
def reworded(path: Path) -> dict[str, list[str]]:
    """Return the digests of earlier sources that count as today's, by the digest of today's source."""
    file = path / REWORDED
    try:
        digests: dict[str, list[str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
    return digests


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
            raise UnknownRowError(f"{part.strip()!r} is neither a row nor a range of rows, such as 28 or 28-37")
        several = [row for row in known if int(first) <= row <= int(last)]
        if not several:
            raise UnknownRowError(f"no claim in row {part.strip()}; rows are {_ranges(known)}")
        wanted += several
    return tuple(known[row] for row in dict.fromkeys(wanted))


def check_variants(claim: Claim, manifest: str, asked: BenchmarkRun) -> None:
    """Raises InvalidLedgerError where the claim compares what the run of its manifest does not have."""
    offered = [variant.label for variant in asked.spec.variants]
    compared: list[tuple[str, Majority | Training]] = [
        *(("majorities", majority) for majority in claim.majorities),
        *(("trainings", training) for training in claim.trainings),
    ]
    for where, one in compared:
        for name in (one.variant, one.over):
            if name not in offered:
                what = f"{unknown('variant', name, offered)} ({manifest})"
                raise InvalidLedgerError(f"{directory() / LEDGER}: row {claim.row}: {where}: {what}")


def hardware(name: str) -> Hardware:
    """The hardware of that name; raises ValueError."""
    for known in get_args(Hardware):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"unknown hardware {name}; there are {', '.join(get_args(Hardware))}")


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

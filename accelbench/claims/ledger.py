"""Read the ledger: for each claim its quote, what confirms and refutes it, and its manifests.

By default the conditions of a claim are the expectations of its manifests. A claim about a suite is decided by several
results together, and a claim about trainings by their total times. docs/method/claims-policy.md has the rules.
"""

import functools
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal, Self, cast, get_args

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from accelbench.api.run import BenchmarkRun, Bound, Expectations, VariantName
from accelbench.document import Document
from accelbench.problem import describe_unknown

Hardware = Literal["cpu", "gpu", "gpus", "tpu"]
"""`gpus`: several GPUs in one machine."""
ClaimVerdict = Literal[
    "confirmed",
    "in-direction",
    "example-exists",
    "refuted",
    "inconclusive",
    "measured",
    "measured-not-decided",
    "withheld",
    "opinion",
    "not-measured-yet",
    "untestable-here",
    "untestable-anywhere",
]
"""`in-direction`: the variant gains or loses as the article says, but the interval excludes the article's figure."""
ClaimKind = Literal["claim", "possibility", "question", "opinion"]
"""What a row's quote is.

`claim`: the article says that something is so; a measurement confirms or refutes it. `possibility`: it says that
something can be so; the row's manifests are the examples that were tried, and none refutes it. `question`: a question
of our own, which the article takes for granted or leaves open. `opinion`: nothing that it says can be measured; the
manifests, if any, measure something next to it.
"""
DECIDABLE_KINDS: frozenset[ClaimKind] = frozenset({"claim", "possibility"})
UNNAMED = "unnamed"
"""The machine of a claim whose article does not name what it measured: a machine, a program, or a comparison."""
LEDGER = "ledger.yaml"
REWORDED = "reworded.yaml"
StoredInGit = Annotated[str, Field(pattern=r"^([0-9a-f]{7,40}:\S+)?$")]
"""A directory in git's history, COMMIT:PATH, as `git show` takes it. Empty: no result was kept."""
LEFT_OUT = " [...] "
"""Mark in a quote where text is omitted that is not about the claim."""
MINIMUM_RANGE = 3
"""Minimum number of consecutive rows that a message writes as a range."""


class Majority(Document):
    """Claim that most speedups of a variant over another lie within bounds, counted over all cases of a suite.

    A speedup lies within the bounds only if its whole interval does.
    """

    variant: VariantName
    over: VariantName
    at_least: Bound | None = None
    at_most: Bound | None = None

    @model_validator(mode="after")
    def _require_bounds_on_two_variants(self) -> Self:
        """Refuse a comparison of a variant with itself, and a claim that bounds no speedup."""
        if self.variant == self.over:
            raise ValueError("a variant's speedup over itself is 1: variant and over must differ")
        if self.at_least is None and self.at_most is None:
            raise ValueError("speedups without a bound settle nothing: give atLeast, atMost or both")
        return self


class Training(Document):
    """Claim how many times as fast one whole training is as another, compilation included.

    If the article says 3 times as fast, a measured ratio from 2 to 5 confirms the claim: from half of the advantage
    over 1 to twice the advantage.
    """

    variant: VariantName
    over: VariantName
    units: Annotated[int, Field(ge=1)]
    """Units of work in a training, such as epochs."""
    article: Bound
    """Ratio in the article: how many times as fast the variant was."""
    claims: Literal["figure", "direction"]
    """What the article claims: how much faster or slower (`figure`), or only faster or slower (`direction`).

    A claim about the direction has no upper bound.
    """


class Earlier(Document):
    """Record an earlier condition of a claim, its verdict, and why the condition was changed."""

    changed: date | datetime
    """Day of the change, or its time if something was measured on that day."""
    asked: Annotated[str, Field(min_length=1)]
    verdict: ClaimVerdict
    found: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]
    """Reason of the change."""
    result: StoredInGit = ""


class Replaced(Document):
    """Record an older result. A newer result replaced it, so it decides nothing, but the page still shows it."""

    measured: date | datetime
    """Day of the measurement, or its time if something else was written on that day."""
    result: StoredInGit
    found: str = ""
    """How the result compares with the claim's present conditions; empty if the result decided nothing."""


class Picture(Document):
    """Name the picture of a row."""

    shows: Literal["speedups", "pays-back", "trainings"]
    """`trainings` shows all rows about trainings. The other two pictures show one result."""
    of: str = ""
    """Name of the result's directory; empty for `trainings`."""


class Claim(Document):
    """Describe one row of the ledger."""

    row: Annotated[int, Field(ge=1)]
    article: Literal["A0", "A1", "A2", "A3", "A4"]
    quote: Annotated[str, Field(min_length=1)]
    """The article's text, word for word. `LEFT_OUT` stands where text is omitted."""
    asks: Annotated[str, Field(min_length=1)]
    """The claim as a question that needs no article."""
    kind: ClaimKind = "claim"
    hardware: Annotated[tuple[Hardware, ...], Field(min_length=1)]
    """Classes of hardware that can settle the claim. Results of other classes are shown and decide nothing."""
    machine: str = ""
    """Part of the name of the only device that can settle the claim, or `UNNAMED`."""
    manifests: tuple[str, ...] = ()
    """File names next to the ledger; a claim about a suite also names manifests of other rows.

    All are in one setting, that of the article: manifests in other precisions are in `beside`. Empty if no manifest can
    test the article's setting yet.
    """
    beside: tuple[str, ...] = ()
    """Manifests whose results are shown and decide nothing."""
    sides_lack: str = ""
    """What is missing for the sides to be as their communities run them. With it, the row has no verdict."""
    control: str = ""
    """File name of a manifest in `beside` that multiplies plain matrices in the frameworks that the row compares.

    It belongs to a row whose programs are mostly such products. If it explains the row's ratio on a processor, the row
    has no verdict.
    """
    picture: Picture | None = None
    baseline: VariantName | None = None
    """Baseline of the tables, if not that of the manifests."""
    majorities: tuple[Majority, ...] = ()
    """Majorities, trainings and expectations replace the conditions of the manifests, if any of the three is given."""
    trainings: tuple[Training, ...] = ()
    expectations: Expectations = ()
    answers: dict[ClaimVerdict, str] = {}
    """The answer in words for each verdict; its first sentence is complete without the others.

    Only the answer for the present verdict is shown, next to the results that it was written for.
    """
    written_for: Annotated[str, Field(pattern=r"^([0-9a-f]{12})?$")] = ""
    """Digest of the results that the answers were written for (`SettledClaim.results_digest`)."""
    corrected: str = ""
    """Possible reason for a difference from the article, and the correct statement."""
    memory: bool = False
    """True if the row is about memory, so that its table has a column of memory."""
    notable: bool = False
    """True if the row's answer is on the first screen of the page."""
    to_measure: str = ""
    """What is to be measured next, and how; empty if the row needs no new measurement."""
    history: tuple[Earlier, ...] = ()
    replaced: tuple[Replaced, ...] = ()

    @model_validator(mode="after")
    def _require_that_the_control_is_shown(self) -> Self:
        """Refuse a control that is not among the manifests beside the claim, whose results are shown."""
        if self.control and self.control not in self.beside:
            raise ValueError(f"row {self.row}: control: {self.control} is not in beside: add it there")
        return self

    @model_validator(mode="after")
    def _require_manifests_and_forbid_unread_bounds(self) -> Self:
        """Require a manifest or a plan to measure, and forbid bounds with which nothing would be compared.

        If the article does not name what it measured, neither is needed, because nothing can settle the claim.
        """
        can_be_settled = self.is_decidable and self.machine != UNNAMED
        if not self.manifests and can_be_settled and not self.to_measure:
            raise ValueError(f"row {self.row}: give a manifest that tests it, or toMeasure, what such a manifest needs")
        has_bounds = bool(self.majorities or self.trainings or self.expectations)
        if has_bounds and not (self.is_decidable and self.manifests):
            raise ValueError(f"row {self.row}: nothing reads its bounds: remove them, or give it manifests")
        return self

    @model_validator(mode="after")
    def _require_history_of_unrecorded_bounds(self) -> Self:
        """Require a history entry for trainings and expectations in the ledger: no run records these bounds."""
        if (self.trainings or self.expectations) and not self.history:
            raise ValueError(f"row {self.row}: bounds outside the manifests need a history entry with their date")
        return self

    @property
    def ignores_manifest_expectations(self) -> bool:
        """Return True if the verdict does not depend on the expectations in the manifests.

        That is so if the ledger has conditions of its own, or if the claim is not decidable.
        """
        return bool(not self.is_decidable or self.majorities or self.trainings or self.expectations)

    @property
    def is_decidable(self) -> bool:
        """Return True if the article claims something that bounds can confirm."""
        return self.kind in DECIDABLE_KINDS

    @property
    def compared_variants(self) -> frozenset[str]:
        """Return the variants that the claim's majorities compare.

        An empty set, that of a claim without majorities, stands for all variants.
        """
        variants = {majority.variant for majority in self.majorities}
        baselines = {majority.over for majority in self.majorities}
        return frozenset(variants | baselines)

    @property
    def table_baseline(self) -> str | None:
        """Return the baseline of the claim's tables: that of its first majority, or the one that the ledger names.

        With None, each table uses the baseline of its manifest.
        """
        return self.majorities[0].over if self.majorities else self.baseline

    @property
    def manifest_names(self) -> tuple[str, ...]:
        """Return the names of the deciding manifests, without `.yaml`."""
        return tuple(manifest.removesuffix(".yaml") for manifest in self.manifests)

    def has_change_since(self, measured_at: datetime) -> bool:
        """Return True if a condition of the claim has changed since `measured_at`.

        The ledger has only the day of some changes; a change on the day of the measurement counts.
        """
        for entry in self.history:
            time_or_day = measured_at if isinstance(entry.changed, datetime) else measured_at.date()
            if entry.changed >= time_or_day:
                return True
        return False


class InvalidLedgerError(Exception):
    """Report a missing or malformed ledger; the message names the file and the field."""


class UnknownRowError(Exception):
    """Report a row that the ledger does not have."""


def directory() -> Path:
    """Return the claims' directory, in the package or in a checkout."""
    packaged = Path(__file__).with_name("rows")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "examples" / "claims"


def load(path: Path) -> tuple[Claim, ...]:
    """Return all claims of the ledger in directory `path`, sorted by row; raises InvalidLedgerError."""
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
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidLedgerError(f"{file}: {field}: {first['msg']}") from error
    rows = [claim.row for claim in claims]
    repeated_rows = {row for row in rows if rows.count(row) > 1}
    if repeated_rows:
        raise InvalidLedgerError(f"{file}: row {min(repeated_rows)} is there twice")
    return tuple(sorted(claims, key=lambda claim: claim.row))


@functools.cache
def reworded_digests(path: Path) -> dict[str, list[str]]:
    """Return the digests of equivalent older sources of each workload, by the digest of its present source.

    An older source is equivalent if it builds the same programs, so that its results still count. Raises
    InvalidLedgerError if the file of digests cannot be read.
    """
    file = path / REWORDED
    try:
        digests: dict[str, list[str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
    return digests


def choose(claims: Iterable[Claim], rows: str) -> tuple[Claim, ...]:
    """Return the claims in `rows`, such as `2,3,28-37`; all for an empty text.

    Raises UnknownRowError for text of another form, and for a row or a range in which there is no claim.
    """
    claims_by_row = {claim.row: claim for claim in claims}
    if not rows.strip():
        return tuple(claims_by_row.values())
    chosen_rows: list[int] = []
    for entry in map(str.strip, rows.split(",")):
        first, dash, last = entry.partition("-")
        if not dash:
            last = first
        if not (first.isdecimal() and last.isdecimal()):
            raise UnknownRowError(f"{entry!r} is neither a row nor a range of rows, such as 28 or 28-37")
        rows_in_range = [row for row in claims_by_row if int(first) <= row <= int(last)]
        if not rows_in_range:
            raise UnknownRowError(f"no claim in row {entry}; rows are {_format_rows(claims_by_row)}")
        chosen_rows += rows_in_range
    return tuple(claims_by_row[row] for row in dict.fromkeys(chosen_rows))


def check_variants(claim: Claim, manifest: str, run: BenchmarkRun) -> None:
    """Raise InvalidLedgerError if the manifest lacks a variant that the claim names.

    `manifest` is the name of the file with `run`.
    """
    manifest_variants = [variant.label for variant in run.spec.variants]
    conditions: list[tuple[str, Majority | Training]] = []
    conditions += [("majorities", majority) for majority in claim.majorities]
    conditions += [("trainings", training) for training in claim.trainings]
    for field, condition in conditions:
        for name in (condition.variant, condition.over):
            if name not in manifest_variants:
                problem = f"{describe_unknown('variant', name, manifest_variants)} ({manifest})"
                raise InvalidLedgerError(f"{directory() / LEDGER}: row {claim.row}: {field}: {problem}")


def parse_hardware(name: str) -> Hardware:
    """Return `name` as a class of hardware; raises ValueError if there is no such class."""
    if name not in get_args(Hardware):
        raise ValueError(f"unknown hardware {name}; there are {', '.join(get_args(Hardware))}")
    return cast("Hardware", name)


def _format_rows(rows: Iterable[int]) -> str:
    """Format row numbers as `2, 3, 28 to 37`."""
    groups: list[list[int]] = []
    for row in sorted(rows):
        if groups and row == groups[-1][-1] + 1:
            groups[-1].append(row)
        else:
            groups.append([row])
    texts = []
    for consecutive_rows in groups:
        if len(consecutive_rows) >= MINIMUM_RANGE:
            texts.append(f"{consecutive_rows[0]} to {consecutive_rows[-1]}")
        else:
            texts += map(str, consecutive_rows)
    return ", ".join(texts)

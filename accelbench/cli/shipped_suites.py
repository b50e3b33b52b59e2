"""Find suites by path or name. Shipped ones have a file, except `articles`, which the ledger of claims makes."""

from collections.abc import Iterable
from pathlib import Path

from accelbench.api.metadata import API_VERSION
from accelbench.claims import ledger
from accelbench.claims.ledger import Claim
from accelbench.local.errors import UsageError
from accelbench.local.manifests import STANDARD_INPUT
from accelbench.local.manifests import read as read_manifest
from accelbench.local.suites.definition import (
    BenchmarkSuite,
    SuiteEntry,
    SuiteMetadata,
    SuiteSpec,
    read_shipped,
    read_suite,
    shipped_names,
)
from accelbench.problem import suggest_name

SUITE = "SUITE"
"""Name of the argument in messages."""
ARTICLES = "articles"
DESCRIPTION = "The questions of articles about JAX and PyTorch, as far as a processor can measure them."


def names() -> tuple[str, ...]:
    """Return the names of all shipped suites."""
    return (*shipped_names(), ARTICLES)


def read(name: str) -> tuple[BenchmarkSuite, str]:
    """Return the suite with this path or name, and the path that its entries are relative to.

    Raises UsageError for a name that neither a file nor a shipped suite has, and InvalidSpecError for an invalid suite.
    """
    if name == STANDARD_INPUT or Path(name).is_file():
        return read_suite(name), name
    if name in names():
        return find(name)
    raise UsageError(
        f"cannot read {name}: no such file, and no suite has this name; {suggest_name(name, names())}", SUITE
    )


def find(name: str) -> tuple[BenchmarkSuite, str]:
    """Return the shipped suite of this name, and its source: a file that its entries' paths are relative to.

    Only the entries of `articles` have paths; the source of another suite is its name, for messages.
    """
    if name != ARTICLES:
        return read_shipped(name), name
    directory = ledger.directory()
    return articles(ledger.load(directory), directory), str(directory / ledger.LEDGER)


def articles(claims: Iterable[Claim], directory: Path) -> BenchmarkSuite:
    """Return a suite with one entry for each manifest that settles a claim, even if it settles several.

    `directory` contains the manifests. Manifests that compile for targets, or that need a GPU, are left out.
    """
    entries = []
    for file in dict.fromkeys(file for claim in claims for file in claim.manifests):
        [run] = read_manifest(str(directory / file))
        accelerator = run.spec.accelerator
        if not accelerator.targets and accelerator.profile == "cpu":
            entries.append(SuiteEntry(file=file, name=file.removesuffix(".yaml")))
    return BenchmarkSuite(
        api_version=API_VERSION,
        kind="BenchmarkSuite",
        metadata=SuiteMetadata(name=ARTICLES),
        spec=SuiteSpec(description=DESCRIPTION, runs=tuple(entries)),
    )

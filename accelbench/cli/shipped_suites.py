"""Find the suites that accelbench ships: those with a file, and `articles`, which the ledger of claims makes."""

from collections.abc import Iterable
from pathlib import Path

from accelbench.api.metadata import API_VERSION
from accelbench.claims import ledger
from accelbench.claims.ledger import Claim
from accelbench.local.manifests import read
from accelbench.local.suites.definition import (
    BenchmarkSuite,
    SuiteEntry,
    SuiteMetadata,
    SuiteSpec,
    read_shipped,
    shipped_names,
)

ARTICLES = "articles"
DESCRIPTION = "The questions of articles about JAX and PyTorch, as far as a processor can measure them."


def names() -> tuple[str, ...]:
    """Return the names of all shipped suites."""
    return (*shipped_names(), ARTICLES)


def find(name: str) -> tuple[BenchmarkSuite, str]:
    """Return the shipped suite of this name, and its source: a file that its entries' paths are relative to.

    Only the entries of `articles` have paths; the source of another suite is its name, for messages.
    """
    if name != ARTICLES:
        return read_shipped(name), name
    directory = ledger.directory()
    return articles(ledger.load(directory), directory), str(directory / ledger.LEDGER)


def articles(claims: Iterable[Claim], directory: Path) -> BenchmarkSuite:
    """Return a suite that lists each manifest that settles a claim once; `directory` contains the manifests.

    Manifests that compile for targets, or that need a GPU, are left out.
    """
    entries = []
    for file in dict.fromkeys(file for claim in claims for file in claim.manifests):
        [run] = read(str(directory / file))
        accelerator = run.spec.accelerator
        if not accelerator.targets and accelerator.profile == "cpu":
            entries.append(SuiteEntry(file=file, name=file.removesuffix(".yaml")))
    return BenchmarkSuite(
        api_version=API_VERSION,
        kind="BenchmarkSuite",
        metadata=SuiteMetadata(name=ARTICLES),
        spec=SuiteSpec(description=DESCRIPTION, runs=tuple(entries)),
    )

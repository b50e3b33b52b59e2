"""Every manifest of the claims: one plain run, whose expectations, if any, are the claim."""

import re
from pathlib import Path

import pytest

from accelbench.local.manifests import read
from accelbench.plan.cases import plan_cases

CLAIMS = sorted((Path(__file__).parents[2] / "examples" / "claims").glob("[0-9]*.yaml"))
ROWS = [1, 2, 3, 4, *range(6, 27), *range(28, 50), *range(51, 65), 66, *range(81, 85)]
HEADER = re.compile(r"^# Rows? (\d+)(?: and \d+)?, article A[0-4] \S+: .*", re.DOTALL)


def header(path: Path) -> str:
    return "\n".join(line for line in path.read_text().splitlines() if line.startswith("#"))


def test_each_row_has_a_manifest() -> None:
    assert sorted({int(path.name.partition("-")[0]) for path in CLAIMS}) == ROWS


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: path.name)
def test_a_claim_is_one_valid_run(path: Path) -> None:
    [run] = read(str(path))
    assert run.metadata.name == f"claim-{path.stem}"
    assert plan_cases(run)


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: path.name)
def test_a_manifests_header_names_its_row_and_what_confirms_it(path: Path) -> None:
    said = HEADER.match(header(path))
    assert said
    assert int(said[1]) == int(path.name.partition("-")[0])
    [run] = read(str(path))
    decision = ("\n# Confirmed where ",) if run.spec.expectations else ("\n# Measured: ", "\n# Decides nothing: ")
    assert any(words in header(path) for words in decision)
    assert f"#   accelbench run examples/claims/{path.name}" in header(path)
    assert f"#   kubectl apply -f examples/claims/{path.name}" in header(path)

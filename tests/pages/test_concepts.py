"""The lists of the concept pages match the code."""

from __future__ import annotations

import re

from accelbench.api.run import Measurement
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import LaunchCheck
from accelbench.verdict.rule import INDISPENSABLE
from accelbench_operator.metrics.families import VERDICTS
from pages.page import ROOT

CODE = re.compile(r"`([^`]+)`")


def concept(name: str) -> str:
    return (ROOT / "docs" / "concepts" / f"{name}.md").read_text()


def section(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def table(text: str, heading: str, column: int) -> set[str]:
    """What stands as code in a column of the section's table."""
    rows = [line.split("|") for line in section(text, heading).splitlines() if line.startswith("|")]
    return {name for row in rows for name in CODE.findall(row[column + 1])}


def test_every_check_is_in_one_of_the_groups() -> None:
    assert table(concept("validity"), "What is checked", 1) == {check.name for check in validity_checks()}


def test_the_checks_of_a_quiet_machine_are_those_that_repeat_a_round() -> None:
    [row] = [line for line in concept("validity").splitlines() if line.startswith("| Was the machine at rest?")]
    disturbances = {each.name for each in validity_checks() if isinstance(each, LaunchCheck) and each.disturbance}
    assert set(CODE.findall(row)) == disturbances


def test_the_checks_that_a_verdict_requires_are_named() -> None:
    assert "Two checks have to be passed, `parity` and `non-finite`" in " ".join(concept("validity").split())
    assert INDISPENSABLE == ("parity", "non-finite")


def test_every_verdict_and_every_substitute_for_one_is_explained() -> None:
    text = concept("verdict")
    assert table(text, "The rule", 0) | table(text, "Without a verdict", 0) == set(VERDICTS)


def test_defaults_are_those_of_the_manifest() -> None:
    text = " ".join(concept("verdict").split())
    assert f"`equivalenceMargin`, {Measurement().equivalence_margin.removesuffix('%')} % unless" in text
    assert f"at `confidence` ({Measurement().confidence.removesuffix('%')} %)" in text

"""Careless and cheating programs are detected, and honest ones pass."""

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from cheats.said import complaint, findings
from cheats.table import ROWS, Row, trial_of
from cheats.trials import PROGRAMS, Asked, Trial, trials
from tiers import one_of_each

pytestmark = pytest.mark.slow

Try = Callable[[Asked], Trial]


@pytest.fixture(scope="session")
def trial() -> Iterator[Try]:
    """Runs each program once."""
    with trials() as run:
        yield cache(run)


@pytest.mark.parametrize("row", one_of_each(ROWS, by=lambda row: (row.program, row.skipped)), ids=str)
def test_every_cheating_program_is_detected_as_its_row_requires(row: Row, trial: Try) -> None:
    if row.skipped:
        pytest.skip(row.skipped)
    found = trial(trial_of(row))
    assert not complaint(row, found), findings(row, found)


def test_every_program_has_a_row() -> None:
    assert {row.program for row in ROWS} == {file.stem for file in PROGRAMS.glob("*.py")}

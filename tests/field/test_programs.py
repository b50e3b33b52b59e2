"""Programs of the kinds that people compare end as is right: correct ones pass, and wrong ones fail."""

from collections.abc import Callable, Iterator

import pytest

from accelbench.local.exits import Exit
from cheats.said import NOISE
from cheats.trials import Asked, Trial, trials
from cli.command import accelbench
from field.table import PROGRAMS, ROWS, End, Row
from tiers import one_of_each

pytestmark = pytest.mark.slow

Try = Callable[[Asked], Trial]


@pytest.fixture(scope="module")
def trial() -> Iterator[Try]:
    with trials() as run:
        yield run


def found(trial: Trial, use: str) -> End:
    """Return how the variant ended."""
    failure = trial.launches[use].failure
    if failure:
        return End(raises=failure.reason)
    checks = trial.checks(use)
    reading = trial.assessment.parity[f"1/{use}"]
    return End(
        fails=tuple(sorted(name for name in checks.keys() - NOISE if checks[name].outcome == "failed")),
        explained=bool(reading.diagnosis) and checks["parity"].outcome == "failed",
        untested=checks["parity"].outcome == "untested",
    )


@pytest.mark.parametrize("row", one_of_each(ROWS, by=lambda row: row.kind), ids=str)
def test_every_program_has_its_expected_outcome(row: Row, trial: Try) -> None:
    done = trial(row.asked)
    said = [check for check in done.assessment.certificate.checks if check.outcome != "passed"]
    failures = [launch.failure for launch in done.launches.values()]
    assert {use: found(done, use) for use, _ in row.ends} == dict(row.ends), (said, failures)


def test_output_of_a_program_does_not_appear_in_an_answer() -> None:
    """By processes of their own, whose standard output is a pipe to the supervisor."""
    done = accelbench("check", "prints_everywhere.py", "--output", "json", cwd=PROGRAMS)
    assert done.returncode == Exit.SUCCESS, done.stdout + done.stderr


def test_every_program_has_a_row() -> None:
    assert {row.program for row in ROWS} == {file.stem for file in PROGRAMS.glob("*.py")}
